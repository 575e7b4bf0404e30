#include "rendezvous/seen_rounds.hpp"

#include "rendezvous/membership.hpp"

namespace drun::rendezvous {

bool is_behind(const std::optional<RoundDocument>& store, int round) {
  if (!store || store->number < round) return true;
  const bool begins = store->phase == Phase::Gathering || store->phase == Phase::Preparing;
  return store->number == round && begins && store->ran < round;
}

// In a store that was emptied a round may begin without knowing of another, and this agent
// remembers only the one with the higher number, or the later one. If the store loses the other,
// nodes that are out of touch may have workers of it.
void SeenRounds::note(const RoundDocument* shown, const RoundDocument* next, Time now) {
  const bool lost = shown != nullptr && is_alive(shown->phase) && shown->number < latest_.number &&
                    (next == nullptr || next->number != shown->number);
  const bool replaced =
      next != nullptr && is_alive(latest_.phase) && next->number == latest_.number &&
      (is_another(latest_, *next) || (!is_alive(next->phase) && next->ran < next->number));
  if (lost || replaced) others_until_ = now + keep_alive_;
  if (next != nullptr && next->number >= latest_.number) latest_ = *next;
}

}  // namespace drun::rendezvous
