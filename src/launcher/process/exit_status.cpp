#include "launcher/process/exit_status.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "base/whole_number.hpp"

namespace drun::process {
namespace {

// SIGRTMIN as the C library gives it: it keeps the first two real-time signals for itself.

// The names as `kill -l` gives them, without SIG; if two have one number, the first is shown.
constexpr std::array kNames = {
    std::pair{"HUP", SIGHUP},       std::pair{"INT", SIGINT},   std::pair{"QUIT", SIGQUIT},
    std::pair{"ILL", SIGILL},       std::pair{"TRAP", SIGTRAP}, std::pair{"ABRT", SIGABRT},
    std::pair{"BUS", SIGBUS},       std::pair{"FPE", SIGFPE},   std::pair{"KILL", SIGKILL},
    std::pair{"USR1", SIGUSR1},     std::pair{"SEGV", SIGSEGV}, std::pair{"USR2", SIGUSR2},
    std::pair{"PIPE", SIGPIPE},     std::pair{"ALRM", SIGALRM}, std::pair{"TERM", SIGTERM},
#ifdef SIGSTKFLT
    std::pair{"STKFLT", SIGSTKFLT},
#endif
    std::pair{"CHLD", SIGCHLD},     std::pair{"CONT", SIGCONT}, std::pair{"STOP", SIGSTOP},
    std::pair{"TSTP", SIGTSTP},     std::pair{"TTIN", SIGTTIN}, std::pair{"TTOU", SIGTTOU},
    std::pair{"URG", SIGURG},       std::pair{"XCPU", SIGXCPU}, std::pair{"XFSZ", SIGXFSZ},
    std::pair{"VTALRM", SIGVTALRM}, std::pair{"PROF", SIGPROF}, std::pair{"WINCH", SIGWINCH},
    std::pair{"IO", SIGIO},         std::pair{"PWR", SIGPWR},   std::pair{"SYS", SIGSYS},
    std::pair{"IOT", SIGABRT},      std::pair{"CLD", SIGCHLD},  std::pair{"POLL", SIGIO},
};

// The number that all of `text` is, or -1.
int parse_number(std::string_view text) {
  return std::max(whole_number<int>(text).value_or(-1), -1);
}

int parse_real_time(std::string_view name) {
  const bool from_below = name.starts_with("RTMIN");
  if (!from_below && !name.starts_with("RTMAX")) return 0;
  const int base = from_below ? SIGRTMIN : SIGRTMAX;
  name.remove_prefix(5);
  if (name.empty()) return base;
  if (name.front() != (from_below ? '+' : '-') || name.size() < 2) return 0;
  const int offset = parse_number(name.substr(1));
  if (offset < 0 || offset > SIGRTMAX - SIGRTMIN) return 0;
  return from_below ? base + offset : base - offset;
}

}  // namespace

ExitStatus from_wait_status(int status) {
  ExitStatus result;
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
    result.core_dumped = WCOREDUMP(status);
  }
  return result;
}

std::string signal_name(int signal) {
  for (const auto& [name, number] : kNames)
    if (number == signal) return std::string("SIG") + name;
  if (signal == SIGRTMIN) return "SIGRTMIN";
  if (signal == SIGRTMAX) return "SIGRTMAX";
  if (signal > SIGRTMIN && signal < SIGRTMAX) {
    const int middle = SIGRTMIN + (SIGRTMAX - SIGRTMIN) / 2;
    return signal <= middle ? "SIGRTMIN+" + std::to_string(signal - SIGRTMIN)
                            : "SIGRTMAX-" + std::to_string(SIGRTMAX - signal);
  }
  return "signal " + std::to_string(signal);
}

int parse_signal(std::string_view text) {
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0) {
    const int number = parse_number(text);
    return number >= 1 && number <= kLastSignal ? number : 0;
  }
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string_view name = upper;
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (const auto& [known, number] : kNames)
    if (name == known) return number;
  return parse_real_time(name);
}

std::string describe(const ExitStatus& status) {
  if (status.signal != 0)
    return "killed by " + signal_name(status.signal) + (status.core_dumped ? " (core dumped)" : "");
  return "exit code " + std::to_string(status.code);
}

}  // namespace drun::process
