// The signals that drun is sent, sorted by what they ask for.
#pragma once

#include <signal.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>

#include "launcher/options/options.hpp"

namespace drun::launcher {

enum class SignalMeaning {
  Resize,   // the terminal has another size
  Suspend,  // Ctrl-Z
  Forward,  // for the workers; the job goes on
  Stacks,   // where the workers are; the job goes on
  Stop,
};
// `stopping`: one has asked to stop before. A user who presses Ctrl-\ then is in a hurry.
[[nodiscard]] SignalMeaning meaning_of(int signal, const SignalChoices& choices,
                                       bool stopping = false);
// Of a signal to stop: only this node is to go.
[[nodiscard]] bool takes_node_out(int signal, const SignalChoices& choices);

// What an agent catches: what the user named, what a terminal sends, and all else that would end it
// without a word, unless that was ignored from the start.
[[nodiscard]] std::vector<int> signals_of_agent(const SignalChoices& choices);

// What becomes of the signals to forward, in words. Some are sent again and again: each is told of
// again only when something else becomes of it. Pure.
class ForwardedSignals {
 public:
  // `nobody`: no worker of this node runs. Nullopt: nothing new.
  [[nodiscard]] std::optional<std::string> describe(int signal, bool nobody, bool several_nodes);

 private:
  std::map<int, bool> told_;  // of a signal: that nobody got it
};

class CaughtSignals {
 public:
  using Call = std::function<void(int signal)>;

  // `io` must outlive this. Catches the signals (one may be named twice) from here on; they wait
  // for start().
  CaughtSignals(asio::io_context& io, const std::vector<int>& signals);
  CaughtSignals(const CaughtSignals&) = delete;
  CaughtSignals& operator=(const CaughtSignals&) = delete;
  // Blocks them for good, in this thread: a process that ends now ends with its own code, not by a
  // signal.
  ~CaughtSignals();

  // `call` is called from the loop, once per signal, until cancel(). Unblocks all signals in this
  // thread: they may have been blocked until now, so that none is lost or kills drun as it starts.
  void start(Call call);
  void cancel();

 private:
  void wait();

  asio::signal_set signals_;
  sigset_t caught_;
  Call call_;
  bool cancelled_ = false;
};

// A write that fails (nobody reads, a file may not grow) becomes an error, not a signal.
void ignore_write_signals();

// SIGHUP, if it is ignored from the start: the end of the terminal is not to end the job. Other
// signals that are ignored then (a shell's background jobs ignore SIGINT) are sent on purpose.
[[nodiscard]] bool ignored_by_nohup(int signal);

// Also for SIGTSTP: drun was started by something that knows no job control.
[[nodiscard]] bool ignored_from_start(int signal);

}  // namespace drun::launcher
