#include "launcher/agent/agent_settings.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/addresses.hpp"
#include "base/environment_variable.hpp"
#include "base/unix_time.hpp"
#include "hang/flight_recorder.hpp"
#include "launcher/agent/facts_report.hpp"
#include "launcher/backend/backend_settings.hpp"
#include "launcher/watch/hang_watch.hpp"
#include "rendezvous/documents.hpp"

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStopMargin{15'000};  // beyond the grace: SIGKILL, the proof, a busy machine

// What is between the two clocks now.
std::int64_t unix_offset_ms() {
  const auto steady = std::chrono::steady_clock::now().time_since_epoch();
  return unix_ms() - std::chrono::duration_cast<milliseconds>(steady).count();
}

// How long a node may look at its workers before it begins to stop them.
milliseconds look_limit(const Options& options) {
  milliseconds limit{0};
  if (options.looks_for_hangs() || options.stacks_after_failure) limit = options.stacks_limit;
  if (options.looks_for_hangs() && hang::flight_recorder_of(options.inherited))
    limit = std::max<milliseconds>(limit, HangWatch::kDumpsAtMost);
  return limit;
}

}  // namespace

bool tells_usage(const Options& options) {
  return options.summary || options.events.target || !options.events.hooks.empty();
}

OutputOptions output_options(const Options& options, const std::string& host_name) {
  OutputOptions result;
  result.choices = options.output;
  result.run_id = options.run_id;
  result.host = host_name;
  // As Python's tempfile: a TMPDIR of another machine, or of a job that is over, does no harm.
  for (const std::string_view name : {"TMP", "TEMP", "TMPDIR"}) {
    const auto folder = environment_variable(options.inherited, name).value_or("");
    if (!folder.empty()) result.temporary.insert(result.temporary.begin(), folder);
  }
  result.terminal = true;
  result.quiet = options.quiet;
  return result;
}

rendezvous::Config rendezvous_config(const Options& options, const NodeIdentity& node,
                                     milliseconds join_timeout) {
  rendezvous::Config config;
  config.run_id = options.run_id;
  config.min_nodes = options.min_nodes;
  config.max_nodes = options.max_nodes;
  config.node_step = options.node_step;
  config.local_world_size = options.nproc_per_node;
  config.max_restarts = options.max_restarts;
  config.max_losses = options.max_losses;
  config.min_runtime = options.min_runtime;
  config.exclude_after = options.exclude_after;
  config.excluded_hosts = options.excluded_hosts;
  config.role = options.role;
  config.node_rank = options.node_rank;
  config.node_rank_is_wish = options.node_rank_is_wish;
  // A second agent is no spare of a job of one node: it is somebody else's job.
  if (options.max_nodes == 1) {
    config.node_rank = 0;
    config.node_rank_is_wish = false;
  }
  config.host = node.host_name;
  config.address = node.address;
  config.network = options.network.substr(0, rendezvous::kMaxNetwork);
  config.job_flags = options.job_flags;
  config.worker_store_port = node.worker_store_port;
  config.is_host = node.hosting;
  config.successors = successors(options);
  config.successor_port = node.successor_port;
  config.listed = node.listed;
  const SuccessionFsm::Limits search = succession_limits(options);
  config.search_timeout = search.keep_alive + 2 * search.search;  // the link gives up before
  config.stands_at_once = options.local_node == 0;
  config.ticket = node.ticket;
  config.unix_offset_ms = unix_offset_ms();
  if (options.max_nodes > 1 && options.local_node < 0) config.endpoint = meeting_place(options);
  config.endpoint_is_local = !config.endpoint.empty() && options.backend != Backend::Etcd &&
                             is_loopback_address(options.endpoint.host);
  config.agreement["worker-store"] = to_string(options.worker_store);
  // Who may begin a store, and in which order, must be known alike.
  if (!options.endpoints.empty()) config.agreement["rdzv-endpoint"] = meeting_place(options);
  // One number for all workers of the group.
  if (options.replica_groups > 0)
    config.agreement["replica-groups"] = std::to_string(options.replica_groups);
  // One node alone would wait for what the others never say.
  const Frameworks& frameworks = options.frameworks;
  if (frameworks.mpi || frameworks.tensorflow)
    config.agreement["framework"] = !frameworks.tensorflow ? "mpi"
                                    : frameworks.mpi       ? "mpi,tensorflow"
                                                           : "tensorflow";
  if (options.preflight == Preflight::Strict && compares_facts(options)) {
    config.unfit = unfit_nodes;
    config.agreement["preflight"] = "strict";  // each must tell its facts before it joins
  }
  // Whoever looks for hangs obeys it: by --hang-timeout, heartbeats or torch's timers.
  if (options.on_hang != OnHang::Restart)
    config.agreement["on-hang"] = options.on_hang == OnHang::Stop ? "stop" : "report";
  std::string& conf = config.agreement["rdzv-conf"];
  conf = "successors=" + std::to_string(config.successors);
  if (options.conf.quorum > 0) conf += ",quorum=" + std::to_string(options.conf.quorum);
  config.hang_timeout = options.hang_timeout.value_or(std::chrono::milliseconds(0));
  config.join_timeout = join_timeout;
  config.given_join_timeout = options.conf.join_timeout;
  config.last_call_timeout = options.conf.last_call_timeout;
  config.close_timeout = options.conf.close_timeout;
  config.keep_alive = keep_alive(options, false);  // the others', who come to this store
  // A cluster of etcd forgets no session, whatever becomes of its members; but those before 3.4.31
  // and 3.5.13 may end sessions that live.
  const bool etcd = options.backend == Backend::Etcd;
  config.store_can_be_lost = !etcd && lease(options, node.hosting).has_value();
  config.sessions_can_end_early = etcd;
  config.ends_are_heard = !etcd || options.local_node >= 0;
  config.stop_timeout = options.shutdown_timeout + kStopMargin + look_limit(options);
  config.rank_order = options.rank_order;
  config.resize = options.resize;
  config.exit_code = options.exit_code;
  return config;
}

}  // namespace drun::launcher
