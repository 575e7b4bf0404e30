#include "launcher/telling/event_hooks.hpp"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/file_worker.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"

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

EventHooks::EventHooks(asio::io_context& io, const std::vector<EventHook>& hooks, Limits limits)
    : io_(io), hooks_(hooks), limits_(limits), desk_(io, [] {}), end_limit_(io, [this] {
        on_end_limit();
      }) {}

void EventHooks::tell(const events::Event& event, bool leads) {
  reap();
  const bool last = event.kind == events::Kind::Outcome || event.kind == events::Kind::AgentEnded;
  for (const EventHook& hook : hooks_) {
    const bool at_end = hook.at_end && leads && event.kind == events::Kind::Outcome;
    if (!at_end && !hook.wants(event.kind)) continue;
    if (!last && waiting_.size() >= kMostWaiting) {
      ++dropped_;
      if (dropped_of_.insert(&hook).second)
        log::warning("--on-event {}: too many events: it is not run at '{}'{}", hook.command,
                     events::info_of(event.kind).name,
                     event.reason.empty() ? "" : " (" + printable(event.reason) + ")");
      continue;
    }
    waiting_.push_back({&hook, hook_environment(event), last});
  }
  start();
}

// The commands of one hook in order, so that a file that they write to is in order, too.
void EventHooks::start() {
  for (auto next = waiting_.begin(); !given_up_ && next != waiting_.end();) {
    const bool room = busy_.size() < kMostRunning || (over_ && next->last);
    if (!room || busy_.contains(next->hook)) {
      ++next;
      continue;
    }
    Job job = std::move(*next);
    next = waiting_.erase(next);
    run(std::move(job));
  }
}

void EventHooks::Start::begin() {
  std::unique_lock lock(mutex);
  if (given_up) return;
  begins = true;
  lock.unlock();
  auto result = start_side_command(job.hook->command, job.environment, -1);
  lock.lock();
  if (given_up && result) signal_group(*result, SIGKILL);
  process = std::move(result);
  begins = false;
  begun.notify_one();
}

// A process that is being started only its thread knows, which ends with this process.
void EventHooks::Start::give_up(Clock::time_point deadline) {
  std::unique_lock lock(mutex);
  given_up = true;
  if (process && *process) signal_group(**process, SIGKILL);
  begun.wait_until(lock, deadline, [this] { return !begins; });
}

// In another thread: the shell's file system may hang.
void EventHooks::run(Job job) {
  busy_.insert(job.hook);
  const auto& next = starting_.emplace_back(std::make_shared<Start>(std::move(job)));
  desk_.run(
      kFilesLimit, [next] { next->begin(); },
      [this, next](const std::optional<Error>& failed) { on_start(next, failed); });
}

void EventHooks::on_start(const std::shared_ptr<Start>& started,
                          const std::optional<Error>& failed) {
  starting_.remove(started);
  if (given_up_) return;
  if (failed || !*started->process) {
    log::warning("--on-event: {}", failed ? failed->what() : started->process->error().what());
    if (failed) started->give_up(Clock::now());  // its thread may still begin it
    busy_.erase(started->job.hook);
    start();
  } else {
    watch(*started->job.hook, std::move(**started->process));
  }
  look();
}

void EventHooks::watch(const EventHook& hook, SideCommand process) {
  Running& running = running_.emplace_back(io_, [this](Running& late) { on_limit(late); });
  running.hook = &hook;
  running.process = std::move(process);
  std::erase(groups_, running.process.pid);  // the number of an earlier one, none of which is left
  running.ended.assign(running.process.pidfd.release());
  running.limit.set(Clock::now() + limits_.each);
  running.ended.async_wait(asio::posix::descriptor_base::wait_read,
                           [this, &running](asio::error_code cancelled) {
                             if (!cancelled) on_ended(running);
                           });
}

void EventHooks::on_limit(Running& running) {
  if (running.told_to_end) return signal_group(running.process, SIGKILL);
  log::warning("--on-event {}: not done within {} s", running.hook->command, limits_.each.count());
  end(running);
}

void EventHooks::end(Running& running) {
  if (std::exchange(running.told_to_end, true)) return;
  signal_group(running.process, SIGTERM);
  running.limit.set(Clock::now() + limits_.grace);
}

void EventHooks::on_end_limit() {
  std::set<const EventHook*> hooks;
  for (const Running& running : running_)
    hooks.insert(running.hook);
  for (const Job& job : waiting_)
    if (!job.last) hooks.insert(job.hook);
  std::string commands;
  for (const EventHook* const hook : hooks)
    commands += (commands.empty() ? "" : "; ") + hook->command;
  const auto dropped = std::erase_if(waiting_, [](const Job& job) { return !job.last; });
  if (dropped > 0 || !running_.empty())
    log::warning("--on-event: drun ends; {} commands are ended, {} were not run: {}",
                 running_.size(), dropped, commands);
  for (Running& running : running_)
    end(running);
}

// What a command has left in the background comes to this process when its shell has ended.
void EventHooks::reap() {
  std::erase_if(groups_, [](pid_t group) { return reap_group(group); });
}

void EventHooks::on_ended(Running& running) {
  const auto is_it = [&running](const Running& each) { return &each == &running; };
  if (std::none_of(running_.begin(), running_.end(), is_it)) return;  // given up meanwhile
  const std::string why = collect(running.process);
  groups_.push_back(running.process.pid);
  reap();
  if (!why.empty() && !running.told_to_end)
    log::warning("--on-event {}: {}", running.hook->command, why);
  busy_.erase(running.hook);
  running_.remove_if(is_it);
  start();
  look();
}

void EventHooks::finish(std::function<void()> over) {
  over_ = std::move(over);
  if (dropped_ > 1) log::warning("--on-event: too many events: {} commands were not run", dropped_);
  end_limit_.set(Clock::now() + limits_.at_end);
  start();
  look();
}

void EventHooks::give_up() {
  given_up_ = true;
  waiting_.clear();
  const auto deadline = Clock::now() + limits_.give_up;
  for (const auto& start : starting_)
    start->give_up(deadline);
  for (Running& running : running_) {
    signal_group(running.process, SIGKILL);
    running.limit.set(std::nullopt);
    running.ended.cancel();
  }
  busy_.clear();
  running_.clear();
  look();
}

void EventHooks::look() {
  if (!over_ || !busy_.empty() || !waiting_.empty()) return;
  desk_.cancel();
  end_limit_.set(std::nullopt);
  std::exchange(over_, nullptr)();
}

}  // namespace drun::launcher
