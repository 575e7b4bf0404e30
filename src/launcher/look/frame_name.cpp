#include "launcher/look/frame_name.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>

namespace drun::launcher {
namespace {

// What stands between a pair of brackets, if it is longer.
constexpr std::size_t kLongestInBrackets = 24;

// Where the bracket at `start` ends; npos: nowhere.
std::size_t end_of_bracket(std::string_view name, std::size_t start) {
  const char open = name[start];
  const char close = open == '<' ? '>' : ')';
  int depth = 0;
  for (std::size_t i = start; i < name.size(); ++i) {
    if (name[i] == open) ++depth;
    // An arrow closes nothing.
    if (name[i] == close && !(close == '>' && i > 0 && name[i - 1] == '-') && --depth == 0)
      return i;
  }
  return std::string_view::npos;
}

}  // namespace

std::string shortened(std::string_view name) {
  constexpr std::string_view kOperator = "operator";
  std::string result;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with(kOperator)) {  // "operator<<", "operator()"
      const auto end = name.find_first_not_of("<>=-()", i + kOperator.size());
      // Its parameters begin with the last of the brackets.
      const auto stop = end == std::string_view::npos ? name.size() : end;
      std::string_view whole = name.substr(i, stop - i);
      if (whole.ends_with("(") && whole.size() > kOperator.size() + 1) whole.remove_suffix(1);
      result += whole;
      i += whole.size() - 1;
      continue;
    }
    result += name[i];
    if (name[i] != '<' && name[i] != '(') continue;
    const auto end = end_of_bracket(name, i);
    if (end == std::string_view::npos || end - i <= kLongestInBrackets) continue;
    result += "...";
    i = end - 1;
  }
  return result;
}

std::string function_name(std::string_view symbol) {
  const std::string plain(symbol.substr(0, symbol.find('@', 1)));
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(plain.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && name ? shortened(name.get()) : plain;
}

void drop_start(std::vector<std::string>& frames) {
  // Of glibc and of musl.
  constexpr std::array<std::string_view, 9> kStart{"__libc_start_call_main",
                                                   "__libc_start_main",
                                                   "__libc_start_main_impl",
                                                   "_start",
                                                   "_start_c",
                                                   "start_thread",
                                                   "clone3",
                                                   "__clone3",
                                                   "clone"};
  while (frames.size() > 1) {
    const std::string_view last = frames.back();
    const std::string_view name = last.substr(0, last.find(" ("));
    if (std::find(kStart.begin(), kStart.end(), name) == kStart.end()) break;
    frames.pop_back();
  }
}

std::string module_name(std::string_view path) {
  if (path.starts_with("[vdso")) return "[vdso]";
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace drun::launcher
