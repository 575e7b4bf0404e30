// --on-event: commands of the user's that are run when something happens. They change nothing about
// the job, whatever becomes of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "base/deadline_timer.hpp"
#include "drun/events/event.hpp"
#include "launcher/agent/file_desk.hpp"
#include "launcher/events/event_choices.hpp"
#include "launcher/events/side_command.hpp"

namespace drun::launcher {

// What a hook's environment says of an event: DRUN_EVENT, DRUN_EVENT_JSON, and DRUN_EVENT_REASON
// and so on for each of its fields. Pure.
[[nodiscard]] std::vector<std::string> hook_environment(const events::Event& event);

// Works in the thread that runs `io`.
class EventHooks {
 public:
  static constexpr std::size_t kMostRunning = 4;  // at once
  static constexpr std::size_t kMostWaiting = 64;
  static constexpr std::chrono::seconds kLimit{30};  // of each; then SIGTERM
  static constexpr std::chrono::seconds kGrace{2};   // then SIGKILL

  // `hooks` must outlive this.
  EventHooks(asio::io_context& io, const std::vector<EventHook>& hooks);
  EventHooks(const EventHooks&) = delete;
  EventHooks& operator=(const EventHooks&) = delete;

  // `leads`: this node decides for the job.
  void tell(const events::Event& event, bool leads);
  // Calls `over`, once, when none runs any more; perhaps at once.
  void finish(std::function<void()> over);
  // Ends those that run, and waits for none.
  void give_up();

 private:
  struct Job {
    std::string command;
    std::vector<std::string> environment;
  };
  struct Running {
    Running(asio::io_context& io, std::function<void(Running&)> due)
        : ended(io), limit(io, [this, due = std::move(due)] { due(*this); }) {}
    SideCommand process;
    asio::posix::stream_descriptor ended;
    DeadlineTimer limit;
    std::string command;
    bool told_to_end = false;
  };

  void start();
  void watch(const std::string& command, SideCommand process);
  void on_limit(Running& running);
  void on_ended(Running& running);
  void look();

  asio::io_context& io_;
  const std::vector<EventHook>& hooks_;
  FileDesk desk_;
  std::deque<Job> waiting_;
  std::list<Running> running_;
  std::size_t starting_ = 0;
  bool too_many_ = false;  // was said
  bool given_up_ = false;
  std::function<void()> over_;
};

}  // namespace drun::launcher
