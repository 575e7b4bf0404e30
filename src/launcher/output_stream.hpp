// One stream of one worker inside the output thread, and the consoles that streams share.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "drun/base/file_descriptor.hpp"
#include "launcher/output_sink.hpp"
#include "launcher/output_text.hpp"
#include "launcher/output_turns.hpp"

namespace drun::launcher {

constexpr std::size_t kBufferSize = 256 * 1024;

struct Buffer {
  std::unique_ptr<char[]> data{new char[kBufferSize]};
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Used buffers, the last one first: it is still in the processor's cache.
class BufferPool {
 public:
  [[nodiscard]] std::unique_ptr<Buffer> take();
  void give(std::unique_ptr<Buffer> buffer);

 private:
  std::vector<std::unique_ptr<Buffer>> free_;
};

struct Stream;

// One of drun's own streams.
struct Console {
  explicit Console(int fd) : sink(fd) {}

  Sink sink;
  LineTurns turns;
  // What is being written: this much of what the stream has staged.
  Stream* writer = nullptr;
  std::size_t quota = 0;
  LineTurns::Left left;
  bool newline_first = false;
};

// The agent's thread makes it and keeps the pointer; from OutputLoop::watch() on only the output
// thread looks inside. With a Drain or Stop command the pointer goes over too.
struct Stream : LineTurns::Seat {
  explicit Stream(std::size_t tail_lines) : last(tail_lines) {}

  std::uint32_t worker = 0;
  bool is_error = false;
  bool terminal = false;
  FileDescriptor source;
  Console* console = nullptr;

  bool joined = false;
  bool readable = false;  // there may be something to read
  bool hung_up = false;   // read to the end: no further event will come
  bool ready = false;     // in the list of streams to look at

  std::uint64_t received = 0;
  std::string unfinished;  // the beginning of a line, not staged
  std::deque<std::unique_ptr<Buffer>> staged;
  std::size_t staged_bytes = 0;
  LineTurns::Left left;  // after all that is staged
  Tail last;
};

}  // namespace drun::launcher
