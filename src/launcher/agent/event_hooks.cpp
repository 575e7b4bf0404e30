#include "launcher/agent/event_hooks.hpp"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>

#include "base/file_worker.hpp"
#include "base/log.hpp"

namespace drun::launcher {

using Clock = std::chrono::steady_clock;

std::vector<std::string> hook_environment(const events::Event& event) {
  const events::KindInfo& info = events::info_of(event.kind);
  std::vector<std::string> result{"DRUN_EVENT=" + std::string(info.name),
                                  "DRUN_EVENT_JSON=" + to_json(event),
                                  "DRUN_EVENT_TIME=" + events::rfc3339(event.time_ns)};
  for (const auto fields : {events::common_fields(), info.fields}) {
    for (const events::Field& field : fields) {
      std::string entry = "DRUN_EVENT_";
      for (const char letter : field.name)
        entry += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
      result.push_back(entry + "=" + text_of(event, field));
    }
  }
  return result;
}

EventHooks::EventHooks(asio::io_context& io, const std::vector<EventHook>& hooks)
    : io_(io), hooks_(hooks), desk_(io, [] {}) {}

void EventHooks::tell(const events::Event& event, bool leads) {
  for (const EventHook& hook : hooks_) {
    const bool at_end = hook.at_end && leads && event.kind == events::Kind::Outcome;
    if (!at_end && !hook.wants(event.kind)) continue;
    if (waiting_.size() >= kMostWaiting) {
      if (!std::exchange(too_many_, true))
        log::warning("--on-event: too many events; not all commands are run");
      return;
    }
    waiting_.push_back({hook.command, hook_environment(event)});
  }
  start();
}

// In another thread: the shell's file system may hang.
void EventHooks::start() {
  while (!given_up_ && !waiting_.empty() && running_.size() + starting_ < kMostRunning) {
    auto job = std::make_shared<Job>(std::move(waiting_.front()));
    waiting_.pop_front();
    ++starting_;
    auto started = std::make_shared<Result<SideCommand>>();
    desk_.run(
        kFilesLimit,
        [job, started] { *started = start_side_command(job->command, job->environment, -1); },
        [this, job, started](const std::optional<Error>& failed) {
          --starting_;
          if (failed || !*started) {
            log::warning("--on-event: {}", failed ? failed->what() : started->error().what());
          } else {
            watch(job->command, std::move(**started));
          }
          look();
        });
  }
}

void EventHooks::watch(const std::string& command, SideCommand process) {
  Running& running = running_.emplace_back(io_, [this](Running& late) { on_limit(late); });
  running.command = command;
  running.process = std::move(process);
  running.ended.assign(running.process.pidfd.release());
  running.limit.set(Clock::now() + kLimit);
  running.ended.async_wait(asio::posix::descriptor_base::wait_read,
                           [this, &running](asio::error_code cancelled) {
                             if (!cancelled) on_ended(running);
                           });
  if (given_up_) signal_group(running.process, SIGKILL);
}

void EventHooks::on_limit(Running& running) {
  signal_group(running.process, running.told_to_end ? SIGKILL : SIGTERM);
  if (std::exchange(running.told_to_end, true)) return;
  log::warning("--on-event {}: not done within {} s", running.command, kLimit.count());
  running.limit.set(Clock::now() + kGrace);
}

void EventHooks::on_ended(Running& running) {
  const auto is_it = [&running](const Running& each) { return &each == &running; };
  if (std::none_of(running_.begin(), running_.end(), is_it)) return;  // given up meanwhile
  const std::string why = collect(running.process);
  if (!why.empty() && !running.told_to_end) log::warning("--on-event {}: {}", running.command, why);
  running_.remove_if(is_it);
  start();
  look();
}

void EventHooks::finish(std::function<void()> over) {
  over_ = std::move(over);
  look();
}

void EventHooks::give_up() {
  given_up_ = true;
  waiting_.clear();
  for (Running& running : running_) {
    signal_group(running.process, SIGKILL);
    running.limit.set(std::nullopt);
    running.ended.cancel();
  }
  starting_ = 0;
  running_.clear();
  look();
}

void EventHooks::look() {
  if (!over_ || !running_.empty() || starting_ > 0 || !waiting_.empty()) return;
  desk_.cancel();
  std::exchange(over_, nullptr)();
}

}  // namespace drun::launcher
