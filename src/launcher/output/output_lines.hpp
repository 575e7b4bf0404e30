// Lines in a stream of bytes: where whole lines end, what a piece leaves behind on the console, and
// what goes in front of each line. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "launcher/output/line_scheduler.hpp"
#include "launcher/output/output_buffer.hpp"

namespace drun::launcher {

// Bytes without a line end for longer than this are not text: they are passed on in pieces.
constexpr std::size_t kLongestLine = 64 * 1024;

// How many bytes at the front of `bytes` are whole lines; all of them if the rest would be too long
// for a line. The first `searched` bytes are known to hold no line end.
[[nodiscard]] std::size_t whole_lines(std::string_view bytes, std::size_t searched);

// What the stream leaves behind on the console after `bytes`.
[[nodiscard]] LineState state_after(LineState before, std::string_view bytes);

// What the console shows of the last line after `bytes`, behind its last carriage return that has
// text behind it: of a progress bar its last state. `shown`: the same before them; it ended with a
// return if `at_line_start`. Empty if it is longer than any bar.
[[nodiscard]] std::string bar_after(std::string shown, bool at_line_start, std::string_view bytes);

struct PrefixNames {
  std::string role;
  int rank = 0;
  int local_rank = 0;
  std::string host;  // as gethostname() gives it; shortened to the first part here
};

// What --log-line-prefix-template says; an empty template is torchrun's "[role0]:".
[[nodiscard]] std::string line_prefix(std::string_view line_template, const PrefixNames& names);

// "2026-11-20T16:23:42.123+01:00 ": RFC 3339, local time.
constexpr std::size_t kTimeStampLength = 30;
[[nodiscard]] std::string time_stamp(std::chrono::system_clock::time_point time);

// What the first of some bytes is on the console.
enum class Begins {
  Line,    // the first of a line
  Middle,  // one that goes on with a line
  Return   // one behind a carriage return
};

// Appends `lines` with `prefix` in front of each, and again behind a carriage return within a line:
// what follows is written over the prefix that was there. Not behind one that ends the line or the
// bytes.
void append_lines(BufferChain& to, std::string_view lines, std::string_view prefix, Begins begins);

}  // namespace drun::launcher
