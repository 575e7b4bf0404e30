#include "launcher/command_line/options_values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/trimmed.hpp"

namespace drun::launcher {
namespace {

// Blanks around a number come with quoted values of scripts and of files from Windows; torchrun
// does not mind them either.
std::optional<long long> whole_number(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  long long value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string range_text(int lowest, int highest) {
  if (highest == std::numeric_limits<int>::max()) {
    return "expected a whole number of at least " + std::to_string(lowest);
  }
  return "expected a whole number from " + std::to_string(lowest) + " to " +
         std::to_string(highest);
}

// A signal number from a name or number; 0: none.
int signal_number(std::string_view text) {
  const int number = process::parse_signal(text);
  return number >= 1 && number <= 64 ? number : 0;
}

// "137", "1-9" -> codes; "SIGKILL", "KILL" -> a signal
bool add_exit(std::string_view item, ExitSet& set) {
  const auto dash = item.find('-');
  const auto low = whole_number(item.substr(0, dash));
  if (!low) {
    const int signal = signal_number(item);
    if (signal != 0) set.signals.set(static_cast<std::size_t>(signal));
    return signal != 0;
  }
  const auto high = dash == std::string_view::npos ? low : whole_number(item.substr(dash + 1));
  if (!high || *low < 0 || *high > 255 || *low > *high) return false;
  for (auto code = *low; code <= *high; ++code)
    set.codes.set(static_cast<std::size_t>(code));
  return true;
}

}  // namespace

void refuse(const Setting& setting, const std::string& why) {
  throw UsageError(setting.shown + " " + quote(setting.value) + ": " + why);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> result;
  while (true) {
    const auto at = text.find(separator);
    result.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return result;
    text.remove_prefix(at + 1);
  }
}

int parse_integer(const Setting& setting, int lowest, int highest) {
  const auto value = whole_number(setting.value);
  if (!value || *value < lowest || *value > highest) refuse(setting, range_text(lowest, highest));
  return static_cast<int>(*value);
}

std::pair<int, int> parse_nodes(const Setting& setting) {
  constexpr long long kMost = 100'000;
  const auto parts = split(setting.value, ':');
  if (parts.size() > 2) refuse(setting, "expected N or MIN:MAX");
  const auto low = whole_number(parts.front());
  const auto high = whole_number(parts.back());
  if (!low || !high) refuse(setting, "expected N or MIN:MAX, both whole numbers");
  if (*low < 1) refuse(setting, "at least one node must take part");
  if (*high > kMost) refuse(setting, "at most " + std::to_string(kMost) + " nodes");
  if (*low > *high) refuse(setting, "MIN is greater than MAX");
  return {static_cast<int>(*low), static_cast<int>(*high)};
}

std::chrono::milliseconds parse_duration(const Setting& setting, bool zero) {
  static constexpr std::array<std::pair<std::string_view, double>, 6> kUnits{
      {{"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}, {"", 1e3}}};
  constexpr double kLongest = 1e12;  // 31 years; a clock in nanoseconds ends at 292
  const char* const why = "expected a time such as 90 (seconds), 5m or 1h30m";
  std::string_view rest = trimmed(setting.value);
  if (rest.empty()) refuse(setting, why);
  double total = 0;
  while (!rest.empty()) {
    double number = 0;
    const bool plain =
        std::isdigit(static_cast<unsigned char>(rest.front())) != 0 || rest.front() == '.';
    const auto [end, ec] =
        std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
    if (!plain || ec != std::errc()) refuse(setting, why);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const auto letters = std::min(rest.find_first_of("0123456789."), rest.size());
    const std::string_view unit = rest.substr(0, letters);
    rest.remove_prefix(letters);
    const auto* found = std::find_if(kUnits.begin(), kUnits.end(),
                                     [&](const auto& entry) { return entry.first == unit; });
    if (found == kUnits.end() || (unit.empty() && total != 0)) refuse(setting, why);
    total += number * found->second;
    if (total > kLongest) refuse(setting, "that is too long");
  }
  const std::chrono::milliseconds result(static_cast<std::int64_t>(total + 0.5));
  if (!zero && result.count() == 0) refuse(setting, "expected a time greater than zero");
  return result;
}

std::uint64_t parse_size(const Setting& setting) {
  const char* const why = "expected a size such as 500K, 100M or 2G";
  std::string_view text = setting.value;
  unsigned shift = 0;
  if (!text.empty()) {
    const auto at = std::string_view("KMGT").find(
        static_cast<char>(std::toupper(static_cast<unsigned char>(text.back()))));
    if (at != std::string_view::npos) {
      shift = 10U * static_cast<unsigned>(at + 1);
      text.remove_suffix(1);
    }
  }
  const auto number = whole_number(text);
  if (!number || *number < 1) refuse(setting, why);
  const auto value = static_cast<std::uint64_t>(*number);
  if (value > (std::uint64_t{1} << 62U) >> shift) refuse(setting, "that is too large");
  return value << shift;
}

std::vector<int> parse_signals(const Setting& setting) {
  std::vector<int> result;
  if (setting.value.empty()) return result;
  for (const std::string& name : split(setting.value, ',')) {
    const std::string given(trimmed(name));
    const int number = signal_number(given);
    if (number == 0) {
      refuse(setting,
             "there is no signal " + quote(given) + "; expected names such as SIGTERM,SIGUSR1");
    }
    if (number == SIGKILL || number == SIGSTOP) {
      refuse(setting, "no program can catch " + process::signal_name(number));
    }
    if (std::find(result.begin(), result.end(), number) == result.end()) result.push_back(number);
  }
  return result;
}

int parse_stop_signal(const Setting& setting) {
  const int number = signal_number(setting.value);
  if (number == 0) refuse(setting, "expected a signal such as SIGTERM or SIGINT");
  if (number == SIGSTOP || number == SIGCONT) {
    refuse(setting, process::signal_name(number) + " does not end a process");
  }
  return number;
}

ExitSet parse_exit_set(const Setting& setting) {
  ExitSet result;
  for (const std::string& item : split(setting.value, ',')) {
    if (!add_exit(item, result)) {
      refuse(setting, quote(item) +
                          " is no exit code (0-255), range or signal; expected a list such as "
                          "1-9,137,SIGKILL");
    }
  }
  return result;
}

StreamChoice parse_streams(const Setting& setting) {
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
    const auto rank = whole_number(parts.front());
    if (parts.size() != 2 || !rank || *rank < 0 || *rank > 1'000'000) refuse(setting, why);
    result.by_local_rank[static_cast<int>(*rank)] = bits(parts.back());
  }
  return result;
}

std::vector<int> parse_ranks(const Setting& setting) {
  std::vector<int> result;
  for (const std::string& item : split(setting.value, ',')) {
    const auto rank = whole_number(item);
    if (!rank || *rank < 0 || *rank > 1'000'000) {
      refuse(setting, "expected local ranks with commas between, as in 0,1");
    }
    result.push_back(static_cast<int>(*rank));
  }
  return result;
}

std::vector<std::string> parse_texts(const Setting& setting) {
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

std::size_t parse_choice(const Setting& setting, const std::vector<std::string_view>& words) {
  const auto found = std::find(words.begin(), words.end(), setting.value);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += i + 1 == words.size() ? " or " : ", ";
    list += words[i];
  }
  refuse(setting, "expected " + list);
}

}  // namespace drun::launcher
