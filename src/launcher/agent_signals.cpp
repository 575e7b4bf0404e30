#include "launcher/agent_signals.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace drun::launcher {

bool ignored_by_nohup(int signal) {
  struct sigaction action {};
  return signal == SIGHUP && ::sigaction(signal, nullptr, &action) == 0 &&
         action.sa_handler == SIG_IGN;
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
    : options_(options), signals_(io) {
  for (const int signal : options.signals_to_handle)
    if (!ignored_by_nohup(signal)) signals_.add(signal);
  for (const int signal : options.forward_signals)
    signals_.add(signal);
  for (const int signal : {SIGTSTP, SIGWINCH})
    signals_.add(signal);
}

void AgentSignals::start(Call call) {
  call_ = std::move(call);
  wait();
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

void suspend() {
  ::raise(SIGSTOP);
}

void suspend_with(process::Guardian& guardian) {
  guardian.signal_all(SIGSTOP);
  suspend();
  guardian.signal_all(SIGCONT);
}

}  // namespace drun::launcher
