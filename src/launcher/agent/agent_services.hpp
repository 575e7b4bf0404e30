// What this agent does for programs of other frameworks, as far as --framework asks for it, and for
// torch's timers, as far as the environment does.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include <asio/io_context.hpp>

#include "launcher/backend/node_identity.hpp"
#include "launcher/options/options.hpp"
#include "launcher/services/peer_ports.hpp"
#include "launcher/services/pmi_service.hpp"
#include "launcher/watch/timer_watch.hpp"
#include "launcher/workers/round_services.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class AgentServices {
 public:
  // All are called from the loop.
  struct Calls {
    PmiService::OnFault on_fault;
    TimerWatch::OnExpired on_timer;  // while workers run
    std::function<bool()> running;   // whether they do
    std::function<void()> news;      // something was answered
  };
  AgentServices(asio::io_context& io, const Options& options, Calls calls)
      : wanted_(options.frameworks),
        pmi_(io, options.run_id, std::move(calls.on_fault)),
        peers_(io, std::move(calls.news)) {
    if (options.file_timers)
      timers_.emplace(io, std::move(calls.running), std::move(calls.on_timer));
  }

  // These, and what others do.
  [[nodiscard]] RoundServices beside(RoundServices services) {
    if (wanted_.mpi) services.ranks = &pmi_;
    if (wanted_.tensorflow) services.peers = &peers_;
    if (timers_) services.timer_file = timers_->path();
    return services;
  }
  void join(const NodeIdentity& node) { peers_.set_address(node.address); }
  void end() {
    pmi_.end();
    peers_.let_go();
    if (timers_) timers_->cancel();
  }

 private:
  const Frameworks wanted_;
  PmiService pmi_;
  PeerPorts peers_;
  std::optional<TimerWatch> timers_;  // nullopt: not asked for
};

}  // namespace drun::launcher
