// Peers without sockets, on tables of their own.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "store/server/peer.hpp"

namespace drun::test {

// Everything that peers share.
struct PeerWorld {
  explicit PeerWorld(store::Limits chosen = {}, store::StoreSuccession::Options how = {})
      : limits(chosen),
        budget(chosen.total_bytes, chosen.reserved_bytes, chosen.job_bytes),
        succession_options(how) {
    sessions.tell_ends([this](store::SessionId session) { succession.ended(session, now); });
  }

  static store::control::Token next_token() {
    static std::uint8_t last = 0;
    store::control::Token token{};
    token[0] = ++last;
    return token;
  }

  store::Limits limits;
  store::Budget budget;
  store::StoreSuccession::Options succession_options;
  store::KeyTable job{budget};
  store::KeyTable workers{budget};
  store::Sessions sessions{job, budget};
  store::StoreSuccession succession{succession_options, job};
  store::ServerCounters counters;
  store::Turn turn;
  store::PeerContext context{limits,     budget,   job,  job,   sessions,
                             succession, counters, turn, false, &next_token};
  store::PeerContext worker_context{limits,     budget,   workers, job,   sessions,
                                    succession, counters, turn,    false, &next_token};
  store::Time now{};
};

class TestPeer : public store::Peer {
 public:
  explicit TestPeer(PeerWorld& world) : TestPeer(world, world.context) {}
  TestPeer(PeerWorld& world, store::PeerContext& context) : Peer(context), world_(world) {}
  ~TestPeer() override {
    if (!gone_) disconnect(world_.now);
  }

  // Feeds `bytes` behind what was left over, in a new turn. False once the server would close the
  // connection.
  bool send(std::string_view bytes) {
    world_.turn.begin();
    return send_in_turn(bytes);
  }
  // In the turn of those before.
  bool send_in_turn(std::string_view bytes) {
    if (closed_) return false;
    kept_.append(bytes);
    return go_on();
  }
  // Goes on in a new turn, perhaps after the output was taken.
  bool resume() {
    world_.turn.begin();
    return go_on();
  }
  std::string take() { return std::exchange(output(), {}); }
  // Sends and takes the answer.
  std::string ask(std::string_view bytes) {
    send(bytes);
    return take();
  }
  void leave() {
    disconnect(world_.now);
    gone_ = true;
  }

  [[nodiscard]] bool is_closed() const { return closed_; }
  [[nodiscard]] bool is_paused() const { return paused_; }
  [[nodiscard]] bool awaits_turn() const { return awaits_turn_; }
  [[nodiscard]] std::size_t needed() const { return needed_; }
  // Bytes that were sent and not yet taken.
  [[nodiscard]] std::size_t left_over() const { return kept_.size(); }
  [[nodiscard]] int pushes() const { return pushes_; }
  [[nodiscard]] store::Milliseconds idle() const override { return idle_; }
  // What it is fed from now on has waited for so long.
  void set_idle(store::Milliseconds idle) { idle_ = idle; }

 private:
  bool go_on() {
    if (kept_.size() < needed_) return !closed_;
    const Fed fed = feed(kept_, world_.now);
    kept_.erase(0, fed.consumed);
    needed_ = fed.needed;
    paused_ = fed.state == State::Paused || fed.state == State::AwaitsTurn;
    awaits_turn_ = fed.state == State::AwaitsTurn;
    closed_ = closed_ || fed.state == State::Closed;
    return !closed_;
  }
  void on_unasked_output() override { ++pushes_; }
  void on_overflow() override { closed_ = true; }

  PeerWorld& world_;
  std::string kept_;
  std::size_t needed_ = 1;
  store::Milliseconds idle_{0};
  int pushes_ = 0;
  bool paused_ = false;
  bool awaits_turn_ = false;
  bool closed_ = false;
  bool gone_ = false;
};

}  // namespace drun::test
