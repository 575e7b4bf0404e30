// How long a leader leads: until another does, or until it has said that the job is over because
// the store takes no more than that. Pure.
#pragma once

#include "rendezvous/key_value.hpp"

namespace drun::rendezvous {

class Reign {
 public:
  enum class State {
    Lasts,
    LastWord,  // it asks the store to end the job
    JobEnded,  // it was granted
    Deposed    // a guard did not hold: somebody else leads, or nobody
  };

  void on_last_word_sent(RequestId request);
  // Of this request's answer. True if it was the last word.
  [[nodiscard]] bool on_commit(const CommitResult& result);
  // The answer to another of its writes says so.
  void depose() { state_ = State::Deposed; }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool lasts() const { return state_ == State::Lasts; }
  [[nodiscard]] bool deposed() const { return state_ == State::Deposed; }

 private:
  State state_ = State::Lasts;
  RequestId last_word_ = 0;
};

}  // namespace drun::rendezvous
