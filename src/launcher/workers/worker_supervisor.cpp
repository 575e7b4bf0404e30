#include "launcher/workers/worker_supervisor.hpp"

#include <signal.h>
#include <unistd.h>

#include <utility>

#include <asio/post.hpp>

#include "base/file_descriptor.hpp"
#include "launcher/process/suspension.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

WorkerSupervisor::WorkerSupervisor(asio::io_context& io, const WorkerSpec& spec,
                                   const std::string& host, process::ProcessRunner& processes,
                                   WorkerOutput& output, FileWork& file_work, Calls calls,
                                   RoundServices services)
    : has_parent_drun_(spec.local_node >= 0),
      processes_(processes),
      events_(io, duplicate(processes.fd(), "listen to the guardian").release()),
      input_(io, has_parent_drun_ ? ::getpgid(::getppid()) : ::getpgrp()),
      supervision_(spec, host, processes, output, file_work, Clock::now(), std::move(services)),
      calls_(std::move(calls)) {}

void WorkerSupervisor::listen() {
  wait();
}

void WorkerSupervisor::wait() {
  events_.async_wait(asio::posix::descriptor_base::wait_read, [this](asio::error_code cancelled) {
    if (cancelled) return;
    const auto now = Clock::now();
    for (const auto& event : processes_.receive())
      calls_.news(supervision_.on_event(event, now), now);
    if (!supervision_.over()) wait();
    calls_.batch_over();
  });
}

void WorkerSupervisor::close() {
  events_.cancel();
  input_.cancel();
}

void WorkerSupervisor::start(const rendezvous::Assignment& assignment) {
  supervision_.start(assignment, Clock::now());
  watch_input();
}

void WorkerSupervisor::stop(const rendezvous::StopAction& action) {
  const auto now = Clock::now();
  calls_.news(supervision_.stop(action, now), now);
}

void WorkerSupervisor::on_time() {
  const auto now = Clock::now();
  calls_.news(supervision_.on_time(now), now);
  supervision_.warn_of_end(now, std::chrono::system_clock::now());
}

// Posted: the caller is in the middle of another event and must not hear of this one inside it.
void WorkerSupervisor::sweep() {
  WorkerNews news = supervision_.sweep();
  if (!news.swept) return;
  asio::post(events_.get_executor(), [this, news = std::move(news)]() mutable {
    calls_.news(std::move(news), Clock::now());
  });
}

void WorkerSupervisor::suspend() {
  calls_.before_suspend();
  if (supervision_.ending()) {
    // They need their time, so this process stops alone.
    process::suspend();
  } else {
    (void)processes_.suspend(SIGTSTP);
  }
  watch_input();
}

void WorkerSupervisor::watch_input() {
  input_.cancel();
  if (supervision_.has_input()) input_.watch([this] { on_background_read(); });
}

// A worker reads the terminal while drun is in the background: as any job, it waits for the shell
// to bring it to the foreground.
void WorkerSupervisor::on_background_read() {
  if (supervision_.ending()) return;
  calls_.before_suspend();
  if (has_parent_drun_) {
    input_.cancel();
    ::kill(::getppid(), SIGTTIN);  // it suspends its agents, this one among them
  } else if (!processes_.suspend(SIGTTIN)) {
    input_.cancel();
  }
}

}  // namespace drun::launcher
