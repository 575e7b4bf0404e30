// The documents of this agent's job, looked at only while somebody asks: through the agent's own
// link to the store, so that it goes where that goes. Pure but for the calls to the KeyValue.
#pragma once

#include <optional>
#include <string>

#include "jobs/job_view.hpp"
#include "jobs/metrics.hpp"
#include "rendezvous/key_value.hpp"
#include "rendezvous/keys.hpp"
#include "status/agent_status.hpp"

namespace drun::launcher {

class JobWatch {
 public:
  static constexpr rendezvous::WatchId kWatch = 0xFFFFFFFE;  // the participant counts from 1

  // When a job ends, its store drops the places and the agreement: take that over, or keep what
  // was.
  enum class AtEnd { Follow, KeepWhatWas };

  // Each of several has its own number.
  explicit JobWatch(const std::string& run_id, rendezvous::WatchId watch = kWatch,
                    AtEnd at_end = AtEnd::Follow);

  // The link is up and will stay so, with interruptions; null: there is none any more.
  void set_link(rendezvous::KeyValue* link);
  void begin();
  void end();
  [[nodiscard]] bool watches() const { return wanted_; }

  // Whether the event was this watch's, and is no business of anybody else.
  bool on_event(const rendezvous::KeyValueEvent& event);

  // Null: nothing is known yet. What was known last stays, while the store is away, too.
  [[nodiscard]] const jobs::Documents* documents() const { return known_ ? &documents_ : nullptr; }
  // The store's first snapshot since begin() has come, or none will.
  [[nodiscard]] bool settled() const { return came_ || !wanted_ || link_ == nullptr || rejected_; }

 private:
  [[nodiscard]] bool ends_job(const rendezvous::WatchChanges& changes) const;

  const rendezvous::Keys keys_;
  const rendezvous::WatchId id_;
  const AtEnd at_end_;
  rendezvous::KeyValue* link_ = nullptr;
  jobs::Documents documents_;
  bool wanted_ = false;
  bool known_ = false;
  bool came_ = false;      // since begin()
  bool rejected_ = false;  // by the store's limits
  bool over_ = false;      // nothing more is taken in
};

// What these documents say; of a job that has none yet, what its agent says. nullopt: the job runs,
// and this agent has not read what the store holds of it.
[[nodiscard]] std::optional<jobs::JobView> job_of(const jobs::Documents& documents,
                                                  const status::AgentStatus& own);
[[nodiscard]] jobs::AgentMetrics metrics_of(const status::AgentStatus& own);

}  // namespace drun::launcher
