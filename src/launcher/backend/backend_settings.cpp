#include "launcher/backend/backend_settings.hpp"

#include <algorithm>

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

// How long the store may be out of reach.
milliseconds longest_outage(const Options& options) {
  if (options.backend == Backend::Standalone || options.local_node >= 0) return kForever;
  const auto& conf = options.conf;
  if (conf.keep_alive_interval > milliseconds(kForever) / conf.keep_alive_max_attempt)
    return kForever;
  return conf.keep_alive_interval * conf.keep_alive_max_attempt;
}

}  // namespace

std::optional<milliseconds> lease(const Options& options) {
  const auto outage = longest_outage(options);
  if (outage >= kForever) return std::nullopt;
  return outage + kSpare * outage / kHeartbeats;
}

milliseconds keep_alive(const Options& options) {
  return lease(options).value_or(kForever);
}

store::ControlOptions control_options(const Options& options, const Endpoint& endpoint,
                                      milliseconds limit) {
  store::ControlOptions result;
  result.endpoint = endpoint;
  result.connect_timeout = limit;
  result.time_to_live = keep_alive(options) + kSessionMargin;
  result.grace = keep_alive(options) < kForever ? result.time_to_live : kLocalGrace;
  result.keep_alive = longest_outage(options);
  // A connection that has gone quiet is tried anew in time, whatever TCP's own timers do.
  result.heartbeat_interval = longest_outage(options) / kHeartbeats;
  result.heartbeat_timeout = std::min(options.conf.heartbeat_timeout, longest_outage(options) / 2);
  result.read_timeout = options.conf.read_timeout;
  return result;
}

}  // namespace drun::launcher
