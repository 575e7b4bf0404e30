// The workers of one round on this node as requests to the guardian: command line, environment,
// CPUs and standard input.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/options/options.hpp"
#include "launcher/output/output.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/workers/environment.hpp"
#include "launcher/workers/preflight.hpp"
#include "rendezvous/types.hpp"

namespace drun::launcher {

class RoundLaunch {
 public:
  // Looks whether the program is there. The arguments must outlive this.
  RoundLaunch(const WorkerSpec& spec, const rendezvous::Assignment& assignment);

  // The variables that all of them share.
  [[nodiscard]] const std::vector<std::string>& shared_environment() const {
    return environments_.shared();
  }
  [[nodiscard]] StreamLabel label(process::WorkerId worker, int local_rank) const;
  // Everything but its standard output and error.
  [[nodiscard]] process::SpawnRequest request(const StreamLabel& label,
                                              const std::string& error_file) const;

  // Why this worker is not worth a try; nullopt: it is.
  [[nodiscard]] std::optional<LaunchError> refusal(int local_rank) const;
  // All are refused, for one reason.
  [[nodiscard]] bool refuses_all() const { return no_program_.has_value(); }

  // Logs where the workers run and, if nobody will read standard input, that too.
  void announce() const;

 private:
  const WorkerSpec& spec_;
  const rendezvous::Assignment& assignment_;
  WorkerEnvironments environments_;
  std::optional<LaunchError> no_program_;
};

}  // namespace drun::launcher
