// What this agent does for programs of other frameworks, as far as --framework asks for it.
#pragma once

#include <functional>

#include <asio/io_context.hpp>

#include "launcher/agent/peer_ports.hpp"
#include "launcher/agent/pmi_service.hpp"
#include "launcher/backend/node_identity.hpp"
#include "launcher/options/options.hpp"
#include "launcher/workers/round_services.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class AgentServices {
 public:
  // `news`: something was answered; called from the loop, as is `on_fault`.
  AgentServices(asio::io_context& io, const Options& options, PmiService::OnFault on_fault,
                std::function<void()> news)
      : wanted_(options.frameworks),
        pmi_(io, options.run_id, std::move(on_fault)),
        peers_(io, std::move(news)) {}

  [[nodiscard]] RoundServices of_round() {
    return {wanted_.mpi ? &pmi_ : nullptr, wanted_.tensorflow ? &peers_ : nullptr};
  }
  void join(const NodeIdentity& node) { peers_.set_address(node.address); }
  void end() {
    pmi_.end();
    peers_.let_go();
  }

 private:
  const Frameworks wanted_;
  PmiService pmi_;
  PeerPorts peers_;
};

}  // namespace drun::launcher
