// The last lines of a stream, for the failure report. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace drun::launcher {

// Keeps the end of a stream: enough raw bytes for `lines` lines, bounded.
class Tail {
 public:
  explicit Tail(std::size_t lines) : wanted_(lines) {}

  void append(std::string_view bytes);
  // Without blank lines at the end; the last one may be unfinished. Long lines are cut.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  std::size_t wanted_;
  std::string bytes_;
};

// The last lines in `bytes`, which may begin in the middle of a line; as Tail::lines().
[[nodiscard]] std::vector<std::string> last_lines(std::string_view bytes, std::size_t wanted);

}  // namespace drun::launcher
