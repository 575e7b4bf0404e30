#include "launcher/signals/agent_signals.hpp"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "launcher/process/exit_status.hpp"

namespace drun::launcher {
namespace {

// Those whose default action ends a process, but for the ones that tell of an error in it, that
// nobody can catch, or that drun ignores (ignore_write_signals()).
std::vector<int> deadly_signals() {
  std::vector<int> signals{SIGHUP,  SIGINT,    SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM,
                           SIGTERM, SIGVTALRM, SIGPROF, SIGIO,   SIGPWR,  SIGXCPU};
#ifdef SIGSTKFLT
  signals.push_back(SIGSTKFLT);
#endif
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal)
    signals.push_back(signal);
  return signals;
}

}  // namespace

bool ignored_from_start(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool ignored_by_nohup(int signal) {
  return signal == SIGHUP && ignored_from_start(signal);
}

SignalMeaning meaning_of(int signal, const SignalChoices& choices, bool stopping) {
  if (signal == SIGWINCH) return SignalMeaning::Resize;
  if (signal == SIGTSTP) return SignalMeaning::Suspend;
  const auto& forwarded = choices.forward_signals;
  if (std::find(forwarded.begin(), forwarded.end(), signal) != forwarded.end())
    return SignalMeaning::Forward;
  if (signal == SIGQUIT && !choices.quit_stops && (!stopping || choices.quit_ignored))
    return SignalMeaning::Stacks;
  return SignalMeaning::Stop;
}

bool takes_node_out(int signal, const SignalChoices& choices) {
  return signal == SIGTERM && choices.leave_on_sigterm;
}

std::vector<int> signals_of_agent(const SignalChoices& choices) {
  std::vector<int> signals;
  for (const int signal : choices.signals_to_handle)
    if (!ignored_by_nohup(signal)) signals.push_back(signal);
  signals.insert(signals.end(), choices.forward_signals.begin(), choices.forward_signals.end());
  if (!ignored_from_start(SIGTSTP)) signals.push_back(SIGTSTP);
  signals.push_back(SIGWINCH);
  for (const int signal : deadly_signals()) {
    const bool named = std::find(signals.begin(), signals.end(), signal) != signals.end();
    // SIGQUIT asks for stacks: a shell that has it ignored does not mean that.
    if (!named && (signal == SIGQUIT || !ignored_from_start(signal))) signals.push_back(signal);
  }
  return signals;
}

std::optional<std::string> ForwardedSignals::describe(int signal, bool nobody, bool several_nodes) {
  const auto [told, first] = told_.try_emplace(signal, nobody);
  if (!first && std::exchange(told->second, nobody) == nobody) return std::nullopt;
  const std::string received = "received " + process::signal_name(signal);
  if (nobody) return received + ", but no worker runs here now: nobody gets it";
  return received + ": passed on to the workers" + (several_nodes ? " of this node" : "");
}

CaughtSignals::CaughtSignals(asio::io_context& io, const std::vector<int>& signals)
    : signals_(io), caught_() {
  sigemptyset(&caught_);
  for (const int signal : signals) {
    signals_.add(signal);
    sigaddset(&caught_, signal);
  }
}

CaughtSignals::~CaughtSignals() {
  ::pthread_sigmask(SIG_BLOCK, &caught_, nullptr);
}

void CaughtSignals::start(Call call) {
  call_ = std::move(call);
  wait();
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

void CaughtSignals::cancel() {
  cancelled_ = true;
  signals_.cancel();
}

void CaughtSignals::wait() {
  signals_.async_wait([this](asio::error_code error, int signal) {
    if (error) return;
    call_(signal);
    if (!cancelled_) wait();
  });
}

void ignore_write_signals() {
  for (const int signal : {SIGPIPE, SIGXFSZ})
    ::signal(signal, SIG_IGN);
}

}  // namespace drun::launcher
