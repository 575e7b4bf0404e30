#include "rendezvous/reign.hpp"

namespace drun::rendezvous {

void Reign::on_last_word_sent(RequestId request) {
  state_ = State::LastWord;
  last_word_ = request;
}

bool Reign::on_commit(const CommitResult& result) {
  if (state_ != State::LastWord || result.request != last_word_) return false;
  switch (result.outcome) {
    case CommitOutcome::Committed:
      state_ = State::JobEnded;
      break;
    case CommitOutcome::Refused:
      state_ = State::Deposed;
      break;
    case CommitOutcome::Rejected:
    case CommitOutcome::Unknown:
      state_ = State::Lasts;
      break;
  }
  return true;
}

}  // namespace drun::rendezvous
