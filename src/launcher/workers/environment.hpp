// The environment and the command line of one worker: torchrun's contract. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/options/options.hpp"
#include "launcher/workers/frameworks.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

// The environments of one round's workers on this node. What they share (drun's own environment, a
// megabyte perhaps) is put together once.
class WorkerEnvironments {
 public:
  // `peers`: where each rank can listen, by rank; empty: nobody has asked. `timer_file`: where
  // torch's timers are served; empty: nowhere.
  WorkerEnvironments(const WorkerSpec& spec, const rendezvous::Assignment& assignment,
                     const std::vector<std::string>& peers = {},
                     const std::string& timer_file = {});

  // The variables of every worker: drun's own environment without the names that drun sets and
  // without repeated names (the first counts, as for getenv), then those that drun sets the same
  // for all.
  [[nodiscard]] const std::vector<std::string>& shared() const { return shared_; }
  // The variables that drun sets for this worker only. `error_file` may be empty.
  [[nodiscard]] std::vector<std::string> own(int local_rank, const std::string& error_file) const;
  // All variables that drun sets for this worker, the same for all or not, and none that it
  // inherits.
  [[nodiscard]] std::vector<std::string> set_by_drun(int local_rank,
                                                     const std::string& error_file) const;

 private:
  WorkerEnvironments(const WorkerSpec& spec, const rendezvous::Assignment& assignment,
                     const FrameworkVariables& frameworks, const std::string& timer_file);

  int first_rank_;
  int first_role_rank_;
  bool virtual_local_rank_;
  int local_node_;
  Placement placement_;
  std::vector<std::vector<std::string>> frameworks_;  // by local rank
  std::vector<std::string> alike_;
  std::vector<std::string> shared_;
};

// argv of this worker: ${local_rank} replaced as torchrun does.
[[nodiscard]] std::vector<std::string> worker_command(const Program& program, int local_rank);

// `text` with $local_rank and ${local_rank} replaced; $$ and other names stay as they are.
[[nodiscard]] std::string substitute_local_rank(std::string_view text, int local_rank);

}  // namespace drun::launcher
