#include "launcher/output/output_lines.hpp"

#include <string.h>
#include <time.h>

#include <array>
#include <cstdio>

namespace drun::launcher {
namespace {

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool in_name(char c) {
  return starts_name(c) || (c >= '0' && c <= '9');
}

// The length of the name at the front; 0 where there is none.
std::size_t name_length(std::string_view text) {
  if (text.empty() || !starts_name(text.front())) return 0;
  std::size_t length = 1;
  while (length < text.size() && in_name(text[length]))
    ++length;
  return length;
}

}  // namespace

std::size_t whole_lines(std::string_view bytes, std::size_t searched) {
  const std::string_view fresh = bytes.substr(searched);
  const void* newline = ::memrchr(fresh.data(), '\n', fresh.size());
  if (newline != nullptr)
    return static_cast<std::size_t>(static_cast<const char*>(newline) - bytes.data()) + 1;
  return bytes.size() >= kLongestLine ? bytes.size() : 0;
}

LineTurns::Left left_after(LineTurns::Left before, std::string_view bytes) {
  const void* newline = ::memrchr(bytes.data(), '\n', bytes.size());
  if (newline != nullptr) {
    const auto used = static_cast<const char*>(newline) - bytes.data() + 1;
    bytes.remove_prefix(static_cast<std::size_t>(used));
    before = {};
  }
  if (bytes.empty()) return before;
  before.open = true;
  before.at_margin = bytes.back() == '\r';
  before.returned |= bytes.find('\r') != std::string_view::npos;
  before.endless |= bytes.size() >= kLongestLine;
  return before;
}

std::string substitute(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string out;
  while (!text.empty()) {
    const auto dollar = text.find('$');
    out += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    if (text.starts_with('$')) {
      out += '$';
      text.remove_prefix(1);
      continue;
    }
    const bool braced = text.starts_with('{');
    const std::size_t length = name_length(text.substr(braced ? 1 : 0));
    const std::size_t taken = length + (braced ? 2U : 0U);
    const bool complete =
        length > 0 && (!braced || (taken <= text.size() && text[taken - 1] == '}'));
    if (!complete) {
      out += '$';
      continue;
    }
    const auto found = values.find(std::string(text.substr(braced ? 1 : 0, length)));
    if (found != values.end())
      out += found->second;
    else
      out.append("$").append(text.substr(0, taken));
    text.remove_prefix(taken);
  }
  return out;
}

std::string line_prefix(std::string_view line_template, const PrefixNames& names) {
  if (line_template.empty()) return "[" + names.role + std::to_string(names.local_rank) + "]:";
  return substitute(line_template, {{"role_name", names.role},
                                    {"rank", std::to_string(names.rank)},
                                    {"local_rank", std::to_string(names.local_rank)},
                                    {"hostname", names.host.substr(0, names.host.find('.'))}});
}

std::string time_stamp(std::chrono::system_clock::time_point time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(since - seconds);
  const time_t whole = static_cast<time_t>(seconds.count());
  tm parts{};
  ::localtime_r(&whole, &parts);
  std::array<char, 40> text{};
  const std::size_t length = ::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  std::array<char, 8> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%03d ", static_cast<int>(rest.count()));
  return std::string(text.data(), length) + fraction.data();
}

void append_lines(BufferChain& to, std::string_view lines, std::string_view prefix,
                  bool continues) {
  const char* at = lines.data();
  const char* const end = at + lines.size();
  while (at != end) {
    const void* newline = ::memchr(at, '\n', static_cast<std::size_t>(end - at));
    const char* const next = newline == nullptr ? end : static_cast<const char*>(newline) + 1;
    const auto length = static_cast<std::size_t>(next - at);
    const std::size_t before = continues ? 0 : prefix.size();
    if (before + length <= kLongestLine) {
      char* const out = to.room(before + length);
      ::memcpy(out, prefix.data(), before);
      ::memcpy(out + before, at, length);
      to.commit(before + length);
    } else {
      to.append(prefix.substr(0, before));
      to.append({at, length});
    }
    continues = false;
    at = next;
  }
}

}  // namespace drun::launcher
