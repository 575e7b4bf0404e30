// The leader's knowledge in a test: members come and report, decisions are written and taken over.
#pragma once

#include <string>
#include <utility>

#include "rendezvous/membership.hpp"

namespace drun::test {

class Board {
 public:
  explicit Board(rendezvous::Config config)
      : config_(std::move(config)), state_(rendezvous::Keys(config_.run_id)) {
    state_.agreement = rendezvous::full_agreement(config_);
    state_.waiting_since = now_;
  }

  // As the agent `ticket` with the same config would announce itself.
  [[nodiscard]] rendezvous::MemberDocument document(const std::string& ticket) const {
    const auto known = state_.members.find(ticket);
    if (known != state_.members.end()) return known->second.document;
    rendezvous::MemberDocument d;
    d.host = ticket;
    d.address = "10.0.0." + ticket;
    d.worker_store_port = 1000;
    d.agreement = rendezvous::full_agreement(config_);
    return d;
  }
  void put(const std::string& ticket, rendezvous::MemberDocument document) {
    observe(state_, config_, ticket, std::move(document), now_);
  }
  void join(const std::string& ticket, std::optional<int> rank = {}) {
    auto d = document(ticket);
    d.node_rank = rank;
    put(ticket, std::move(d));
  }
  void gone(const std::string& ticket) { forget(state_, config_, ticket, now_); }
  void prepared(const std::string& ticket) {
    auto d = document(ticket);
    d.prepared = state_.round.number;
    d.prepared_worker_store_port = 29'000;
    put(ticket, std::move(d));
  }
  void holds(const std::string& ticket) {
    auto d = document(ticket);
    d.claim = rendezvous::Assignment{};
    d.claim->round = state_.round.number;
    put(ticket, std::move(d));
  }
  // A worker of it has failed, and fails() follows.
  void begins_to_fail(const std::string& ticket) {
    auto d = document(ticket);
    d.failing = state_.round.number;
    put(ticket, std::move(d));
  }
  void fails(const std::string& ticket, int code = 1, bool restartable = true) {
    auto d = document(ticket);
    d.failed = state_.round.number;
    d.failure.emplace();
    d.failure->host = ticket;
    d.failure->exit_code = code;
    d.failure->cause = "exit code " + std::to_string(code);
    d.failure->restartable = restartable;
    d.failure->rank = state_.slots.at(ticket).group_rank;
    put(ticket, std::move(d));
  }
  void succeeds(const std::string& ticket) {
    auto d = document(ticket);
    d.succeeded = state_.round.number;
    put(ticket, std::move(d));
  }
  void stalls(const std::string& ticket, bool stalled = true) {
    auto d = document(ticket);
    d.stalled = stalled ? state_.round.number : 0;
    put(ticket, std::move(d));
  }
  void left(const std::string& ticket) {
    auto d = document(ticket);
    d.left = state_.round.number;
    d.claim.reset();
    put(ticket, std::move(d));
  }
  void stops(const std::string& ticket) {
    auto d = document(ticket);
    d.stop = rendezvous::StopRequest{"received SIGTERM", 143};
    put(ticket, std::move(d));
  }
  void leaves(const std::string& ticket) {
    auto d = document(ticket);
    d.leave = rendezvous::StopRequest{"received SIGTERM on " + ticket, 143};
    put(ticket, std::move(d));
  }
  void pass(rendezvous::Milliseconds time) { now_ += time; }

  // One decision, written and taken over.
  rendezvous::Decision step() {
    auto decision = decide(state_, config_, now_);
    adopt(state_, config_, decision, now_);
    return decision;
  }
  // Until nothing is to be written any more.
  void settle() {
    while (!step().writes.empty()) {
    }
  }
  // A round of those that have joined, running, its workers started.
  void run() {
    settle();
    if (state_.round.phase != rendezvous::Phase::Preparing) return;
    const auto planned = state_.plan;
    prepared(planned.front().ticket);
    settle();
    for (const auto& each : planned)
      holds(each.ticket);
  }
  void all_left() {
    for (const auto& [ticket, place] : state_.slots) {
      if (state_.members.contains(ticket)) left(ticket);
    }
  }

  [[nodiscard]] rendezvous::Config& config() { return config_; }
  [[nodiscard]] rendezvous::State& state() { return state_; }
  [[nodiscard]] rendezvous::Phase phase() const { return state_.round.phase; }
  [[nodiscard]] rendezvous::Time now() const { return now_; }

 private:
  rendezvous::Config config_;
  rendezvous::State state_;
  rendezvous::Time now_{std::chrono::hours(1)};
};

}  // namespace drun::test
