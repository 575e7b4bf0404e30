// What the failure report shows of a stream: its last lines, made harmless. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace drun::launcher {

// One line as a person would see it on a terminal, safe to print and to put into JSON: what a
// carriage return overwrote is left out, escape sequences too; other control characters and bytes
// that are not UTF-8 become "\x1b". At most `limit` bytes of the line; the rest is counted:
// "... (1234 bytes more)".
[[nodiscard]] std::string harmless_line(std::string_view line, std::size_t limit);

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

// "3", "1-7", "0,2,4-6". `ranks` in any order.
[[nodiscard]] std::string describe_ranks(std::vector<int> ranks);

}  // namespace drun::launcher
