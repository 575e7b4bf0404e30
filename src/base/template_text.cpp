#include "base/template_text.hpp"

#include <cstddef>
#include <functional>

namespace drun {
namespace {

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool in_name(char c) {
  return starts_name(c) || (c >= '0' && c <= '9');
}

// The length of the name at the front; 0: there is none.
std::size_t name_length(std::string_view text) {
  if (text.empty() || !starts_name(text.front())) return 0;
  std::size_t length = 1;
  while (length < text.size() && in_name(text[length]))
    ++length;
  return length;
}

struct Reference {
  std::string_view name;
  std::size_t length = 0;  // of all of it, with the dollar
};

// The reference at the front of `text`, which begins with a dollar; no name if that is all.
Reference reference_at(std::string_view text) {
  const std::string_view rest = text.substr(1);
  if (rest.starts_with('$')) return {rest.substr(0, 1), 2};
  if (!rest.starts_with('{')) {
    const std::size_t length = name_length(rest);
    return {rest.substr(0, length), 1 + length};
  }
  const std::size_t length = name_length(rest.substr(1));
  const bool closed = length > 0 && rest.substr(1 + length).starts_with('}');
  return closed ? Reference{rest.substr(1, length), 3 + length} : Reference{{}, 1};
}

}  // namespace

std::string fill_template(std::string_view text,
                          const std::map<std::string, std::string, std::less<>>& values) {
  std::string out;
  for (;;) {
    const auto dollar = text.find('$');
    out += text.substr(0, dollar);
    if (dollar == std::string_view::npos) return out;
    text.remove_prefix(dollar);
    const Reference reference = reference_at(text);
    const auto found = values.find(reference.name);
    out += found == values.end() ? text.substr(0, reference.length) : found->second;
    text.remove_prefix(reference.length);
  }
}

std::vector<std::string> names_in_braces(std::string_view text) {
  std::vector<std::string> names;
  for (auto dollar = text.find('$'); dollar != std::string_view::npos; dollar = text.find('$')) {
    text.remove_prefix(dollar);
    const Reference reference = reference_at(text);
    if (text.substr(1).starts_with('{') && !reference.name.empty())
      names.emplace_back(reference.name);
    text.remove_prefix(reference.length);
  }
  return names;
}

}  // namespace drun
