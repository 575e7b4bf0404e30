// The workers of one round on this node as requests to the guardian: command line, environment,
// CPUs and standard input.
#pragma once

#include <string>
#include <vector>

#include "launcher/options/options.hpp"
#include "launcher/output/output.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/workers/environment.hpp"
#include "rendezvous/types.hpp"

namespace drun::launcher {

[[nodiscard]] StreamLabel stream_label(const WorkerSpec& spec,
                                       const rendezvous::Assignment& assignment,
                                       process::WorkerId worker, int local_rank);

class RoundLaunch {
 public:
  // `spec` and `assignment` must outlive this. The others: as WorkerEnvironments'.
  RoundLaunch(const WorkerSpec& spec, const rendezvous::Assignment& assignment,
              const std::vector<std::string>& peers, const std::string& timer_file);

  // The variables that all of them share.
  [[nodiscard]] const std::vector<std::string>& shared_environment() const {
    return environments_.shared();
  }
  // Everything but its standard output and error.
  [[nodiscard]] process::SpawnRequest request(const StreamLabel& label,
                                              const std::string& error_file) const;

  // Logs where the workers run and, if nobody will read standard input, that too.
  void announce() const;

 private:
  const WorkerSpec& spec_;
  const rendezvous::Assignment& assignment_;
  WorkerEnvironments environments_;
};

}  // namespace drun::launcher
