#include "base/environment_variable.hpp"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace drun {

namespace {

bool is_of(std::string_view entry, std::string_view name) {
  return entry.starts_with(name) && entry.substr(name.size()).starts_with('=');
}

}  // namespace

std::optional<std::string> environment_variable(const std::vector<std::string>& environment,
                                                std::string_view name) {
  for (const std::string_view entry : environment)
    if (is_of(entry, name)) return std::string(entry.substr(name.size() + 1));
  return std::nullopt;
}

void erase_variable(std::vector<std::string>& environment, std::string_view name) {
  std::erase_if(environment, [name](std::string_view entry) { return is_of(entry, name); });
}

std::vector<std::string> own_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    result.emplace_back(*entry);
  return result;
}

}  // namespace drun
