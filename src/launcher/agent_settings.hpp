// What the agent's parts are told, derived from the options. Nothing here waits or decides.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "drun/base/endpoint.hpp"
#include "launcher/options.hpp"
#include "launcher/output.hpp"
#include "launcher/store_key_value.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

// drun's own exit codes, beside the workers'.
inline constexpr int kDrunFailed = 125;
inline constexpr int kTimeLimit = 124;

// This node, as the others see it.
struct NodeIdentity {
  std::string host_name;
  std::string address;            // what becomes MASTER_ADDR when this node has group rank 0
  std::uint16_t worker_port = 0;  // of this agent's workers' store
  bool hosting = false;           // the store is in this process
};

[[nodiscard]] OutputOptions output_options(const Options& options, const std::string& host_name);

// TORCHELASTIC_ERROR_FILE as drun itself was given it, empty where it was not.
[[nodiscard]] std::string own_error_file(const Options& options);

// `join_timeout`: what is left of it.
[[nodiscard]] rendezvous::Settings rendezvous_settings(const Options& options,
                                                       const NodeIdentity& node,
                                                       std::chrono::milliseconds join_timeout);

// For the connection to the store at `endpoint`, which must come about within `limit`.
[[nodiscard]] StoreKeyValueOptions store_options(const Options& options, const Endpoint& endpoint,
                                                 std::chrono::milliseconds limit);

}  // namespace drun::launcher
