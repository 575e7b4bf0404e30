// A round's first failure in the form that travels to the other nodes and into the report.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/options/options.hpp"
#include "launcher/output/output.hpp"
#include "launcher/report/core_file.hpp"
#include "launcher/workers/restart_policy.hpp"
#include "launcher/workers/worker.hpp"
#include "rendezvous/types.hpp"

namespace drun::launcher {

// What is known of the round; borrowed.
struct FailedRound {
  const WorkerSpec& spec;
  const rendezvous::Assignment& assignment;
  const std::string& host;  // this node's name
  const Workers& workers;
  const RoundFailures& failures;  // there is a first one
  std::int64_t time_ms = 0;       // of the first failure, Unix milliseconds
  bool one_reason = false;        // all workers failed for the same one, reported once
};

// Where a worker that failed may have left something.
struct Traces {
  process::WorkerId worker = 0;
  std::string error_file;         // may be empty
  std::optional<CoreNames> core;  // it crashed
};

// What was found.
struct Remains {
  std::string traceback;  // what the program itself wrote about its end; may be empty
  std::string core_file;  // may be empty
};
using RemainsOf = std::map<process::WorkerId, Remains>;

// Of those that failed by themselves and may have left something.
[[nodiscard]] std::vector<Traces> traces_of(const FailedRound& round);
// Reads files, so it may hang: for another thread.
[[nodiscard]] RemainsOf find_remains(const std::vector<Traces>& traces);

// Asks `output` for the last lines of those that failed, which takes a moment.
[[nodiscard]] rendezvous::FailureSummary summarize(const FailedRound& round,
                                                   const RemainsOf& remains, WorkerOutput& output);

}  // namespace drun::launcher
