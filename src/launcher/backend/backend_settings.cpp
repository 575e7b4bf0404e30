#include "launcher/backend/backend_settings.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/fnv1a.hpp"
#include "rendezvous/keys.hpp"

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;

// The store's sessions outlive what their agents allow themselves, so that a node that was cut off
// has no workers any more when the others go on without it.
constexpr milliseconds kSessionMargin{2'000};
// A store of one's own, in this process or its parent, cannot be cut off: a suspended job (Ctrl-Z,
// a laptop's lid) goes on where it was. A connection to it that breaks does prove that the agent is
// gone, and its workers are after the time that killing them may take.
constexpr std::chrono::hours kForever{24 * 365};
constexpr milliseconds kLocalGrace{12'000};

// An outage may begin just before a heartbeat, and it takes some time to find the store again.
constexpr int kHeartbeats = 6;  // in the keep-alive limit
constexpr int kSpare = 2;       // of these, beyond the limit

// If the store has successors, agents send heartbeats twice as often, because the store's own
// knowledge of its majority may be one such pause old, too; and they look for a lost store four
// times as often. So a job survives an outage as long as the limit, and agents that go to a
// successor still have a quarter of a heartbeat of their lease left, usually much more. Counted
// from the last word of the store:
milliseconds longest_silence(milliseconds outage) {
  return outage + 3 * outage / (4 * kHeartbeats);
}

// Enough for three hosts in a row to die. With static rendezvous the node with the store is rank 0
// and no other can be: a job that has lost it only waits for it to come back.
constexpr int kSuccessors = 3;

// If a job's store has moved, the agent that has it tells the endpoint so 50 times a second.
constexpr milliseconds kListening{75};

// Descriptors of an agent for who looks at it.
constexpr std::size_t kGuests = 32;

// How long the store may be out of reach.
milliseconds longest_outage(const Options& options, bool hosting) {
  // If the only node has the store, nobody can go on without it.
  const bool alone = hosting && options.max_nodes == 1;
  if (options.backend == Backend::Standalone || options.local_node >= 0 || alone) return kForever;
  return options.conf.keep_alive_interval * options.conf.keep_alive_max_attempt;
}

// Twice: helpers, hooks, stacks and those who look at the status page come for a while.
std::size_t descriptors_with_guests(const Options& options) {
  return 2 * descriptors_needed(options) + kGuests;
}

// Nullopt: there is none.
std::optional<std::size_t> descriptor_limit() {
  rlimit open{};
  if (::getrlimit(RLIMIT_NOFILE, &open) != 0 || open.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return open.rlim_cur;
}

}  // namespace

std::optional<milliseconds> lease(const Options& options, bool hosting) {
  const auto outage = longest_outage(options, hosting);
  if (outage >= kForever) return std::nullopt;
  return outage + kSpare * outage / kHeartbeats;
}

milliseconds keep_alive(const Options& options, bool hosting) {
  return lease(options, hosting).value_or(kForever);
}

int successors(const Options& options) {
  const bool hosted = options.backend == Backend::C10d || options.backend == Backend::Static;
  const bool lost_alone = options.max_nodes > 1 && options.local_node < 0;
  if (!hosted || !lost_alone) return 0;
  return options.conf.successors.value_or(options.backend == Backend::C10d ? kSuccessors : 0);
}

milliseconds listening(const Options& options) {
  const bool may_move = options.backend == Backend::C10d && successors(options) > 0;
  return may_move && options.endpoints.empty() ? kListening : milliseconds(0);
}

store::Place founders(const Options& options, std::optional<std::size_t> own) {
  store::Place place;
  if (options.endpoints.empty()) return place;
  // Other endpoints, or another order, are another electorate. Not more bits: it is a round's
  // number elsewhere.
  constexpr std::uint64_t kRoundBits = 0x7FFFFFFF;
  place.electorate.round = fnv1a(meeting_place(options)) & kRoundBits;
  place.nodes = static_cast<std::uint32_t>(options.endpoints.size());
  if (own) place.rank = static_cast<std::uint32_t>(*own);
  return place;
}

SuccessionFsm::Limits succession_limits(const Options& options) {
  SuccessionFsm::Limits limits;
  limits.keep_alive = longest_outage(options, false);
  limits.silence = longest_silence(limits.keep_alive);
  return limits;
}

std::size_t descriptors_needed(const Options& options) {
  constexpr std::size_t kOwn = 38;
  // Of a relay, with two connections of each worker, and as many to the store.
  const bool relays = options.worker_store == WorkerStore::Local;
  constexpr std::size_t kRelay = 10;
  const std::size_t each = 2U + (options.output.tee.none() ? 0U : 2U) +
                           (options.frameworks.mpi ? 1U : 0U) + (relays ? 4U : 0U);
  return kOwn + (relays ? kRelay : 0U) + each * static_cast<std::size_t>(options.nproc_per_node);
}

DescriptorShares shared_descriptors(std::size_t limit, std::size_t own) {
  const std::size_t kept = std::min(own, limit / 2);
  const std::size_t left = limit - kept;
  return {kept + left / 2, std::max<std::size_t>(left / 4, 1)};
}

store::ServerOptions server_options(const Options& options, bool successor) {
  store::ServerOptions result;
  result.successor = successor;
  const std::size_t own = descriptors_with_guests(options);
  const auto limit = descriptor_limit();
  const bool relays = options.worker_store == WorkerStore::Local;
  result.limits.spare_descriptors =
      relays && limit ? shared_descriptors(*limit, own).store_leaves : own;
  result.quorum = static_cast<std::uint32_t>(options.conf.quorum);
  result.founders = founders(options);
  result.job = rendezvous::Keys(options.run_id).prefix;
  if (!successor) result.listening = listening(options);
  result.tls = options.tls;
  result.workers_need_token = relays;
  return result;
}

store::RelayOptions relay_options(const Options& options) {
  store::RelayOptions result;
  result.tls = options.tls;
  if (const auto limit = descriptor_limit())
    result.clients = shared_descriptors(*limit, descriptors_with_guests(options)).relay_clients;
  return result;
}

store::ServerOptions parents_server_options(const Options& options) {
  store::ServerOptions result;
  result.tls = options.tls;
  return result;
}

store::ControlOptions control_options(const Options& options, bool hosting,
                                      const Endpoint& endpoint, milliseconds limit) {
  const auto outage = longest_outage(options, hosting);
  store::ControlOptions result;
  result.endpoint = endpoint;
  result.connect_timeout = limit;
  result.time_to_live = keep_alive(options, hosting) + kSessionMargin;
  result.grace = outage < kForever ? result.time_to_live : kLocalGrace;
  result.keep_alive = outage;
  // A connection that has gone quiet is tried anew in time, whatever TCP's own timers do.
  result.heartbeat_interval = outage / kHeartbeats;
  result.heartbeat_timeout = std::min(options.conf.heartbeat_timeout, outage / 2);
  result.read_timeout = options.conf.read_timeout;
  result.tls = options.tls;
  if (successors(options) > 0) {
    result.job = rendezvous::Keys(options.run_id).prefix;
    // SuccessionFsm decides when to look elsewhere, since it knows where else the store may be.
    result.keep_alive = kForever;
    result.majority_timeout = longest_silence(outage);
    result.tell_refusal = true;
    result.founding = !options.endpoints.empty();
  }
  return result;
}

etcd::EtcdOptions etcd_options(const Options& options, milliseconds limit) {
  const auto outage = longest_outage(options, false);
  etcd::EtcdOptions result;
  result.cluster = options.etcd;
  result.job = rendezvous::Keys(options.run_id).prefix;
  result.connect_timeout = limit;
  result.time_to_live = keep_alive(options, false) + kSessionMargin;
  result.keep_alive = outage;
  result.heartbeat_interval = outage / kHeartbeats;
  result.heartbeat_timeout = std::min(options.conf.heartbeat_timeout, outage / 2);
  result.read_timeout = options.conf.read_timeout;
  return result;
}

}  // namespace drun::launcher
