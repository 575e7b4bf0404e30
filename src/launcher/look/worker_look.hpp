// A process that looks at one worker, and what it has said so far. It may hang: then it is ended,
// and what it has said before counts.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.hpp"
#include "launcher/look/look_request.hpp"
#include "launcher/look/looker.hpp"
#include "stacks/stack_report.hpp"

namespace drun::launcher {

enum class LookDepth {
  State,  // of the worker's first thread
  Stacks  // of all of its processes
};

// Of the helper, which has one thread.
class WorkerLook {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Begins. `tools` must outlive it. It has `limit`, and not longer than until `end`.
  WorkerLook(const LookRequest::Worker& worker, const LookTools& tools, LookDepth depth,
             std::chrono::milliseconds limit, Time end);
  WorkerLook(const WorkerLook&) = delete;
  WorkerLook& operator=(const WorkerLook&) = delete;
  // Ends it.
  ~WorkerLook();

  // Readable when it says something; -1: it could not be started.
  [[nodiscard]] int fd() const { return reader_.get(); }
  [[nodiscard]] Time deadline() const { return deadline_; }
  // Reads once. False: there is nothing more to come.
  bool read();
  [[nodiscard]] int rank() const { return rank_; }
  // Adds what became of it. `ended`: by itself, else it was too slow. Why nothing did; else empty.
  [[nodiscard]] std::string finish(bool ended, std::vector<stacks::Sample>& samples,
                                   std::vector<stacks::StackNote>& notes);
  // What it has found, of a LookDepth::State.
  [[nodiscard]] std::optional<stacks::Sample> state() const;

 private:
  // Of one process: what /proc says of its threads, then the same with their stacks.
  struct Found {
    std::vector<stacks::Sample> without;
    std::vector<stacks::Sample> with;
    bool done = false;
  };

  void take(std::string_view line);

  const int rank_;
  const std::chrono::milliseconds limit_;
  const Time deadline_;
  FileDescriptor reader_;
  pid_t child_ = -1;
  std::string text_;
  std::map<int, Found> processes_;
  std::vector<std::string> notes_;
};

}  // namespace drun::launcher
