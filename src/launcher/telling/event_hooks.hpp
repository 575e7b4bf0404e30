// --on-event: commands of the user's that are run when something happens. They change nothing about
// the job, whatever becomes of them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "base/deadline_timer.hpp"
#include "base/file_desk.hpp"
#include "drun/base/result.hpp"
#include "drun/events/event.hpp"
#include "launcher/event_sinks/event_choices.hpp"
#include "launcher/event_sinks/side_command.hpp"

namespace drun::launcher {

// What a hook's environment says of an event: DRUN_EVENT, DRUN_EVENT_JSON, and DRUN_EVENT_REASON
// and so on for each of its fields. Pure.
[[nodiscard]] std::vector<std::string> hook_environment(const events::Event& event);

// Works in the thread that runs `io`.
class EventHooks {
 public:
  static constexpr std::size_t kMostRunning = 4;  // at once; of each hook one, in order
  static constexpr std::size_t kMostWaiting = 64;
  struct Limits {
    std::chrono::seconds each{30};    // of each command; then SIGTERM
    std::chrono::seconds at_end{30};  // of all, from finish() on; then SIGTERM
    std::chrono::seconds grace{2};    // then SIGKILL
    std::chrono::seconds give_up{1};  // for a file system, by give_up()
  };

  // `hooks` must outlive this.
  EventHooks(asio::io_context& io, const std::vector<EventHook>& hooks, Limits limits);
  EventHooks(asio::io_context& io, const std::vector<EventHook>& hooks)
      : EventHooks(io, hooks, Limits()) {}
  EventHooks(const EventHooks&) = delete;
  EventHooks& operator=(const EventHooks&) = delete;

  // `leads`: this node decides for the job.
  void tell(const events::Event& event, bool leads);
  // Calls `over`, once, when none runs any more; perhaps at once. Those for the end itself wait for
  // none but their hook's; what else still waits or runs `at_end` later is ended.
  void finish(std::function<void()> over);
  // Ends those that run or start, and waits for none.
  void give_up();

 private:
  struct Job {
    const EventHook* hook = nullptr;
    std::vector<std::string> environment;
    bool last = false;  // for the end of the job or of this agent
  };
  // What the thread that starts one shares with this one.
  struct Start {
    explicit Start(Job what) : job(std::move(what)) {}
    void begin();  // the thread
    void give_up(std::chrono::steady_clock::time_point deadline);

    const Job job;
    std::mutex mutex;  // guards what follows
    bool begins = false;
    bool given_up = false;
    std::optional<Result<SideCommand>> process;
    std::condition_variable begun;
  };
  struct Running {
    Running(asio::io_context& io, std::function<void(Running&)> due)
        : ended(io), limit(io, [this, due = std::move(due)] { due(*this); }) {}
    SideCommand process;
    asio::posix::stream_descriptor ended;
    DeadlineTimer limit;
    const EventHook* hook = nullptr;
    bool told_to_end = false;
  };

  void start();
  void run(Job job);
  void on_start(const std::shared_ptr<Start>& start, const std::optional<Error>& failed);
  void end(Running& running);
  void on_end_limit();
  void reap();
  void watch(const EventHook& hook, SideCommand process);
  void on_limit(Running& running);
  void on_ended(Running& running);
  void look();

  asio::io_context& io_;
  const std::vector<EventHook>& hooks_;
  const Limits limits_;
  FileDesk desk_;
  std::deque<Job> waiting_;
  std::list<std::shared_ptr<Start>> starting_;
  std::list<Running> running_;
  std::set<const EventHook*> busy_;        // each has one command that starts or runs
  std::size_t dropped_ = 0;                // commands, for want of room
  std::set<const EventHook*> dropped_of_;  // each is named once
  bool given_up_ = false;
  DeadlineTimer end_limit_;
  std::vector<pid_t> groups_;  // of those that have ended: something of theirs may still run
  std::function<void()> over_;
};

}  // namespace drun::launcher
