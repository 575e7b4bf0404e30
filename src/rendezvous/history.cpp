#include "rendezvous/history.hpp"

#include <utility>

#include "base/utf8.hpp"

namespace drun::rendezvous {

void History::begin(PastRound round) {
  if (rounds.size() >= kMaxHistory) rounds.erase(rounds.begin());
  rounds.push_back(std::move(round));
}

void History::stop(Cause cause, const std::string& reason, std::int64_t now_ms) {
  if (rounds.empty() || rounds.back().stopping_ms != 0 || rounds.back().ended_ms != 0) return;
  rounds.back().cause = cause;
  rounds.back().reason = cut_utf8(reason, kMaxPastReason);
  rounds.back().stopping_ms = now_ms;
}

void History::end(int restart, std::int64_t now_ms) {
  if (rounds.empty() || rounds.back().ended_ms != 0) return;
  rounds.back().ended_ms = now_ms;
  rounds.back().restart = restart;
}

}  // namespace drun::rendezvous
