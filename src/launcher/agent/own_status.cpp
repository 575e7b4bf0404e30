#include "launcher/agent/own_status.hpp"

#include <unistd.h>

#include "launcher/backend/backend_settings.hpp"

namespace drun::launcher {
namespace {

using status::Phase;

Phase phase_of(const WorkerGroup& group, bool spare, const ParticipantDriver& participant) {
  if (participant.finished()) return Phase::Leaving;
  if (group.stopping()) return Phase::Stopping;
  if (!group.idle()) return group.all_started() ? Phase::Running : Phase::Starting;
  if (!participant.joined()) return Phase::Searching;
  if (spare) return Phase::Spare;
  return participant.round_stops() ? Phase::Stopping : Phase::Gathering;
}

}  // namespace

status::AgentStatus own_status(const Options& options, const std::string& host,
                               const WorkerSupervisor& workers, const StatusReporter& reporter,
                               const ParticipantDriver& participant) {
  const WorkerGroup& group = workers.group();
  status::AgentStatus result;
  result.job = options.run_id;
  result.host = host;
  result.pid = ::getpid();
  result.phase = phase_of(group, reporter.spare(), participant);
  result.waiting = reporter.waits_for();
  // That of local nodes is reached from this host, where alone this is told.
  if (options.max_nodes > 1) result.endpoint = meeting_place(options);
  if (group.idle()) return result;
  const rendezvous::Assignment& place = group.assignment();
  result.round = place.round;
  result.nodes = place.group_world_size;
  result.group_rank = place.group_rank;
  result.first_rank = place.first_rank;
  result.workers = options.nproc_per_node;
  result.world_size = place.world_size;
  result.restart_count = place.restart_count;
  return result;
}

}  // namespace drun::launcher
