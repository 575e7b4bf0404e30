// When to ask a store again that has reached one of its limits. It says so at once: without a pause
// it would be asked as fast as it answers. So it is asked less and less often, and in the end no
// more.
#pragma once

#include <optional>
#include <string>

#include "rendezvous/types.hpp"

namespace drun::rendezvous {

inline constexpr Milliseconds kRejectedLimit{30'000};
inline constexpr Milliseconds kRejectedPause{5'000};  // the longest
inline constexpr const char* kTakesNoWrite = "the store does not take what drun writes";
inline constexpr const char* kShowsNoKeys = "the store does not show what drun watches";

class Rejections {
 public:
  // `what` begins the line for people, `why` is the store's word. True if this is the first of
  // them.
  bool note(const std::string& what, const std::string& why, Time now);
  // It took something of this kind, or nothing of it is to be written any more.
  void clear() { since_.reset(); }

  [[nodiscard]] bool any() const { return since_.has_value(); }
  [[nodiscard]] std::optional<Time> retry_at() const {
    return since_ ? std::optional(retry_at_) : std::nullopt;
  }
  [[nodiscard]] bool waits(Time now) const { return since_ && now < retry_at_; }
  // The next attempt would come too late.
  [[nodiscard]] bool last_attempt(Time now) const;
  [[nodiscard]] bool over(Time now) const { return since_ && now >= *since_ + kRejectedLimit; }
  // One line for people.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::string warning() const;

 private:
  std::optional<Time> since_;
  Time retry_at_{};
  Milliseconds pause_{0};
  std::string text_;
};

}  // namespace drun::rendezvous
