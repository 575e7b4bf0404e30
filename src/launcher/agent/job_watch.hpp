// The documents of this agent's job, looked at only while somebody asks: through the agent's own
// link to the store, so that it goes where that goes. Pure but for the calls to the KeyValue.
#pragma once

#include <optional>
#include <string>

#include "jobs/job_view.hpp"
#include "jobs/metrics.hpp"
#include "rendezvous/key_value.hpp"
#include "status/agent_status.hpp"

namespace drun::launcher {

class JobWatch {
 public:
  static constexpr rendezvous::WatchId kWatch = 0xFFFFFFFE;  // the participant counts from 1

  // Each of several has its own number.
  explicit JobWatch(const std::string& run_id, rendezvous::WatchId watch = kWatch);

  // The link is up and will stay so, with interruptions; null: there is none any more.
  void set_link(rendezvous::KeyValue* link);
  void begin();
  void end();
  [[nodiscard]] bool watches() const { return wanted_; }

  // Whether the event was this watch's, and is no business of anybody else.
  bool on_event(const rendezvous::KeyValueEvent& event);

  // Null: nothing is known yet. What was known last stays, while the store is away, too.
  [[nodiscard]] const jobs::Documents* documents() const { return known_ ? &documents_ : nullptr; }
  // What the store holds has come since begin(), or is not to be had.
  [[nodiscard]] bool settled() const { return came_ || !wanted_ || link_ == nullptr || rejected_; }

 private:
  const std::string prefix_;
  const rendezvous::WatchId id_;
  rendezvous::KeyValue* link_ = nullptr;
  jobs::Documents documents_;
  bool wanted_ = false;
  bool known_ = false;
  bool came_ = false;      // since begin()
  bool rejected_ = false;  // by the store's limits
};

// What these documents say; of a job that has none yet, what its agent says. nullopt: the job runs,
// and this agent has not read what the store holds of it.
[[nodiscard]] std::optional<jobs::JobView> job_of(const jobs::Documents& documents,
                                                  const status::AgentStatus& own);
[[nodiscard]] jobs::AgentMetrics metrics_of(const status::AgentStatus& own);

}  // namespace drun::launcher
