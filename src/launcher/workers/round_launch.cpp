#include "launcher/workers/round_launch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.hpp"

namespace drun::launcher {

StreamLabel stream_label(const WorkerSpec& spec, const rendezvous::Assignment& assignment,
                         process::WorkerId worker, int local_rank) {
  StreamLabel label;
  label.worker = worker;
  label.rank = assignment.first_rank + local_rank;
  label.local_rank = local_rank;
  label.round = assignment.round;
  label.restart_count = assignment.restart_count;
  label.role = spec.role;
  return label;
}

RoundLaunch::RoundLaunch(const WorkerSpec& spec, const rendezvous::Assignment& assignment,
                         const std::vector<std::string>& peers, const std::string& timer_file)
    : spec_(spec), assignment_(assignment), environments_(spec, assignment, peers, timer_file) {}

process::SpawnRequest RoundLaunch::request(const StreamLabel& label,
                                           const std::string& error_file) const {
  const WorkerPlacement& place = spec_.placement.of(spec_.local_node, label.local_rank);
  process::SpawnRequest request;
  request.id = label.worker;
  request.argv = worker_command(spec_, label.local_rank);
  request.environment = environments_.own(label.local_rank, error_file);
  request.cpu_affinity = place.cpus;
  request.memory_nodes = place.memory_nodes;
  if (label.rank == spec_.stdin_rank)
    request.standard_input.reset(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  return request;
}

void RoundLaunch::announce() const {
  for (const auto& line :
       placement_lines(spec_.placement, spec_.local_node, assignment_.first_rank)) {
    log::write(spec_.report_bindings ? log::Level::Info : log::Level::Debug, "{}", line);
  }
  const bool nobody_reads = spec_.stdin_rank.value_or(0) >= assignment_.world_size;
  if (nobody_reads && assignment_.group_rank == 0)
    log::warning("--stdin {}: this round has {} ranks, counted from 0: nobody reads standard input",
                 *spec_.stdin_rank, assignment_.world_size);
}

}  // namespace drun::launcher
