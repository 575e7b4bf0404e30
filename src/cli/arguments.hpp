// The values on the command lines of drun-store and drunctl. What is wrong is thrown as a
// UsageError, which main turns into one line and exit code 2.
#pragma once

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string_view>

namespace drun::store {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// "4096", "64K", "16M", "2G": bytes. `option` is named in the error.
[[nodiscard]] std::size_t parse_size(std::string_view option, std::string_view text);
// A count of at least 1.
[[nodiscard]] std::size_t parse_count(std::string_view option, std::string_view text);
// Seconds, "0.5" or "30"; "250ms", "5s", "2m", "1h".
[[nodiscard]] std::chrono::milliseconds parse_duration(std::string_view option,
                                                       std::string_view text);
// A signed decimal number.
[[nodiscard]] long long parse_integer(std::string_view what, std::string_view text);

}  // namespace drun::store
