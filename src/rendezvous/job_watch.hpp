// A leader's watch of all of its job's keys: whether it knows what the store has now. Pure.
#pragma once

#include <string>
#include <utility>

#include "rendezvous/outbox.hpp"

namespace drun::rendezvous {

class JobWatch {
 public:
  enum class State {
    Reading,  // a snapshot is awaited; until then what is known may be out of date
    Current,
    Hidden  // the store does not show the keys
  };

  // The reference must outlive this.
  JobWatch(Outbox& outbox, std::string prefix) : outbox_(outbox), prefix_(std::move(prefix)) {
    watch_ = outbox_.watch(prefix_, true);
  }

  // A new watch: its snapshot comes after all that was asked for before.
  void read_again();
  // The next snapshot comes by itself.
  void on_link_lost();
  // True if this watch is meant.
  [[nodiscard]] bool on_snapshot(WatchId watch);
  [[nodiscard]] bool on_rejected(WatchId watch);
  void end();

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool current() const { return state_ == State::Current; }
  [[nodiscard]] bool is(WatchId watch) const { return state_ != State::Hidden && watch == watch_; }
  // Whether the link was lost before the last snapshot and after the one before. Once.
  [[nodiscard]] bool take_looked_away() { return std::exchange(looked_away_, false); }

 private:
  Outbox& outbox_;
  const std::string prefix_;
  State state_ = State::Reading;
  WatchId watch_ = 0;  // unless it is hidden
  bool looked_away_ = false;
};

}  // namespace drun::rendezvous
