#include "rendezvous/rejections.hpp"

#include <algorithm>

#include "rendezvous/messages.hpp"

namespace drun::rendezvous {
namespace {

constexpr Milliseconds kFirstPause{200};

}  // namespace

bool Rejections::note(const std::string& what, const std::string& why, Time now) {
  const bool first = !since_;
  if (first) {
    since_ = now;
    pause_ = kFirstPause;
  }
  text_ = what + ": " + why;
  retry_at_ = now + pause_;
  pause_ = std::min(pause_ * 2, kRejectedPause);
  return first;
}

bool Rejections::last_attempt(Time now) const {
  return since_ && now >= *since_ + kRejectedLimit - kRejectedPause;
}

std::string Rejections::warning() const {
  return text_ + "; trying again for " + duration_text(kRejectedLimit);
}

}  // namespace drun::rendezvous
