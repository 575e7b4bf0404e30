// A round's first failure in the form that travels to the other nodes and into the report.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/options/options.hpp"
#include "launcher/workers/restart_policy.hpp"
#include "launcher/workers/worker.hpp"
#include "launcher/workers/worker_runner.hpp"
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

// Reads the workers' error files, asks `output` for their last lines, which takes a moment, and
// looks for the core file of one that crashed.
[[nodiscard]] rendezvous::FailureSummary summarize(const FailedRound& round, WorkerOutput& output);

}  // namespace drun::launcher
