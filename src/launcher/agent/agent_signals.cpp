#include "launcher/agent/agent_signals.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "launcher/process/detach.hpp"

namespace drun::launcher {
namespace {

pid_t await(pid_t child, int& status, int options) {
  pid_t result = -1;
  while ((result = ::waitpid(child, &status, options)) < 0 && errno == EINTR) {
  }
  return result;
}

}  // namespace

bool ignored_from_start(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool ignored_by_nohup(int signal) {
  return signal == SIGHUP && ignored_from_start(signal);
}

SignalMeaning meaning_of(int signal, const Options& options) {
  if (signal == SIGWINCH) return SignalMeaning::Resize;
  if (signal == SIGTSTP) return SignalMeaning::Suspend;
  const auto& forwarded = options.forward_signals;
  if (std::find(forwarded.begin(), forwarded.end(), signal) != forwarded.end())
    return SignalMeaning::Forward;
  return SignalMeaning::Stop;
}

AgentSignals::AgentSignals(asio::io_context& io, const Options& options)
    : options_(options), signals_(io), caught_() {
  sigemptyset(&caught_);
  for (const int signal : options.signals_to_handle)
    if (!ignored_by_nohup(signal)) add(signal);
  for (const int signal : options.forward_signals)
    add(signal);
  if (!ignored_from_start(SIGTSTP)) add(SIGTSTP);
  add(SIGWINCH);
}

AgentSignals::~AgentSignals() {
  ::pthread_sigmask(SIG_BLOCK, &caught_, nullptr);
}

void AgentSignals::add(int signal) {
  signals_.add(signal);
  sigaddset(&caught_, signal);
}

void AgentSignals::start(Call call) {
  call_ = std::move(call);
  wait();
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

void AgentSignals::cancel() {
  cancelled_ = true;
  signals_.cancel();
}

void AgentSignals::wait() {
  signals_.async_wait([this](asio::error_code error, int signal) {
    if (error) return;
    call_(meaning_of(signal, options_), signal);
    if (!cancelled_) wait();
  });
}

void ignore_write_signals() {
  for (const int signal : {SIGPIPE, SIGXFSZ})
    ::signal(signal, SIG_IGN);
}

void suspend(int signal) {
  sigset_t suspension;
  sigset_t before;
  sigemptyset(&suspension);
  sigaddset(&suspension, signal);
  ::pthread_sigmask(SIG_BLOCK, &suspension, &before);
  struct sigaction standard {};
  struct sigaction handler {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, &handler);
  ::raise(signal);
  ::pthread_sigmask(SIG_UNBLOCK, &suspension, nullptr);  // here it stops
  ::sigaction(signal, &handler, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool can_be_suspended() {
  pid_t child = 0;
  {
    // What is meant for drun must not reach it a second time through the child's handlers.
    const process::SignalBlock block;
    child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      suspend();
      ::_exit(0);
    }
  }
  int status = 0;
  if (child < 0 || await(child, status, WUNTRACED) != child || !WIFSTOPPED(status)) return false;
  ::kill(child, SIGKILL);
  await(child, status, 0);
  return true;
}

bool suspend_with(process::Guardian& guardian, int signal) {
  if (!can_be_suspended()) return false;
  guardian.signal_all(SIGSTOP);
  suspend(signal);
  guardian.signal_all(SIGCONT);
  return true;
}

}  // namespace drun::launcher
