// The output of several agents on one machine (--local-nodes) on its way to the one stdout and
// stderr that they share. Each agent keeps its ranks' lines apart; this keeps the agents' apart, by
// the same rules (docs/output.md).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/output/output.hpp"
#include "launcher/output/output_thread.hpp"

namespace drun::launcher {

// One thread uses it. Ignore SIGPIPE in the program.
class OutputRelay {
 public:
  // For this process's own lines: as in OutputOptions.
  struct Words {
    bool timestamps = false;
    bool quiet = false;
  };
  // The descriptors are borrowed. No thread exists until start().
  OutputRelay(int standard_output, int standard_error, Words words);
  OutputRelay(const OutputRelay&) = delete;
  OutputRelay& operator=(const OutputRelay&) = delete;
  ~OutputRelay();  // reads what is left, delivers it; gives up on a reader as Output does

  // The stdout and stderr for agent `node`: pseudo-terminals if drun's own are terminals, else
  // pipes; one and the same if drun's own are. Throws std::system_error.
  [[nodiscard]] WorkerStreams open(int node);
  // Pipes, and two in any case: for an agent whose stdout and stderr come in pieces of lines.
  [[nodiscard]] WorkerStreams open_apart(int node);

  // After this, open() no more.
  void start();

  // drun's own words, never within a line of an agent's. A newline is added if there is none.
  void message(std::string text);

  // While `run` runs, the log's lines are drun's own words. They are logged as before when it
  // returns or throws. `wanted`: which of them; empty: all.
  void log_while(const std::function<void()>& run,
                 const std::function<bool(std::string_view line)>& wanted = {});

  // All agents are gone: reads what is left of their streams, writes it. Waits at most `limit`; the
  // rest goes on in the background.
  void drain(std::chrono::milliseconds limit);
  // How far the drain has come.
  [[nodiscard]] FlushProgress flush_progress() const;
  // Ends the relay and waits for no reader. False if output was lost because it could not be
  // written. Nothing else may be called afterwards.
  [[nodiscard]] bool finish();

  // drun's terminal has a new size. When this returns, the agents' have it too.
  void resize();

 private:
  FileDescriptor connect(int node, bool error, bool terminal);

  int standard_output_;
  int standard_error_;
  OutputThread thread_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace drun::launcher
