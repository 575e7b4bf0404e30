// An agent's own entry in the store: whether the store has what the leader must know of it. One
// write at a time. Pure.
#pragma once

#include <optional>

#include "rendezvous/key_value.hpp"
#include "rendezvous/rejections.hpp"

namespace drun::rendezvous {

class OwnEntry {
 public:
  enum class State {
    Due,       // something in it is not in the store yet
    Sent,      // and not answered yet
    Outdated,  // likewise; and something has changed since
    Written
  };
  enum class Answer {
    None,  // to another request
    Written,
    Rejected,  // the store does not take it now: it is asked again later
    Refused,   // nor does it say why
    Lost       // it is written again once the link is up
  };

  // The leader must know something that is not in it.
  void change();
  // What the old session wrote is gone, so an answer to it means nothing.
  void on_new_session() { state_ = State::Due; }
  void on_sent(RequestId request);
  [[nodiscard]] Answer on_commit(const CommitResult& result, Time now);

  [[nodiscard]] State state() const { return state_; }
  // It is to be sent.
  [[nodiscard]] bool due(Time now) const {
    return state_ == State::Due && (!retry_at_ || now >= *retry_at_);
  }
  [[nodiscard]] std::optional<Time> retry_at() const { return retry_at_; }
  [[nodiscard]] bool was_written() const { return was_written_; }  // once, at least
  [[nodiscard]] bool written() const { return was_written_ && state_ == State::Written; }
  [[nodiscard]] const Rejections& rejections() const { return rejections_; }
  // The last rejection is the first of several: people are told.
  [[nodiscard]] bool first_rejection() const { return first_rejection_; }
  [[nodiscard]] bool refused_too_often() const;

 private:
  State state_ = State::Due;
  RequestId request_ = 0;  // if it is sent
  bool was_written_ = false;
  int refusals_ = 0;
  Rejections rejections_;
  bool first_rejection_ = false;
  std::optional<Time> retry_at_;
};

}  // namespace drun::rendezvous
