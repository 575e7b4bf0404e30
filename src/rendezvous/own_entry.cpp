#include "rendezvous/own_entry.hpp"

namespace drun::rendezvous {
namespace {

constexpr Milliseconds kRetry{200};
constexpr int kMaxRefusedWrites = 5;

}  // namespace

void OwnEntry::change() {
  if (state_ == State::Sent) state_ = State::Outdated;
  if (state_ == State::Written) state_ = State::Due;
}

void OwnEntry::on_sent(RequestId request) {
  state_ = State::Sent;
  request_ = request;
  retry_at_.reset();
}

OwnEntry::Answer OwnEntry::on_commit(const CommitResult& result, Time now) {
  const bool awaited = state_ == State::Sent || state_ == State::Outdated;
  if (!awaited || result.request != request_) return Answer::None;
  const bool written = result.outcome == CommitOutcome::Committed && state_ == State::Sent;
  state_ = written ? State::Written : State::Due;
  switch (result.outcome) {
    case CommitOutcome::Committed:
      was_written_ = true;
      refusals_ = 0;
      rejections_.clear();
      return Answer::Written;
    case CommitOutcome::Rejected:
      first_rejection_ = rejections_.note(kTakesNoWrite, result.detail, now);
      retry_at_ = rejections_.retry_at();
      return Answer::Rejected;
    case CommitOutcome::Refused:
      ++refusals_;
      retry_at_ = now + kRetry;
      return Answer::Refused;
    case CommitOutcome::Unknown:
      return Answer::Lost;
  }
  return Answer::None;
}

bool OwnEntry::refused_too_often() const {
  return refusals_ >= kMaxRefusedWrites;
}

}  // namespace drun::rendezvous
