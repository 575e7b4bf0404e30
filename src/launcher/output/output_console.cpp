#include "launcher/output/output_console.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace drun::launcher {
namespace {

constexpr std::size_t kParts = 16;          // buffers in one write
constexpr std::size_t kStdioBuffer = 4096;  // every usual one is a multiple of it

LineScheduler::Delays delays_for(int fd) {
  LineScheduler::Delays delays;
  if (::isatty(fd) != 0) delays.hold = LineScheduler::kTerminalHold;
  return delays;
}

}  // namespace

Console::Console(int fd) : sink_(fd), scheduler_(delays_for(fd)) {}

void Console::offer(Stream& stream, Time now) {
  if (writer_ == &stream) return;  // the end of its turn does it
  if (!stream.staged.empty()) {
    scheduler_.offer_lines(stream, stream.staged.front() == '\r', now);
  } else if (stream.unfinished.empty()) {
    scheduler_.withdraw_partial(stream);
  } else if (!stream.readable || stream.ended || stream.is_full()) {
    stream.full = stream.is_full();
    const bool full_buffer =
        !stream.ended && (stream.received % kStdioBuffer == 0 || stream.folding != nullptr);
    scheduler_.offer_partial(stream, stream.unfinished.front() == '\r', full_buffer, now);
  }
}

bool Console::pump(Time now, std::vector<Stream*>& written) {
  bool progress = false;
  while (sink_.state() != Sink::State::Blocked) {
    if (writer_ == nullptr) {
      const auto turn = scheduler_.next(now);
      if (!turn) break;
      begin_turn(*turn);
    }
    Stream& stream = *writer_;
    const std::size_t before = stream.staged.size();
    const bool over = write_some();
    if (stream.staged.size() < before) {
      progress = true;
      written.push_back(&stream);
    }
    if (over) end_turn(now);
  }
  return progress;
}

// The turn is for what is staged now; what comes while the console is blocked waits for the next.
void Console::begin_turn(const LineScheduler::Turn& turn) {
  Stream& stream = static_cast<Stream&>(*turn.slot);
  if (stream.staged.empty()) stream.stage_unfinished();
  writer_ = &stream;
  quota_ = stream.staged.size();
  line_after_ = stream.line_state;
  newline_first_ = turn.newline_first;
}

// True when the turn is over.
bool Console::write_some() {
  static char newline = '\n';
  std::array<iovec, kParts> parts;
  std::size_t count = 0;
  if (newline_first_) parts[count++] = {&newline, 1};
  count += writer_->staged.parts(std::span(parts).subspan(count), quota_);
  std::size_t taken = sink_.write(std::span(parts).first(count));
  if (sink_.state() == Sink::State::Gone) {
    newline_first_ = false;
    taken = quota_;  // let it go
  }
  if (taken > 0 && newline_first_) {
    newline_first_ = false;
    --taken;
  }
  writer_->staged.consume(taken);
  quota_ -= taken;
  return quota_ == 0;
}

void Console::end_turn(Time now) {
  Stream& stream = *writer_;
  writer_ = nullptr;
  scheduler_.written(stream, line_after_, now);
  offer(stream, now);
}

std::optional<Console::Time> Console::deadline(Time now) const {
  if (sink_.state() == Sink::State::Blocked) return std::nullopt;
  return scheduler_.deadline(now);
}

}  // namespace drun::launcher
