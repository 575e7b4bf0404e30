// A worker of output_bench: prints lines as fast as it can.
//
//   output_source BYTES LENGTH KIND BLOCK
//
// BYTES in all, in lines of LENGTH bytes with the newline (0: one line without an end); BLOCK bytes
// with each write, 0: line by line. KIND is what the ranks' lines have in common: "same" (all lines
// of all ranks are one text), "equal" (line k of each rank), "half" (every second of those) or
// "different" (nothing).
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

// More than drun holds of one rank for --fold. Lines of a rank come again after so many bytes.
constexpr std::size_t kPeriod = 1024 * 1024;

int rank() {
  for (const char* name : {"RANK", "PMI_RANK"})
    if (const char* text = std::getenv(name)) return std::atoi(text);
  return 0;
}

std::string line(std::size_t number, std::size_t length, std::string_view kind) {
  std::string text(length - 1, 'x');
  if (kind == "same") return text + '\n';
  const bool own = kind == "different" || (kind == "half" && number % 2 == 1);
  const std::string name = (own ? std::to_string(rank()) : "all") + " " + std::to_string(number);
  text.replace(0, std::min(name.size(), text.size()), name, 0, text.size());
  return text + '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  std::size_t left = std::strtoull(argv[1], nullptr, 10);
  const std::size_t length = std::strtoull(argv[2], nullptr, 10);
  const std::string_view kind = argv[3];
  std::string text;
  if (length == 0) {
    text.assign(std::min(left, kPeriod), 'x');
  } else {
    const std::size_t size = kind == "same" ? 1024 * length : std::min(left, kPeriod);
    for (std::size_t number = 0; text.size() < size; ++number)
      text += line(number, length, kind);
  }
  std::size_t block = std::strtoull(argv[4], nullptr, 10);
  if (block == 0) block = length;
  for (std::size_t at = 0; left > 0; at %= text.size()) {
    const std::size_t count = std::min({left, block, text.size() - at});
    const ssize_t written = ::write(STDOUT_FILENO, text.data() + at, count);
    if (written < 0) {
      std::perror("output_source");
      return 1;
    }
    left -= static_cast<std::size_t>(written);
    at += static_cast<std::size_t>(written);
  }
  return 0;
}
