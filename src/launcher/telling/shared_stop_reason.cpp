#include "launcher/telling/shared_stop_reason.hpp"

#include <algorithm>

namespace drun::launcher {

void SharedStopReason::set(std::string_view text, int exit_code) {
  for (std::size_t i = 0; i < std::min(text.size(), kLongest); ++i)
    text_[i] = text[i];
  exit_code_[0] = exit_code;
}

std::optional<SharedStopReason::Reason> SharedStopReason::get() {
  const int exit_code = exit_code_[0];
  if (exit_code == 0) return std::nullopt;
  Reason reason{"", exit_code};
  for (std::size_t i = 0; text_[i] != '\0'; ++i)
    reason.text += text_[i];
  return reason;
}

}  // namespace drun::launcher
