// A document of the store that an agent watches: what was last seen of it, and whether that may be
// out of date.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "rendezvous/outbox.hpp"

namespace drun::rendezvous {

template <typename T>
class WatchedDocument {
 public:
  enum class State {
    Unwatched,
    Awaited,  // no snapshot has come since the link is up
    Current,
    // It is read anew, because this process was suspended. The watch before goes on until then:
    // what it shows may stop workers, not start any.
    Suspect
  };

  void begin(Outbox& outbox, std::string key) {
    watch_ = outbox.watch(std::move(key), false);
    state_ = State::Awaited;
  }
  void read_again(Outbox& outbox, std::string key) {
    if (state_ == State::Suspect) {
      outbox.unwatch(watch_);
    } else {
      before_ = watch_;
    }
    begin(outbox, std::move(key));
    state_ = State::Suspect;
  }
  void on_link_lost() {
    if (state_ == State::Current) state_ = State::Awaited;
  }
  // Precondition: is(watch).
  void on_snapshot(Outbox& outbox, WatchId watch) {
    if (watch != watch_) return;
    if (state_ == State::Suspect) outbox.unwatch(before_);
    state_ = State::Current;
  }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool begun() const { return state_ != State::Unwatched; }
  [[nodiscard]] bool current() const { return state_ == State::Current; }
  [[nodiscard]] bool suspect() const { return state_ == State::Suspect; }
  [[nodiscard]] bool is(WatchId watch) const {
    return begun() && (watch == watch_ || (suspect() && watch == before_));
  }

  std::optional<T> document;  // as last seen; nullopt: there was none

 private:
  State state_ = State::Unwatched;
  WatchId watch_ = 0;
  WatchId before_ = 0;  // while it is suspect
};

}  // namespace drun::rendezvous
