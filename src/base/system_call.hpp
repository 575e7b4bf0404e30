// The system call that a thread is in, as /proc/PID/syscall tells it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace drun {

struct SystemCall {
  long number = -1;
  std::string_view name;                     // empty: none of those in which programs wait
  std::optional<int> file;                   // the open file that it is about, if it is about one
  std::array<std::uint64_t, 2> arguments{};  // the first ones
};

// `text`: what that file says. Nullopt: it is in none.
[[nodiscard]] std::optional<SystemCall> system_call_in(std::string_view text);

}  // namespace drun
