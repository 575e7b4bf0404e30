// One stream of one worker inside the output thread: what is read, what becomes of it, what waits
// for the console.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.hpp"
#include "launcher/output/line_scheduler.hpp"
#include "launcher/output/output_buffer.hpp"
#include "launcher/output/output_fold.hpp"
#include "launcher/output/output_lines.hpp"
#include "launcher/output/output_log_file.hpp"
#include "launcher/output/tail.hpp"

namespace drun::launcher {

class Console;
struct Folding;

// A line of --fold that grows beyond this is not folded: its rank shows it in pieces.
constexpr std::size_t kLongestFolded = 256 * 1024;

// The agent's thread makes it and keeps the pointer; from OutputLoop::watch() on only the output
// thread looks inside. With a Drain or Stop command the pointer goes over too.
struct Stream : LineScheduler::Slot {
  using Time = LineScheduler::Time;

  Stream(BufferPool& pool, std::size_t tail_lines) : staged(pool), last(tail_lines) {}

  // ---- fixed before the first byte ----
  std::uint32_t worker = 0;
  int rank = LineScheduler::kNobody;  // kNobody for drun's own streams
  bool is_error = false;
  bool terminal = false;  // the source is a pseudo-terminal
  FileDescriptor source;
  Console* console = nullptr;    // null: not shown
  Folding* folding = nullptr;    // --fold: lines go through it
  std::string prefix;            // before each line shown
  bool stamped = false;          // the time before each line shown
  std::unique_ptr<LogFile> log;  // every byte, as it is
  // --duplicate-*-filters: one file for all ranks of a round.
  std::shared_ptr<FilterFile> filter;

  // ---- reading ----
  bool joined = false;
  Stream* next_arrival = nullptr;  // in the loop's list of streams to join
  bool readable = false;           // there may be something to read
  bool hung_up = false;            // read to the end: no further event will come
  bool ready = false;              // in the list of streams to look at
  bool grown = false;              // the pipe has been made bigger, if the system allows it
  std::uint64_t received = 0;
  std::atomic<Time> last_read{Time::min()};  // for the agent's thread as well

  // ---- lines ----
  std::string unfinished;        // the beginning of a line, neither staged nor folded
  std::string shown_unfinished;  // of the open line, for the filter; empty without one
  BufferChain staged;            // waits for the console
  LineState line_state;          // after all that is staged
  std::string bar;               // see bar_after(): of the open line
  Tail last;

  // Makes the source and returns its other end: a pseudo-terminal if that is wanted and `own`,
  // drun's stream behind it, is a terminal; else a pipe. Throws std::system_error.
  [[nodiscard]] FileDescriptor open_source(int own, bool may_be_terminal);

  // Bytes can go to the console as they are, without being looked at line by line.
  [[nodiscard]] bool raw() const {
    return console != nullptr && folding == nullptr && filter == nullptr && prefix.empty() &&
           !stamped;
  }
  // How much of the terminal's width stands before what a worker prints there: streams with a
  // prefix are pipes.
  [[nodiscard]] std::size_t columns_before() const { return stamped ? kTimeStampLength : 0; }
  // Has so much of a line that it is to be shown before more is read.
  [[nodiscard]] bool is_full() const { return is_whole() && unfinished.size() >= kLongestFolded; }
  // Takes the next bytes; not for a raw stream, which reads into `staged` itself.
  void take(std::string_view bytes, Time now);
  // The unfinished line goes to the console now.
  void stage_unfinished();
  // No more bytes will come.
  void finish(Time now);

 private:
  void stage(std::string_view lines);
  void take_lines(std::string_view lines, Time now);
  [[nodiscard]] std::string line_start() const;
  [[nodiscard]] Begins begins() const;  // what comes next
  // What comes next is folded, a whole line at a time.
  [[nodiscard]] bool is_whole() const { return folding != nullptr && !line_state.open; }
};

// All streams whose lines are folded together: those of one console.
struct Folding {
  explicit Folding(BufferPool& pool) : out(pool, 0) {}

  LineFolder folder;
  Stream out;                    // to the console
  std::vector<Stream*> waiting;  // not read until `out` has been written

  // Moves lines that are due to `out`; true: there were some.
  bool flush(LineFolder::Time now);
  bool stamped = false;
};

}  // namespace drun::launcher
