#include "base/environment_variable.hpp"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace drun {

std::optional<std::string> environment_variable(const std::vector<std::string>& environment,
                                                std::string_view name) {
  for (const std::string_view entry : environment)
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('='))
      return std::string(entry.substr(name.size() + 1));
  return std::nullopt;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    result.emplace_back(*entry);
  return result;
}

}  // namespace drun
