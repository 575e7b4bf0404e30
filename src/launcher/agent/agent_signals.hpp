// The signals that drun is sent, sorted by what they ask for.
#pragma once

#include <signal.h>

#include <functional>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>

#include "launcher/options/options.hpp"

namespace drun::launcher {

enum class SignalMeaning {
  Resize,   // the terminal has another size
  Suspend,  // Ctrl-Z
  Forward,  // for the workers; the job goes on
  Stop,
};
[[nodiscard]] SignalMeaning meaning_of(int signal, const Options& options);

class AgentSignals {
 public:
  using Call = std::function<void(SignalMeaning meaning, int signal)>;

  // `options` and `io` must outlive this. Catches the signals from here on; they wait for start().
  AgentSignals(asio::io_context& io, const Options& options);
  AgentSignals(const AgentSignals&) = delete;
  AgentSignals& operator=(const AgentSignals&) = delete;
  // Blocks them for good, in this thread: whoever ends now ends with its own code, not by a signal.
  ~AgentSignals();

  // `call` is called from the loop, once per signal, until cancel(). Unblocks all signals in this
  // thread: they may have been blocked until now, so that none is lost or kills drun as it starts.
  void start(Call call);
  void cancel();

 private:
  void add(int signal);
  void wait();

  const Options& options_;
  asio::signal_set signals_;
  sigset_t caught_;
  Call call_;
  bool cancelled_ = false;
};

// What cannot be written (nobody reads it, a file may not grow) is an error, and no signal.
void ignore_write_signals();

// SIGHUP where it is ignored from the start: the end of the terminal is not to end the job. Other
// signals that are ignored then (a shell's background jobs ignore SIGINT) are sent on purpose.
[[nodiscard]] bool ignored_by_nohup(int signal);

// Also for SIGTSTP: drun was started by something that knows no job control.
[[nodiscard]] bool ignored_from_start(int signal);

}  // namespace drun::launcher
