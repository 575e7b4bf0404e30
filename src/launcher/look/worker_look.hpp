// A process that looks at workers, and what it has said so far. It may hang: then it is ended, and
// what it has said before counts.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.hpp"
#include "launcher/look/look_request.hpp"
#include "launcher/look/looker.hpp"
#include "stacks/stack_report.hpp"

namespace drun::launcher {

// A forked process that looks, and says what it finds in lines. Of the helper, which has one
// thread.
class LookProcess {
 public:
  // `look` is called in the process, which ends after it.
  explicit LookProcess(const std::function<void(int pipe)>& look);
  LookProcess(const LookProcess&) = delete;
  LookProcess& operator=(const LookProcess&) = delete;
  // Ends it.
  ~LookProcess();

  [[nodiscard]] bool began() const { return child_ >= 0; }
  // Readable when it says something; -1: it could not be started.
  [[nodiscard]] int fd() const { return reader_.get(); }
  // Reads once, and gives whole lines. False: there is nothing more to come.
  bool read(const std::function<void(std::string_view line)>& take);

 private:
  FileDescriptor reader_;
  pid_t child_ = -1;
  std::string text_;
};

// Of the helper, which has one thread.
class WorkerLook {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Begins to look at all processes of a worker. `tools` must outlive it. It has `limit`, and not
  // longer than until `end`.
  WorkerLook(const LookRequest::Worker& worker, const LookTools& tools,
             std::chrono::milliseconds limit, Time end);
  // Readable when it says something; -1: it could not be started.
  [[nodiscard]] int fd() const { return process_.fd(); }
  [[nodiscard]] Time deadline() const { return deadline_; }
  // Reads once. False: there is nothing more to come.
  bool read();
  [[nodiscard]] int rank() const { return rank_; }
  // Adds what became of it. `ended`: by itself, else it was too slow. Why nothing did; else empty.
  [[nodiscard]] std::string finish(bool ended, std::vector<stacks::Sample>& samples,
                                   std::vector<stacks::StackNote>& notes);

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
  const bool has_all_of_it_;  // else it ends with the time of all
  const Time deadline_;
  LookProcess process_;
  std::map<int, Found> processes_;
  std::vector<std::string> notes_;
};

// By rank, in what state the first threads of these workers are; for `limit`. One process looks at
// all; if it hangs at one for `each`, another one goes on behind that. `look` is called in it.
using LookAtState = std::function<void(const LookRequest::Worker&, const LookCalls&)>;
[[nodiscard]] std::map<int, stacks::Sample> states_of(std::vector<LookRequest::Worker> workers,
                                                      std::chrono::milliseconds each,
                                                      std::chrono::milliseconds limit,
                                                      const LookAtState& look = look_at_state);

}  // namespace drun::launcher
