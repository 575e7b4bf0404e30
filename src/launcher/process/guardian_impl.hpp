// What an agent's handle on its guardian does behind the calls: talks to both helpers, hears of
// their ends, and does their work if they cannot.
#pragma once

#include <signal.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/file_descriptor.hpp"
#include "launcher/process/channel.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/process/lease.hpp"
#include "launcher/process/stop_limit.hpp"

namespace drun::process {

// What receive() waits for. Made before the fork: if it fails, nothing has begun.
struct Waiting {
  Waiting();
  FileDescriptor events;  // epoll: everything that receive() must look at
  FileDescriptor wake;    // eventfd: `received` holds something
  StopLimit stop_limit;
};

// So many workers the guardian is sent at a time: one has up to four descriptors on their way
// through it, and it needs some for itself.
[[nodiscard]] std::size_t spawn_window(const GuardianOptions& options);

struct Guardian::Impl {
  // A worker that the guardian has not been told of.
  struct Outgoing {
    WorkerId id = 0;
    std::string message;
    std::vector<FileDescriptor> descriptors;
  };

  Impl(Waiting waiting, FileDescriptor command_socket, FileDescriptor watchdog_socket,
       pid_t watchdog_pid, bool sole_parent, GuardianOptions start_options)
      : commands(std::move(command_socket)),
        watchdog(std::move(watchdog_socket)),
        events(std::move(waiting.events)),
        wake(std::move(waiting.wake)),
        watchdog_process(watchdog_pid),
        stop_limit(std::move(waiting.stop_limit)),
        only_children(sole_parent),
        options(std::move(start_options)),
        most_unanswered(spawn_window(options)) {
    watch(EPOLL_CTL_ADD, wake.get(), EPOLLIN);
    watch(EPOLL_CTL_ADD, commands.fd(), EPOLLIN);
    watch(EPOLL_CTL_ADD, watchdog.get(), EPOLLIN);
    watch(EPOLL_CTL_ADD, stop_limit.fd(), EPOLLIN);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  void watch(int operation, int fd, std::uint32_t what) const {
    epoll_event event{};
    event.events = what;
    ::epoll_ctl(events.get(), operation, fd, &event);
  }
  void await_hello();
  void send(std::string message, std::vector<FileDescriptor> descriptors = {});
  void send_spawns();
  void cancel_spawns();
  void wake_receiver();
  void on_event(GuardianEvent event);
  void tell_watchdog(const std::string& message) const;
  void flush();
  void read_commands();
  void on_hello(pid_t guardian);
  void signal_guardian(int signal) const;
  void read_watchdog();
  void on_stop_limit();
  bool await_end_of_watchdog(std::chrono::milliseconds limit) const;
  void end_watchdog();
  void order_end();
  void kill_job();

  Channel commands;
  FileDescriptor watchdog;
  FileDescriptor events;
  FileDescriptor wake;
  pid_t watchdog_process;
  pid_t guardian_process = 0;
  FileDescriptor guardian_pidfd;
  StopLimit stop_limit;
  bool given_up = false;
  bool left_behind = false;  // the helpers are not waited for
  // This process had no children before, so all it ever gets are the job's.
  bool only_children;
  GuardianOptions options;
  LeaseClock clock{std::chrono::steady_clock::now(), boot_now()};
  // The guardian always reads what it is sent, so it is sent no more workers at a time than it can
  // open descriptors for. The rest waits here.
  std::deque<Outgoing> spawns;
  std::size_t unanswered = 0;
  std::size_t most_unanswered;
  bool guardian_gone = false;
  bool watchdog_gone = false;
  bool watchdog_did_its_work = false;
  bool end_ordered = false;
  bool has_farewell = false;
  bool lost_told = false;
  bool watches_write = false;
  bool woken = false;                         // `wake` is readable
  GuardianLost lost{{0, SIGKILL, false}, 0};  // the event to report when it is
  std::vector<GuardianEvent> received;        // for the next receive()
};

}  // namespace drun::process
