// How an agent is linked to the store: since when, or for how long it has lost it; and whether this
// process was suspended meanwhile. Pure.
#pragma once

#include <optional>
#include <string>

#include "rendezvous/types.hpp"

namespace drun::rendezvous {

class StoreLink {
 public:
  enum class State {
    Never,  // there was no connection yet
    Up,
    Lost
  };

  StoreLink(Milliseconds keep_alive, Time now);

  // Call before any other input, with the time at which it came. True: this process was suspended,
  // and what the store has said meanwhile may be out of date.
  [[nodiscard]] bool note_time(Time now);
  void on_up(bool new_session, Time now);
  // `silent`: how long the store had not been heard from.
  void on_down(std::string detail, Milliseconds silent, Time now);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool up() const { return state_ == State::Up; }
  [[nodiscard]] bool was_up() const { return state_ != State::Never; }
  // Longer than the others wait for this agent's workers.
  [[nodiscard]] bool lost_for_too_long(Time now) const {
    return state_ == State::Lost && now - lost_since_ > keep_alive_;
  }
  // While it is up; from the beginning of the session, or of the connection.
  [[nodiscard]] Time up_since() const { return up_since_; }
  [[nodiscard]] Time lost_since() const { return lost_since_; }  // while it is not
  [[nodiscard]] Time last_touch() const { return last_touch_; }  // of this process
  // Until then note_time() must be called, so that it notices a suspension.
  [[nodiscard]] std::optional<Time> next_touch() const;
  [[nodiscard]] const std::string& trouble() const { return detail_; }  // why it broke last

 private:
  struct Suspension {
    Time from;
    Time until;
  };

  const Milliseconds keep_alive_;
  State state_ = State::Never;
  std::string detail_;
  Time up_since_;
  Time lost_since_;
  Time last_touch_;
  std::optional<Suspension> suspended_;  // the last one, while the link was up
};

}  // namespace drun::rendezvous
