#include "secure/token_gate.hpp"

#include <algorithm>

namespace drun::secure {

// The limit holds for the right one as well if it is short: else whoever gets no answer at once
// knows that the guess was wrong, and goes on to the next. If it is long, others' guesses do not
// keep out who has it.
TokenGate::Answer TokenGate::check(std::string_view guess, Time now) {
  const Time from = std::max(forgotten_, now);
  const bool too_many = from - now > kEach * (kFree - 1);
  if (too_many && guessable_) return Answer::Later;
  if (token_.is(guess)) return Answer::Open;
  if (too_many) return Answer::Later;
  forgotten_ = from + kEach;
  return Answer::Wrong;
}

}  // namespace drun::secure
