// The workers' output on its way to drun's own stdout and stderr and to log files. Runs a thread of
// its own, so that a reader that stalls never holds up the agent. Whole lines only, order kept per
// stream, bytes unchanged; docs/output.md says the rest.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "launcher/options/options.hpp"
#include "launcher/output/flush_policy.hpp"
#include "launcher/output/output_files.hpp"
#include "launcher/output/output_fold.hpp"

namespace drun::launcher {

class OutputThread;
struct Stream;

struct OutputOptions {
  bool terminal = false;  // workers get pseudo-terminals if drun's own stream is a terminal
  bool quiet = false;     // nothing below an error is said: that a reader has left is none
  OutputChoices choices;  // log files, prefixes, filters, lines of stderr to keep

  std::string run_id = "none";  // names the folder of the logs
  std::string host;             // ${hostname}
  // Folders for error files without --log-dir: the first that can be written is used.
  std::vector<std::string> temporary = {"/tmp", "/var/tmp"};

  // drun's own streams; borrowed, open for the life of the Output.
  int standard_output = 1;
  int standard_error = 2;
  // How long the destructor waits for a reader that takes nothing at all. As long as it takes
  // something, it gets everything.
  std::chrono::milliseconds patience = kReaderPatience;
  // With --fold: how long a line waits for the other ranks to print it too.
  std::chrono::milliseconds fold_window = LineFolder::Limits().window;
};

// What a worker is started with.
struct WorkerStreams {
  FileDescriptor standard_output;
  FileDescriptor standard_error;
};

// What those who start workers need of it. In production that is an Output; tests put a fake in its
// place. One thread: the agent's.
class WorkerOutput {
 public:
  using Time = std::chrono::steady_clock::time_point;

  WorkerOutput() = default;
  WorkerOutput(const WorkerOutput&) = delete;
  WorkerOutput& operator=(const WorkerOutput&) = delete;
  virtual ~WorkerOutput() = default;

  // Makes the files of a worker, for open(); for a thread in which it may hang, also when the
  // output is gone.
  [[nodiscard]] virtual MakeFiles make_files() = 0;
  // Throws std::system_error when there are no descriptors left.
  [[nodiscard]] virtual WorkerStreams open(const StreamLabel& label, WorkerFiles files) = 0;
  // The log file of the worker's stderr, else of its stdout; empty: there is none. Known until
  // drain().
  [[nodiscard]] virtual std::string log_file(std::uint32_t worker) const = 0;

  // Blocks at most `limit` until everything that the worker has written so far is read; then its
  // last stderr lines, harmless to print. Empty for a worker that is not known, and after drain().
  [[nodiscard]] virtual std::vector<std::string> tail(std::uint32_t worker,
                                                      std::chrono::milliseconds limit) = 0;

  // When the worker wrote last: Time::min() if it never did, nullopt unless drun reads both of its
  // streams. A stream that waits for the reader of drun's output is not read meanwhile.
  [[nodiscard]] virtual std::optional<Time> last_output(std::uint32_t worker) const = 0;

  // All workers are gone: reads what is left of their streams, writes it, forgets them. Waits at
  // most `limit`; false if a reader has not taken everything by then. It still gets the rest, in
  // the background.
  virtual bool drain(std::chrono::milliseconds limit) = 0;
};

// Ignore SIGPIPE in the program.
class Output final : public WorkerOutput {
 public:
  explicit Output(OutputOptions options);
  ~Output() override;  // delivers what was read; gives up on a reader that stalls for `patience`

  [[nodiscard]] MakeFiles make_files() override;
  [[nodiscard]] WorkerStreams open(const StreamLabel& label, WorkerFiles files) override;
  [[nodiscard]] std::string log_file(std::uint32_t worker) const override;
  [[nodiscard]] std::vector<std::string> tail(std::uint32_t worker,
                                              std::chrono::milliseconds limit) override;
  [[nodiscard]] std::optional<Time> last_output(std::uint32_t worker) const override;
  bool drain(std::chrono::milliseconds limit) override;

  // For other threads; they may outlive this.
  [[nodiscard]] const std::shared_ptr<OutputFiles>& files() const { return files_; }
  // How far the drain has come.
  [[nodiscard]] FlushProgress flush_progress() const;
  // From now on the destructor waits for no reader.
  void give_up() { options_.patience = std::chrono::milliseconds::zero(); }

  // Output was lost because it could not be written (a full disk); stderr has said so. Complete
  // after drain(). A reader that has left is no loss.
  [[nodiscard]] bool lost_output() const;

  // What to tell the user at the end about log files that are incomplete, or may be because their
  // disk is full; empty: all are complete. Complete after drain().
  [[nodiscard]] std::string lost_logs() const;

  // drun's own words to stderr, in order with what the workers have written there, never within a
  // line of theirs. Never blocks. A newline is added if `text` has none at the end.
  void message(std::string text);

  // As message(), without a newline: for a line that is written anew in place. It begins with a
  // carriage return; the text that removes it ends with one.
  void status(std::string text);

  // drun's terminal has a new size: when this returns, the workers' have it too. The caller passes
  // SIGWINCH on.
  void resize();

 private:
  FileDescriptor open(const StreamLabel& label, bool error, StreamFiles files);
  template <typename T>
  std::optional<T> look(std::function<T()> work);

  OutputOptions options_;
  std::string direct_folder_;  // of logs that workers write themselves; empty: there are none
  bool disk_full_ = false;
  bool direct_hangs_ = false;
  const std::shared_ptr<OutputFiles> files_;
  std::unique_ptr<OutputThread> thread_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::map<std::uint32_t, std::array<std::string, 2>> logs_;  // of stdout and stderr
};

}  // namespace drun::launcher
