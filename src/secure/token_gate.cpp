#include "secure/token_gate.hpp"

#include <algorithm>

namespace drun::secure {

// The limit holds for the right one as well: else whoever gets no answer at once knows that the
// guess was wrong, and goes on to the next.
TokenGate::Answer TokenGate::check(std::string_view guess, Time now) {
  const Time from = std::max(forgotten_, now);
  if (from - now > kEach * (kFree - 1)) return Answer::Later;
  if (token_.is(guess)) return Answer::Open;
  forgotten_ = from + kEach;
  return Answer::Wrong;
}

}  // namespace drun::secure
