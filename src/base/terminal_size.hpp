// How much a terminal shows at once.
#pragma once

#include <sys/ioctl.h>

#include <cstddef>

namespace drun {

struct TerminalSize {
  std::size_t rows = 0;  // 0: it is no terminal, or does not know
  std::size_t columns = 0;
};

[[nodiscard]] inline TerminalSize terminal_size(int terminal) {
  winsize size{};
  if (::ioctl(terminal, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_row, size.ws_col};
}

}  // namespace drun
