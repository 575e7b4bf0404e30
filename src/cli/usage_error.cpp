#include "cli/usage_error.hpp"

#include "base/printable.hpp"

namespace drun::cli {

std::string quote(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  return "'" + printable(text.substr(0, kLongest)) + (text.size() > kLongest ? "...'" : "'");
}

}  // namespace drun::cli
