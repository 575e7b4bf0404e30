// An agent's vote, if the store has successors: for which node it speaks, where it goes if the
// store is lost, and whether whoever has a majority knows of it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/documents.hpp"
#include "rendezvous/history.hpp"
#include "rendezvous/keys.hpp"
#include "rendezvous/outbox.hpp"

namespace drun::rendezvous {

class MemberVote {
 public:
  enum class State {
    Silent,   // the store has no successors, or is not there yet
    InDoubt,  // it votes
    // Every round since the last settled one included this node, so any leader that knows that
    // round waits for it.
    Firm
  };

  // The references must outlive this.
  MemberVote(const Config& config, const Keys& keys, Outbox& outbox)
      : config_(config), keys_(keys), outbox_(outbox) {}

  // The store has successors.
  void begin();
  void on_renewed(const Renewed& event);
  // Votes as a node of the last round. `rank`: of this node in it, if it is known.
  void speak(const RoundDocument& round, std::optional<int> rank);
  // Of any watch: counts if it is the one on the history.
  void take_history(WatchId watch, const std::optional<std::string>& value);

  [[nodiscard]] State state() const { return state_; }
  // No leader of a later store would begin a round without waiting for this node.
  [[nodiscard]] bool may_start(const RoundDocument& round) const {
    return state_ != State::InDoubt || !round.latest.exists();
  }
  [[nodiscard]] const Place& latest() const { return vote_.latest; }
  [[nodiscard]] bool knows_successors() const { return !successors_.empty(); }
  // Of the last settled round that the store has told of; 0: of none.
  [[nodiscard]] std::int64_t settled_era() const { return settled_era_; }
  // What became of the last rounds, as far as it was told: of a node that may succeed the store.
  [[nodiscard]] const History& history() const { return history_; }

 private:
  void keep_history();

  const Config& config_;
  const Keys& keys_;
  Outbox& outbox_;
  State state_ = State::Silent;
  std::int64_t settled_era_ = 0;
  Vote vote_;  // as last said, unless it is silent
  std::vector<Successor> successors_;
  WatchId history_watch_ = 0;  // while this node may have to succeed the store
  History history_;
};

}  // namespace drun::rendezvous
