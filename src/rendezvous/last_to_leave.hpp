// The agent that hosts the store leaves last: the others need the store until they have left.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "rendezvous/keys.hpp"
#include "rendezvous/outbox.hpp"

namespace drun::rendezvous {

class LastToLeave {
 public:
  enum class State {
    Open,    // the job goes on
    Asking,  // who is still there?
    Waiting,
    Alone
  };

  // The references must outlive this. `limit`: it waits no longer. `ticket`: its own.
  LastToLeave(Milliseconds limit, std::string ticket, const Keys& keys, Outbox& outbox);

  // The job is over.
  void begin(Time now);
  void on_snapshot(const WatchSnapshot& snapshot);
  void on_changes(const WatchChanges& changes);

  [[nodiscard]] State state() const;
  [[nodiscard]] bool limit_over(Time now) const { return begun_ && now >= *begun_ + limit_; }
  [[nodiscard]] std::optional<Time> limit() const;  // nullopt: nobody waits yet

 private:
  const Milliseconds limit_;
  const std::string ticket_;
  const Keys& keys_;
  Outbox& outbox_;
  std::optional<Time> begun_;
  WatchId watch_ = 0;                            // once it has begun
  std::optional<std::set<std::string>> others_;  // keys of the members; nullopt: not known yet
};

}  // namespace drun::rendezvous
