#include "launcher/pmi/pmi_line.hpp"

#include <algorithm>

#include "base/split.hpp"

namespace drun::launcher::pmi {

std::string field(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    const std::string_view each = take_until(line, ' ');
    if (each.starts_with(name) && each.size() > name.size() && each[name.size()] == '=')
      return std::string(each.substr(name.size() + 1));
  }
  return "";
}

Result<std::optional<std::string>> take_line(std::string& received) {
  const auto end = received.find('\n');
  if (std::min(end, received.size()) > kLongestLine)
    return Error(std::make_error_code(std::errc::message_size),
                 "a line of more than " + std::to_string(kLongestLine) + " bytes");
  if (end == std::string::npos) return std::optional<std::string>();
  std::optional<std::string> line(received.substr(0, end));
  received.erase(0, end + 1);
  return line;
}

}  // namespace drun::launcher::pmi
