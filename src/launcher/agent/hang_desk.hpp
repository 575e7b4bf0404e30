// What the agent does about workers that hang: --hang-timeout, --on-hang, the limits of heartbeats,
// and torch's timers.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>

#include "hang/file_timers.hpp"
#include "launcher/agent/participant_driver.hpp"
#include "launcher/job_stacks/agent_stacks.hpp"
#include "launcher/options/options.hpp"
#include "launcher/telling/event_reporter.hpp"
#include "launcher/telling/status_reporter.hpp"
#include "launcher/watch/beat_note.hpp"
#include "launcher/watch/hang_watch.hpp"
#include "launcher/watch/heartbeat_watch.hpp"
#include "launcher/workers/hung_ranks.hpp"
#include "launcher/workers/worker_supervisor.hpp"
#include "rendezvous/key_value.hpp"
#include "status/agent_status.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks. Without a limit it does nothing, and has no thread
// of its own.
class HangDesk {
 public:
  // All of it must outlive this.
  struct Parts {
    asio::io_context& io;
    const Options& options;
    WorkerSupervisor& workers;
    ParticipantDriver& participant;
    EventReporter& events;
    StatusReporter& status;
    AgentStacks& stacks;
    std::function<void()> news;  // the workers, or the participant, have something to do
  };
  explicit HangDesk(Parts parts);

  void start();
  void cancel();
  // As BeatNote's.
  void use_store(rendezvous::KeyValue& store, std::string_view ticket) { note_.use(store, ticket); }
  void forget_store() { note_.forget_store(); }
  // As HangWatch's.
  void on_stalled(bool stalled);
  // No worker of the job makes progress.
  void on_hang();
  // A timer of torch's is over.
  void on_timer(const hang::FileTimers::Expired& timer);
  // As HangWatch's.
  void on_held(bool held) { hangs_.on_held(held); }
  // As HeartbeatWatch's.
  [[nodiscard]] std::optional<status::RankBeat> behind() const { return heartbeats_.behind(); }
  // As AgentStacks': if the stop is for a hang, the ranks are asked for their dumps first.
  [[nodiscard]] bool hold(const rendezvous::StopAction& action, std::function<void()> go_on);
  // Dumps of the flight recorder that this node's ranks have written.
  [[nodiscard]] std::vector<std::string> dumps() const { return {dumps_.begin(), dumps_.end()}; }
  // Who has not come to a collective of others; empty: nobody asked, or all have.
  [[nodiscard]] std::string collective() const;

 private:
  void on_looked();
  void on_late(const std::vector<HungRank>& late);
  void on_waiting(const std::vector<WaitingRank>& waiting);
  void act_on(const std::vector<WaitingRank>& waiting);
  void fail_hanging(const std::vector<WaitingRank>& waiting);
  void on_found(std::vector<HungRank> hung);
  void warn(const HungRank& rank, const std::string& more = "");
  void ask_for_dumps(std::function<void()> go_on);
  [[nodiscard]] std::function<void()> in_this_round(std::function<void()> act) const;
  void fail(const std::vector<HungRank>& hung);
  [[nodiscard]] std::chrono::milliseconds dump_limit() const;
  [[nodiscard]] bool is_first() const { return group_.assignment().group_rank == 0; }
  void say(const std::string& text);

  const Parts parts_;
  const WorkerGroup& group_;
  BeatNote note_;
  HeartbeatWatch heartbeats_;
  HangWatch hangs_;
  bool went_on_ = false;  // as HangWatch has said last: workers of this node make progress
  int dumped_ = 0;        // the round whose ranks were asked for dumps last
  std::vector<std::function<void()>> after_dumps_;  // called when they are there
  int held_ = 0;                                    // stops so far
  std::set<std::string> dumps_;
};

}  // namespace drun::launcher
