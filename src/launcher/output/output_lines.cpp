#include "launcher/output/output_lines.hpp"

#include <string.h>
#include <time.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/template_text.hpp"

namespace drun::launcher {
namespace {

void append_line(BufferChain& to, std::string_view prefix, std::string_view line) {
  if (prefix.size() + line.size() > kLongestLine) {
    to.append(prefix);
    to.append(line);
    return;
  }
  char* const out = to.room(prefix.size() + line.size());
  ::memcpy(out, prefix.data(), prefix.size());
  ::memcpy(out + prefix.size(), line.data(), line.size());
  to.commit(prefix.size() + line.size());
}

// The end of what is shown before the console goes back to the start of the line and other text
// follows: behind the last of some carriage returns.
std::size_t overwritten_at(std::string_view line) {
  const auto found = line.find('\r');
  if (found == std::string_view::npos) return line.size();
  const auto text = line.find_first_not_of('\r', found);
  return text == std::string_view::npos || line[text] == '\n' ? line.size() : text;
}

}  // namespace

std::size_t whole_lines(std::string_view bytes, std::size_t searched) {
  const std::string_view fresh = bytes.substr(searched);
  const void* newline = ::memrchr(fresh.data(), '\n', fresh.size());
  if (newline != nullptr)
    return static_cast<std::size_t>(static_cast<const char*>(newline) - bytes.data()) + 1;
  return bytes.size() >= kLongestLine ? bytes.size() : 0;
}

LineState state_after(LineState before, std::string_view bytes) {
  const void* newline = ::memrchr(bytes.data(), '\n', bytes.size());
  if (newline != nullptr) {
    const auto used = static_cast<const char*>(newline) - bytes.data() + 1;
    bytes.remove_prefix(static_cast<std::size_t>(used));
    before = {};
  }
  if (bytes.empty()) return before;
  before.open = true;
  before.at_line_start = bytes.back() == '\r';
  before.has_return |= bytes.find('\r') != std::string_view::npos;
  before.too_long |= bytes.size() >= kLongestLine;
  return before;
}

std::string bar_after(std::string shown, bool at_line_start, std::string_view bytes) {
  constexpr std::size_t kLongestBar = 4096;
  const auto newline = bytes.rfind('\n');
  if (newline != std::string_view::npos) {
    shown.clear();
    bytes.remove_prefix(newline + 1);
  }
  bytes = bytes.substr(0, bytes.find_last_not_of('\r') + 1);
  if (bytes.empty()) return shown;
  const auto back = bytes.rfind('\r');
  if (at_line_start || back != std::string_view::npos) shown.clear();
  if (back != std::string_view::npos) bytes.remove_prefix(back + 1);
  if (shown.size() + bytes.size() > kLongestBar) return {};
  return shown.append(bytes);
}

std::string line_prefix(std::string_view line_template, const PrefixNames& names) {
  if (line_template.empty()) return "[" + names.role + std::to_string(names.local_rank) + "]:";
  return fill_template(line_template, {{"$", "$"},
                                       {"role_name", names.role},
                                       {"rank", std::to_string(names.rank)},
                                       {"local_rank", std::to_string(names.local_rank)},
                                       {"hostname", names.host.substr(0, names.host.find('.'))}});
}

std::string time_stamp(std::chrono::system_clock::time_point time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(since - seconds);
  // One second's text serves all of its lines: it costs as much as a read.
  thread_local std::chrono::seconds last{-1};
  thread_local std::array<char, 80> text{};
  constexpr std::size_t kDot = 19;
  if (seconds != last) {
    const time_t whole = static_cast<time_t>(seconds.count());
    tm parts{};
    ::localtime_r(&whole, &parts);
    ::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    const long minutes = std::abs(parts.tm_gmtoff) / 60;
    std::snprintf(text.data() + kDot, text.size() - kDot, ".000%c%02ld:%02ld ",
                  parts.tm_gmtoff < 0 ? '-' : '+', minutes / 60 % 100, minutes % 60);
    last = seconds;
  }
  for (auto [digit, left] = std::pair(3, rest.count()); digit > 0; --digit, left /= 10)
    text[kDot + static_cast<std::size_t>(digit)] = static_cast<char>('0' + left % 10);
  return std::string(text.data());
}

void append_lines(BufferChain& to, std::string_view lines, std::string_view prefix, Begins begins) {
  if (lines.empty()) return;
  const bool returns = ::memchr(lines.data(), '\r', lines.size()) != nullptr;
  bool bare = begins == Begins::Middle ||
              (begins == Begins::Return && (lines.starts_with('\n') || lines.starts_with('\r')));
  while (!lines.empty()) {
    const void* newline = ::memchr(lines.data(), '\n', lines.size());
    std::string_view line = lines;
    if (newline != nullptr)
      line = lines.substr(
          0, static_cast<std::size_t>(static_cast<const char*>(newline) - lines.data()) + 1);
    lines.remove_prefix(line.size());
    while (!line.empty()) {
      const std::size_t length = returns ? overwritten_at(line) : line.size();
      // Of returns with text behind them, the prefix belongs to the text.
      if (length < line.size() && line.front() == '\r') bare = true;
      append_line(to, bare ? prefix.substr(0, 0) : prefix, line.substr(0, length));
      bare = false;
      line.remove_prefix(length);
    }
  }
}

}  // namespace drun::launcher
