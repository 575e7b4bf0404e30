#include "base/environment_variable.hpp"

namespace drun {

const char* variable(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return entry.c_str() + name.size() + 1;
    }
  }
  return nullptr;
}

}  // namespace drun
