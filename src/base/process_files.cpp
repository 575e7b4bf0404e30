#include "base/process_files.hpp"

#include <unistd.h>

#include <array>
#include <cstddef>

namespace drun {

std::string_view stat_from_state(std::string_view stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 > stat.size()) return {};
  return stat.substr(name_end + 2);
}

std::string link_target(const std::string& link) {
  std::array<char, 4'096> text;
  const ssize_t size = ::readlink(link.c_str(), text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
}

}  // namespace drun
