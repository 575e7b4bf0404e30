// Why the parent of several agents (--local-nodes) has told those that are left to stop: they get
// SIGTERM, which alone does not say.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/telling/shared_array.hpp"

namespace drun::launcher {

class SharedStopReason {
 public:
  struct Reason {
    std::string text;  // one line for people
    int exit_code = 0;
  };

  // Shared with the processes that are forked afterwards. Throws std::system_error.
  SharedStopReason() : text_(kLongest + 1), exit_code_(1) {}

  // Once, by one process, before it signals the others. `exit_code` is not 0.
  void set(std::string_view text, int exit_code);
  // Nullopt: the parent has none.
  [[nodiscard]] std::optional<Reason> get();

 private:
  static constexpr std::size_t kLongest = 200;  // bytes; the rest is left out

  SharedArray<std::atomic<char>> text_;
  SharedArray<std::atomic<int>> exit_code_;  // 0: nothing is set
};

}  // namespace drun::launcher
