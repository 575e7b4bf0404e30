// Ports for servers of the workers (TF_CONFIG), and what the nodes of a round tell one another of
// theirs. No two agents of a machine choose one port: each holds its own until all have chosen.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>

#include "launcher/backend/free_port.hpp"
#include "launcher/services/node_exchange.hpp"
#include "launcher/workers/peer_directory.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class PeerPorts final : public PeerDirectory {
 public:
  // `served` is called from the loop after each answer.
  PeerPorts(asio::io_context& io, std::function<void()> served)
      : io_(io), served_(std::move(served)) {}

  // How the others reach this node; before the first call of ask().
  void set_address(std::string address) { address_ = std::move(address); }
  void ask(const rendezvous::Assignment& assignment, int workers, Done done) override;
  void let_go() override;

 private:
  asio::io_context& io_;
  const std::function<void()> served_;
  std::string address_;
  std::vector<HeldPort> held_;
  std::optional<NodeExchange> nodes_;
};

// The places of all ranks, in the order of the nodes' texts; an error if what a node says is none,
// or if they are not `world_size`. Pure.
[[nodiscard]] Result<PeerDirectory::Places> places_of(const std::vector<std::string>& texts,
                                                      int world_size);

}  // namespace drun::launcher
