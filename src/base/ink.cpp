#include "base/ink.hpp"

namespace drun {
namespace {

std::string_view begin_of(Ink ink) {
  switch (ink) {
    case Ink::Cause:
      return "\033[31m";
    case Ink::Silence:
      return "\033[33m";
    case Ink::Aside:
      return "\033[2m";
    case Ink::Plain:
      break;
  }
  return "";
}

}  // namespace

std::string painted(std::string_view text, Ink ink) {
  const std::string_view begin = begin_of(ink);
  if (begin.empty() || text.empty()) return std::string(text);
  return std::string(begin).append(text).append("\033[0m");
}

bool wants_color(ColorChoice choice, bool terminal, const std::optional<std::string>& term,
                 const std::optional<std::string>& no_color) {
  if (choice != ColorChoice::Auto) return choice == ColorChoice::Always;
  const bool dumb = term.value_or("").empty() || *term == "dumb";
  return terminal && !dumb && no_color.value_or("").empty();
}

}  // namespace drun
