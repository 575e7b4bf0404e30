#include "base/environment_variable.hpp"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace drun {

const char* variable(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return entry.c_str() + name.size() + 1;
    }
  }
  return nullptr;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    result.emplace_back(*entry);
  return result;
}

}  // namespace drun
