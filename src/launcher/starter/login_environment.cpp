#include "launcher/starter/login_environment.hpp"

#include <string_view>

#include "base/environment_variable.hpp"
#include "base/split.hpp"

namespace drun::launcher {

// SSH_CONNECTION is "client port server port".
std::string address_reached_by(const std::vector<std::string>& environment) {
  const std::string connection = environment_variable(environment, "SSH_CONNECTION").value_or("");
  std::string_view rest = connection;
  take_until(rest, ' ');
  take_until(rest, ' ');
  return std::string(take_until(rest, ' '));
}

std::vector<std::string> merged_environment(const std::vector<std::string>& under,
                                            const std::vector<std::string>& over) {
  std::vector<std::string> result = over;
  for (const std::string& entry : under)
    if (!environment_variable(over, entry.substr(0, entry.find('=')))) result.push_back(entry);
  return result;
}

}  // namespace drun::launcher
