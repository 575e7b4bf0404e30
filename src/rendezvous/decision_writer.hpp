// Writes a leader's decision, if need be in several transactions, one after the other. Each is
// guarded by the leader key, so a leader that was replaced between two writes no further one. The
// round's document is in the last: members act on nothing before it is there.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "rendezvous/membership.hpp"
#include "rendezvous/outbox.hpp"

namespace drun::rendezvous {

class DecisionWriter {
 public:
  enum class State {
    Idle,
    Sent,         // the store has taken nothing of it yet, as far as is known
    PartlyTaken,  // the store has taken the first parts
  };

  // The reference must outlive this. `leads`: what holds while this leader leads.
  DecisionWriter(Outbox& outbox, Guard leads) : outbox_(outbox), leads_(std::move(leads)) {}

  // Precondition: idle, and there is something to write. At most `most_writes` at a time.
  void write(Decision decision, std::size_t most_writes);
  // The store has taken the last part that was sent. The decision, if that was all of it.
  [[nodiscard]] std::optional<Decision> on_taken();
  // It is not known, or does not matter any more, what becomes of it.
  void drop();

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool idle() const { return state_ == State::Idle; }
  // The part that was sent last.
  [[nodiscard]] bool is(RequestId request) const { return !idle() && request == request_; }
  // What is being written, without its writes; nullopt: nothing.
  [[nodiscard]] const std::optional<Decision>& decision() const { return decision_; }

 private:
  void send_next_part();

  Outbox& outbox_;
  const Guard leads_;
  State state_ = State::Idle;
  std::optional<Decision> decision_;
  std::deque<Transaction> parts_;  // to be sent
  RequestId request_ = 0;          // unless it is idle
};

}  // namespace drun::rendezvous
