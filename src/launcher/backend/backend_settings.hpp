// What the options mean for the connection to the store.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "drun/base/endpoint.hpp"
#include "drun/store/control_client.hpp"
#include "drun/store/server.hpp"
#include "etcd/etcd_options.hpp"
#include "launcher/backend/succession_fsm.hpp"
#include "launcher/options/options.hpp"
#include "store/relay/relay.hpp"

namespace drun::launcher {

// How long workers may run after the store was last known to know this agent: longer than the
// keep-alive limit, so that an outage as long as that is survived. Nothing if the store cannot be
// lost. `hosting`: the store is in this process.
[[nodiscard]] std::optional<std::chrono::milliseconds> lease(const Options& options, bool hosting);
// The same for the rendezvous, which needs a number.
[[nodiscard]] std::chrono::milliseconds keep_alive(const Options& options, bool hosting);

// How many nodes may succeed the one with the store; 0: its end is the end of the job. The store of
// one node, or of --local-nodes, cannot be lost alone.
[[nodiscard]] int successors(const Options& options);
// How long a store that this agent begins listens, before it lets in nodes that have no part in a
// round: their job may run elsewhere. 0: that cannot be.
[[nodiscard]] std::chrono::milliseconds listening(const Options& options);
// How long a node waits for a store, and then for its successors.
[[nodiscard]] SuccessionFsm::Limits succession_limits(const Options& options);

// Who may begin the first store of a job with several endpoints: the agents at them. `own`: the
// one that is this agent's. nodes 0: the job has one endpoint.
[[nodiscard]] store::Place founders(const Options& options,
                                    std::optional<std::size_t> own = std::nullopt);

// How many descriptors an agent needs for itself and its workers.
[[nodiscard]] std::size_t descriptors_needed(const Options& options);

// What an agent's store and its relay leave one another of the descriptors of their process.
struct DescriptorShares {
  std::size_t store_leaves = 0;   // the store's connections to all others
  std::size_t relay_clients = 0;  // each takes two
};
// Of `limit` descriptors, of which the agent itself needs `own`; half of them at the most, however
// few there are. All three fit together.
[[nodiscard]] DescriptorShares shared_descriptors(std::size_t limit, std::size_t own);

// For a store that this agent serves: the first one, or one that is to succeed another.
[[nodiscard]] store::ServerOptions server_options(const Options& options, bool successor);

// For a relay of this node's workers.
[[nodiscard]] store::RelayOptions relay_options(const Options& options);

// For the store of --local-nodes, which is in the agents' parent.
[[nodiscard]] store::ServerOptions parents_server_options(const Options& options);

// For the connection to the store at `endpoint`, which must come about within `limit`.
[[nodiscard]] store::ControlOptions control_options(const Options& options, bool hosting,
                                                    const Endpoint& endpoint,
                                                    std::chrono::milliseconds limit);
// The same for a session at etcd.
[[nodiscard]] etcd::EtcdOptions etcd_options(const Options& options,
                                             std::chrono::milliseconds limit);

}  // namespace drun::launcher
