// An agent's workers in its event loop: waits for what the guardian reports and for a worker that
// reads the terminal, and hands both to the decisions of supervision.hpp. One thread: the loop's.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "launcher/options/options.hpp"
#include "launcher/output/output.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/workers/supervision.hpp"
#include "launcher/workers/terminal_input.hpp"

namespace drun::launcher {

class WorkerSupervisor {
 public:
  using Time = Supervision::Time;

  // Called from the loop, or from inside the calls below that say so.
  struct Calls {
    std::function<void(WorkerNews, Time now)> news;
    std::function<void()> batch_over;      // after the news of all that the guardian has reported
    std::function<void()> before_suspend;  // drun goes to sleep until a shell wakes it
  };

  // The references must outlive this.
  WorkerSupervisor(asio::io_context& io, const WorkerSpec& spec, const std::string& host,
                   process::ProcessRunner& processes, WorkerOutput& output, FileWork& file_work,
                   Calls calls, RoundServices services = {});
  WorkerSupervisor(const WorkerSupervisor&) = delete;
  WorkerSupervisor& operator=(const WorkerSupervisor&) = delete;

  // Listens to the guardian from here on, until everything is swept or close() is called.
  void listen();
  void close();

  // As Supervision's; their results go to `news`, from inside these two.
  void stop(const rendezvous::StopAction& action);
  void on_time();
  void start(const rendezvous::Assignment& assignment);
  // As Supervision's; on_time() follows.
  void on_fault(int local_rank, const RankFault& fault) {
    supervision_.on_fault(local_rank, fault);
  }
  void kill() { supervision_.kill(); }
  // As Supervision's; all news comes later.
  void sweep();
  // Waits for nothing that hangs any more: within about two seconds the news is that the
  // guardian is lost.
  void give_up() { processes_.give_up(); }
  void end_round() { supervision_.end_round(); }
  void forward(int signal) { supervision_.forward(signal); }
  // As ProcessRunner's.
  void say_at_end(const process::Farewell& farewell) { processes_.say_at_end(farewell); }
  // As Supervision's.
  void renew_lease(Time since, std::chrono::milliseconds length) {
    supervision_.renew_lease(since, length);
  }
  void stop_with(int signal) { supervision_.stop_with(signal); }
  [[nodiscard]] const WorkerGroup& group() const { return supervision_.group(); }
  [[nodiscard]] std::optional<EndNotices::WallTime> job_end() const {
    return supervision_.job_end(std::chrono::steady_clock::now(), std::chrono::system_clock::now());
  }
  [[nodiscard]] std::optional<std::string> expired(Time now) { return supervision_.expired(now); }
  [[nodiscard]] std::optional<std::string> countdown(Time now, bool interactive) const {
    return supervision_.countdown(now, interactive);
  }
  [[nodiscard]] std::optional<Time> next_deadline(Time now) const {
    return supervision_.next_deadline(now);
  }

  // Ctrl-Z: drun, and the workers with it unless they are being stopped. Returns when it goes on.
  void suspend();

 private:
  void wait();
  void watch_input();
  void on_background_read();

  const bool has_parent_drun_;  // which is the process that the shell knows
  process::ProcessRunner& processes_;
  asio::posix::stream_descriptor events_;
  BackgroundInput input_;
  Supervision supervision_;
  Calls calls_;
};

}  // namespace drun::launcher
