// The environment and the command line of one worker: torchrun's contract. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/options/options.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

// The environments of one round's workers on this node. What they share (drun's own environment, a
// megabyte perhaps) is put together once.
class WorkerEnvironments {
 public:
  WorkerEnvironments(const WorkerSpec& spec, const rendezvous::Assignment& assignment);

  // Of every worker: drun's own environment without what drun sets and without names that occur
  // twice (the first counts, as for getenv), then what drun sets alike for all.
  [[nodiscard]] const std::vector<std::string>& shared() const { return shared_; }
  // What drun sets for this worker only. `error_file` may be empty.
  [[nodiscard]] std::vector<std::string> own(int local_rank, const std::string& error_file) const;
  // What drun sets for this worker, alike for all or not, and nothing inherited.
  [[nodiscard]] std::vector<std::string> set_by_drun(int local_rank,
                                                     const std::string& error_file) const;

 private:
  int first_rank_;
  int first_role_rank_;
  bool virtual_local_rank_;
  int local_node_;
  Placement placement_;
  std::vector<std::string> alike_;
  std::vector<std::string> shared_;
};

// argv of this worker: ${local_rank} replaced as torchrun does.
[[nodiscard]] std::vector<std::string> worker_command(const Program& program, int local_rank);

// `text` with $local_rank and ${local_rank} replaced; $$ and other names stay as they are.
[[nodiscard]] std::string substitute_local_rank(std::string_view text, int local_rank);

}  // namespace drun::launcher
