#include "launcher/output/output_lines.hpp"

#include <string.h>
#include <time.h>

#include <array>
#include <cstdio>

#include "base/template_text.hpp"

namespace drun::launcher {

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
