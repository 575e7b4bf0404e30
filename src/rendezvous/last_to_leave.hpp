// The agent that hosts the store leaves last: the others need the store until they have left. What
// they say of their workers before they go, it hears.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

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

  // The job is over, and the others may go before this agent's own workers have.
  void listen();
  // It has to go itself.
  void begin(Time now);
  void on_snapshot(const WatchSnapshot& snapshot);
  void on_changes(const WatchChanges& changes);

  [[nodiscard]] State state() const;
  [[nodiscard]] bool limit_over(Time now) const { return begun_ && now >= *begun_ + limit_; }
  [[nodiscard]] std::optional<Time> limit() const;  // nullopt: nobody waits yet
  // MemberDocument::end of the others, of those too that have left.
  [[nodiscard]] std::vector<std::string> ends() const;

 private:
  void note_end(const Change& member);

  const Milliseconds limit_;
  const std::string ticket_;
  const Keys& keys_;
  Outbox& outbox_;
  std::optional<Time> begun_;
  WatchId watch_ = 0;                            // 0: none yet
  std::optional<std::set<std::string>> others_;  // keys of the members; nullopt: not known yet
  std::map<std::string, std::string> ends_;      // by key
};

}  // namespace drun::rendezvous
