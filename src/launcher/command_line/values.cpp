#include "launcher/command_line/values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/printable.hpp"
#include "base/trimmed.hpp"
#include "cli/usage_error.hpp"

namespace drun::launcher {
namespace {

// A signal number from a name or number; 0: none.
int signal_number(std::string_view text) {
  const int number = process::parse_signal(text);
  return number >= 1 && number <= 64 ? number : 0;
}

// "137", "1-9" -> codes; "SIGKILL", "KILL" -> a signal
bool add_exit(std::string_view item, ExitSet& set) {
  const auto dash = item.find('-');
  const auto low = cli::lenient_integer(item.substr(0, dash));
  if (!low) {
    const int signal = signal_number(item);
    if (signal != 0) set.signals.set(static_cast<std::size_t>(signal));
    return signal != 0;
  }
  const auto high =
      dash == std::string_view::npos ? low : cli::lenient_integer(item.substr(dash + 1));
  if (!high || *low < 0 || *high > 255 || *low > *high) return false;
  for (auto code = *low; code <= *high; ++code)
    set.codes.set(static_cast<std::size_t>(code));
  return true;
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> result;
  while (true) {
    const auto at = text.find(separator);
    result.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return result;
    text.remove_prefix(at + 1);
  }
}

const cli::Setting* filled(const cli::GivenFlags& flags, std::string_view name) {
  const cli::Setting* setting = flags.find(name);
  return setting != nullptr && !setting->value.empty() ? setting : nullptr;
}

NodeNumbers parse_nodes(const cli::Setting& setting) {
  constexpr std::int64_t kMost = 100'000;
  const auto parts = split(setting.value, ':');
  if (parts.size() > 3) refuse(setting, "expected N, MIN:MAX or MIN:MAX:STEP");
  const auto low = cli::lenient_integer(parts.front());
  const auto high = cli::lenient_integer(parts[parts.size() == 1 ? 0 : 1]);
  const auto step =
      parts.size() == 3 ? cli::lenient_integer(parts.back()) : std::optional<std::int64_t>(1);
  if (!low || !high || !step)
    refuse(setting, "expected N, MIN:MAX or MIN:MAX:STEP, all whole numbers");
  if (*low < 1) refuse(setting, "at least one node must take part");
  if (*high > kMost) refuse(setting, "at most " + std::to_string(kMost) + " nodes");
  if (*low > *high) refuse(setting, "MIN is greater than MAX");
  if (*step < 1) refuse(setting, "a step is one node at least");
  if (*low % *step != 0 || *high % *step != 0) {
    const std::int64_t least = (*low + *step - 1) / *step * *step;
    const std::int64_t most = std::max(*high / *step * *step, least);
    refuse(setting, "MIN and MAX must be multiples of the step " + std::to_string(*step) +
                        ": say " + std::to_string(least) + ":" + std::to_string(most) + ":" +
                        std::to_string(*step));
  }
  return {static_cast<int>(*low), static_cast<int>(*high), static_cast<int>(*step)};
}

std::vector<int> parse_signals(const cli::Setting& setting) {
  std::vector<int> result;
  if (setting.value.empty()) return result;
  for (const std::string& name : split(setting.value, ',')) {
    const std::string given(trimmed(name));
    const int number = signal_number(given);
    if (number == 0) {
      refuse(setting,
             "there is no signal " + in_quotes(given) + "; expected names such as SIGTERM,SIGUSR1");
    }
    if (number == SIGKILL || number == SIGSTOP) {
      refuse(setting, "no program can catch " + process::signal_name(number));
    }
    if (std::find(result.begin(), result.end(), number) == result.end()) result.push_back(number);
  }
  return result;
}

int parse_stop_signal(const cli::Setting& setting) {
  const int number = signal_number(setting.value);
  if (number == 0) refuse(setting, "expected a signal such as SIGTERM or SIGINT");
  if (number == SIGSTOP || number == SIGCONT) {
    refuse(setting, process::signal_name(number) + " does not end a process");
  }
  return number;
}

EndNotice parse_end_notice(const cli::Setting& setting) {
  const auto at = setting.value.find('@');
  if (at == std::string::npos) refuse(setting, "expected a signal and a time, as in USR1@120");
  cli::Setting part = setting;
  part.value = setting.value.substr(0, at);
  EndNotice notice;
  const auto signals = parse_signals(part);
  if (signals.size() != 1) refuse(setting, "expected one signal and a time, as in USR1@120");
  notice.signal = signals.front();
  part.value = setting.value.substr(at + 1);
  try {
    notice.before = cli::parse_duration(part, false);
  } catch (const cli::UsageError&) {
    refuse(setting, "expected a time behind the @, as in USR1@120 or USR1@5m");
  }
  return notice;
}

ExitSet parse_exit_set(const cli::Setting& setting) {
  ExitSet result;
  for (const std::string& item : split(setting.value, ',')) {
    if (!add_exit(item, result)) {
      refuse(setting, in_quotes(item) +
                          " is no exit code (0-255), range or signal; expected a list such as "
                          "1-9,137,SIGKILL");
    }
  }
  return result;
}

rendezvous::ExitCodePolicy parse_exit_code_policy(const cli::Setting& setting) {
  using enum rendezvous::ExitCodePolicy;
  if (setting.shown == "--exit-code" || setting.shown == "PET_EXIT_CODE") {
    if (setting.value == "root") return FirstFailure;
    if (setting.value == "first") return LowestRank;
    if (setting.value == "max") return Highest;
  }
  constexpr rendezvous::ExitCodePolicy kPolicies[] = {FirstFailure, LowestRank, Highest};
  return kPolicies[cli::parse_choice(setting)];
}

StreamChoice parse_streams(const cli::Setting& setting) {
  const char* const why =
      "expected 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or such a number per local rank as "
      "in 0:3,1:1";
  const auto bits = [&](std::string_view text) {
    if (text.size() != 1 || text.front() < '0' || text.front() > '3') refuse(setting, why);
    return text.front() - '0';
  };
  StreamChoice result;
  if (setting.value.find(':') == std::string::npos) {
    result.all = bits(setting.value);
    return result;
  }
  for (const std::string& item : split(setting.value, ',')) {
    const auto parts = split(item, ':');
    const auto rank = cli::lenient_integer(parts.front());
    if (parts.size() != 2 || !rank || *rank < 0 || *rank > 1'000'000) refuse(setting, why);
    result.by_local_rank[static_cast<int>(*rank)] = bits(parts.back());
  }
  return result;
}

std::vector<int> parse_ranks(const cli::Setting& setting) {
  std::vector<int> result;
  for (const std::string& item : split(setting.value, ',')) {
    const auto rank = cli::lenient_integer(item);
    if (!rank || *rank < 0 || *rank > 1'000'000) {
      refuse(setting, "expected local ranks with commas between, as in 0,1");
    }
    result.push_back(static_cast<int>(*rank));
  }
  return result;
}

std::vector<std::string> parse_texts(const cli::Setting& setting) {
  std::vector<std::string> result;
  std::string current;
  const std::string& text = setting.value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      current += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == ',') {
      current += ',';
      ++i;
    } else {
      if (!current.empty()) result.push_back(current);
      current.clear();
    }
  }
  if (!current.empty()) result.push_back(current);
  return result;
}

}  // namespace drun::launcher
