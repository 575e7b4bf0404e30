// Which rounds a store has shown an agent, and whether it has lost one of them since. Pure.
#pragma once

#include <optional>

#include "rendezvous/documents.hpp"

namespace drun::rendezvous {

// The store does not know yet, or not any more, that this round runs.
[[nodiscard]] bool is_behind(const std::optional<RoundDocument>& store, int round);

class SeenRounds {
 public:
  explicit SeenRounds(Milliseconds keep_alive) : keep_alive_(keep_alive) {}

  // `shown`: what the store showed until now; `next`: what it shows now; null: no round.
  void note(const RoundDocument* shown, const RoundDocument* next, Time now);

  // The latest ever seen; the store may have forgotten it since.
  [[nodiscard]] const RoundDocument& latest() const { return latest_; }
  // Until then nodes may have workers of another round that the store showed and has lost, and of
  // which latest() says nothing. Nullopt, or past: there was none.
  [[nodiscard]] std::optional<Time> others_until() const { return others_until_; }

 private:
  const Milliseconds keep_alive_;
  RoundDocument latest_;
  std::optional<Time> others_until_;
};

}  // namespace drun::rendezvous
