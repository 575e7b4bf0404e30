// One worker of a round, as its agent knows it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "launcher/process/exit_status.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/workers/rank_service.hpp"

namespace drun::launcher {

// How a worker ended, or why it never began.
struct WorkerEnd {
  process::ExitStatus status;  // of one that never began: the code that a shell gives
  int spawn_error = 0;         // errno; 0: it began

  [[nodiscard]] bool success() const { return spawn_error == 0 && status.success(); }
};

struct Worker {
  using Time = std::chrono::steady_clock::time_point;
  enum class Stage { Requested, Running, Ended };

  int local_rank = 0;
  Stage stage = Stage::Requested;
  pid_t pid = 0;  // 0: it never began
  Time requested;
  Time started;  // as `requested` until it runs
  Time ended;
  WorkerEnd end;
  process::Usage usage;           // once it has ended
  bool stopped = false;           // it ran when drun began to stop the workers
  bool succeeded_before = false;  // it had ended with 0 then
  bool killed = false;            // the SIGKILL of that stop ended it
  // When drun began to stop the workers: since its last output, or its start if it has not
  // `printed`; nullopt: not known.
  std::optional<std::chrono::milliseconds> silence;
  bool printed = false;
  std::optional<RankFault> fault;  // what the service has found
  bool condemned = false;          // it was reported although it still ran
  std::string cause;               // why it ended, for people
  std::string error_file;          // where torch's @record writes; may be empty
};

// In the order of their local ranks.
using Workers = std::map<process::WorkerId, Worker>;

}  // namespace drun::launcher
