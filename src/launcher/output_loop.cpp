#include "launcher/output_loop.hpp"

#include <string.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "launcher/output_terminal.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kReadAhead = 64 * 1024;    // staged bytes from which a stream is not read
constexpr std::size_t kLongestLine = 64 * 1024;  // what is longer is not text: passed on in pieces
constexpr std::size_t kReadAtEnd = 4 * 1024 * 1024;  // of a dead worker's stream, at most
constexpr std::size_t kStdioBuffer = 4096;           // every usual one is a multiple of it
constexpr int kEvents = 64;
constexpr std::size_t kParts = 16;  // buffers in one write

void add(int epoll, int fd, std::uint32_t events, void* pointer) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = pointer;
  // EPERM: a file or device that is always ready.
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0 && errno != EPERM && errno != EEXIST)
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

LineTurns::Left left_after(LineTurns::Left before, std::string_view bytes) {
  const void* newline = ::memrchr(bytes.data(), '\n', bytes.size());
  if (newline != nullptr) {
    const auto used = static_cast<const char*>(newline) - bytes.data() + 1;
    bytes.remove_prefix(static_cast<std::size_t>(used));
    before = {};
  }
  if (bytes.empty()) return before;
  if (bytes.back() == '\r') return {};  // back at the margin: nothing is in the way
  before.open = true;
  before.returned |= bytes.find('\r') != std::string_view::npos;
  before.endless |= bytes.size() >= kLongestLine;
  return before;
}

}  // namespace

std::unique_ptr<Buffer> BufferPool::take() {
  if (free_.empty()) return std::make_unique<Buffer>();
  auto buffer = std::move(free_.back());
  free_.pop_back();
  buffer->begin = buffer->end = 0;
  return buffer;
}

void BufferPool::give(std::unique_ptr<Buffer> buffer) {
  if (free_.size() < 16) free_.push_back(std::move(buffer));
}

OutputLoop::OutputLoop(int standard_output, int standard_error, std::chrono::milliseconds patience)
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      consoles_{Console(standard_output), Console(standard_error)},
      error_(same_destination(standard_output, standard_error) ? &consoles_[0] : &consoles_[1]),
      patience_(patience) {
  if (!epoll_) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  add(epoll_.get(), commands_.fd(), EPOLLIN, nullptr);
  for (Console& console : consoles_) {
    if (console.sink.wait_fd() >= 0 && (&console == &consoles_[0] || &console == error_))
      add(epoll_.get(), console.sink.wait_fd(), EPOLLOUT | EPOLLET, &console);
  }
  own_.console = error_;
}

void OutputLoop::watch(Stream& stream) {
  add(epoll_.get(), stream.source.get(), EPOLLIN | EPOLLET, &stream);
}

void OutputLoop::run() {
  join(own_);
  std::array<epoll_event, kEvents> events{};
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), kEvents,
                                   timeout(std::chrono::steady_clock::now()));
    const Time now = std::chrono::steady_clock::now();
    bool commanded = false;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.ptr == nullptr) {
        commanded = true;
      } else if (event.data.ptr == &consoles_[0] || event.data.ptr == &consoles_[1]) {
        static_cast<Console*>(event.data.ptr)->sink.unblock();
      } else {
        Stream& stream = *static_cast<Stream*>(event.data.ptr);
        stream.readable = true;
        stream.hung_up |= (event.events & (EPOLLHUP | EPOLLERR)) != 0;
        set_ready(stream);
      }
    }
    for (Console& console : consoles_)
      pump(console, now);
    look_at_streams(now);
    for (Console& console : consoles_)
      pump(console, now);
    if (commanded) take_commands(now);  // last: a command may delete streams that had events
    forget_written();
    answer_drained();
    if (stopping_ && (everything_written() || now - last_progress_ >= patience_)) {
      auto answer = std::make_unique<OutputAnswer>();
      answer->id = *stopping_;
      answers_.post(std::move(answer));
      return;
    }
  }
}

int OutputLoop::timeout(Time now) const {
  if (!ready_.empty()) return 0;
  std::optional<Time> earliest;
  const auto consider = [&](std::optional<Time> time) {
    if (time && (!earliest || *time < *earliest)) earliest = time;
  };
  for (const Console& console : consoles_)
    if (console.sink.state() != Sink::State::Blocked) consider(console.turns.deadline(now));
  if (stopping_) consider(last_progress_ + patience_);
  if (!earliest) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*earliest - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void OutputLoop::take_commands(Time now) {
  while (const auto command = commands_.receive())
    execute(*command, now);
}

void OutputLoop::execute(OutputCommand& command, Time now) {
  switch (command.kind) {
    case OutputCommand::Kind::Tail: {
      auto answer = std::make_unique<OutputAnswer>();
      answer->id = command.id;
      for (Stream* stream : command.streams) {
        read_all(*stream, now);
        if (stream->is_error) answer->lines = stream->last.lines();
      }
      answers_.post(std::move(answer));
      break;
    }
    case OutputCommand::Kind::Message:
      stage(own_, command.text, now);
      break;
    case OutputCommand::Kind::Resize:
      for (Stream* stream : command.streams)
        if (stream->terminal && stream->source)
          copy_window_size(stream->is_error ? error_->sink.fd() : consoles_[0].sink.fd(),
                           stream->source.get());
      break;
    case OutputCommand::Kind::Drain:
    case OutputCommand::Kind::Stop:
      for (auto& stream : command.released) {
        read_all(*stream, now);
        source_ended(*stream, now);
        std::erase(ready_, stream.get());
        released_.push_back(std::move(stream));
      }
      if (command.kind == OutputCommand::Kind::Stop) {
        stopping_ = command.id;
        last_progress_ = now;
      } else {
        draining_.push_back(command.id);
      }
      break;
  }
  for (Console& console : consoles_)
    pump(console, now);
}

// ---- reading ----

void OutputLoop::join(Stream& stream) {
  if (stream.joined) return;
  stream.joined = true;
  stream.console->turns.join(stream);
}

void OutputLoop::set_ready(Stream& stream) {
  join(stream);
  if (stream.ready || stream.ended) return;
  stream.ready = true;
  ready_.push_back(&stream);
}

// One read of each stream that has something and is not ahead of its reader. A stream that is ahead
// leaves the list and comes back when its bytes are written.
void OutputLoop::look_at_streams(Time now) {
  const std::size_t count = ready_.size();
  for (std::size_t i = 0; i < count; ++i) {
    Stream& stream = *ready_[i];
    stream.ready = false;
    if (stream.staged_bytes >= kReadAhead) continue;
    if (read_once(stream, now)) set_ready(stream);
    pump(*stream.console, now);
  }
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
}

void OutputLoop::read_all(Stream& stream, Time now) {
  join(stream);
  if (stream.ended) return;
  stream.readable = stream.hung_up = true;  // whether or not: until there is nothing
  const std::uint64_t end = stream.received + kReadAtEnd;
  while (read_once(stream, now) && stream.received < end) {
  }
}

// True while there may be more.
bool OutputLoop::read_once(Stream& stream, Time now) {
  if (stream.ended) return false;
  const std::size_t carried = stream.unfinished.size();
  std::unique_ptr<Buffer> fresh;
  Buffer* buffer = nullptr;
  if (!stream.staged.empty() && kBufferSize - stream.staged.back()->end >= kReadAhead + carried) {
    buffer = stream.staged.back().get();
  } else {
    fresh = pool_.take();
    buffer = fresh.get();
  }
  const std::size_t room = kBufferSize - buffer->end - carried;
  ssize_t count = 0;
  do {
    count = ::read(stream.source.get(), buffer->data.get() + buffer->end + carried, room);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) {
    if (fresh) pool_.give(std::move(fresh));
    stream.readable = false;
    if (count < 0 && errno == EAGAIN) {
      offer_what_is_left(stream, now);  // held back while there seemed to be more
      return false;
    }
    source_ended(stream, now);  // end of file; EIO: the last user of a terminal has left
    return false;
  }
  if (fresh) stream.staged.push_back(std::move(fresh));
  const bool drained = static_cast<std::size_t>(count) < room && !stream.terminal;
  if (drained && !stream.hung_up) stream.readable = false;
  received(stream, *buffer, static_cast<std::size_t>(count), now);
  return stream.readable;
}

// `count` bytes have been read into `buffer`, behind room for the unfinished line.
void OutputLoop::received(Stream& stream, Buffer& buffer, std::size_t count, Time now) {
  char* const begin = buffer.data.get() + buffer.end;
  const std::size_t carried = stream.unfinished.size();
  ::memcpy(begin, stream.unfinished.data(), carried);
  stream.received += count;
  if (stream.is_error) stream.last.append({begin + carried, count});

  const void* newline = ::memrchr(begin + carried, '\n', count);
  std::size_t whole = 0;
  if (newline != nullptr)
    whole = static_cast<std::size_t>(static_cast<const char*>(newline) - begin) + 1;
  else if (carried + count >= kLongestLine)
    whole = carried + count;
  stream.unfinished.assign(begin + whole, carried + count - whole);
  if (whole > 0) {
    buffer.end += whole;
    stream.staged_bytes += whole;
    stream.left = left_after(stream.left, {begin, whole});
  } else if (buffer.begin == buffer.end && stream.staged.back().get() == &buffer) {
    pool_.give(std::move(stream.staged.back()));
    stream.staged.pop_back();
  }
  if (stream.unfinished.empty()) stream.console->turns.withdraw_partial(stream);
  offer_what_is_left(stream, now);
}

void OutputLoop::source_ended(Stream& stream, Time now) {
  if (stream.ended) return;
  stream.source.reset();
  stream.console->turns.end(stream);
  offer_what_is_left(stream, now);
}

// Asks for a turn for what has none yet. While the stream is writing, the end of that turn does it.
void OutputLoop::offer_what_is_left(Stream& stream, Time now) {
  if (stream.console->writer == &stream) return;
  if (stream.staged_bytes > 0) {
    const Buffer& first = *stream.staged.front();
    stream.console->turns.offer_lines(stream, first.data[first.begin] == '\r', now);
  } else if (!stream.unfinished.empty() && (!stream.readable || stream.ended)) {
    const bool full_buffer = stream.received % kStdioBuffer == 0 && !stream.ended;
    stream.console->turns.offer_partial(stream, stream.unfinished.front() == '\r', full_buffer,
                                        now);
  }
}

// ---- writing ----

void OutputLoop::stage(Stream& stream, std::string_view bytes, Time now) {
  if (bytes.empty()) return;
  copy_to_staged(stream, bytes);
  offer_what_is_left(stream, now);
}

void OutputLoop::copy_to_staged(Stream& stream, std::string_view bytes) {
  stream.left = left_after(stream.left, bytes);
  stream.staged_bytes += bytes.size();
  while (!bytes.empty()) {
    if (stream.staged.empty() || stream.staged.back()->end == kBufferSize)
      stream.staged.push_back(pool_.take());
    Buffer& buffer = *stream.staged.back();
    const std::size_t taken = std::min(bytes.size(), kBufferSize - buffer.end);
    ::memcpy(buffer.data.get() + buffer.end, bytes.data(), taken);
    buffer.end += taken;
    bytes.remove_prefix(taken);
  }
}

void OutputLoop::pump(Console& console, Time now) {
  while (console.sink.state() != Sink::State::Blocked) {
    if (console.writer == nullptr) {
      const auto grant = console.turns.next(now);
      if (!grant) return;
      begin_turn(console, *grant);
    }
    if (write_some(console, now)) end_turn(console, now);
  }
}

// The turn is for what is staged now; what comes while the console is blocked waits for the next.
void OutputLoop::begin_turn(Console& console, const LineTurns::Grant& grant) {
  Stream& stream = static_cast<Stream&>(*grant.seat);
  if (stream.staged_bytes == 0) {
    copy_to_staged(stream, stream.unfinished);
    stream.unfinished.clear();
  }
  console.writer = &stream;
  console.quota = stream.staged_bytes;
  console.left = stream.left;
  console.newline_first = grant.newline_first;
}

// True when the turn is over.
bool OutputLoop::write_some(Console& console, Time now) {
  static char newline = '\n';
  Stream& stream = *console.writer;
  std::array<iovec, kParts> parts;
  std::size_t count = 0;
  if (console.newline_first) parts[count++] = {&newline, 1};
  std::size_t quota = console.quota;
  for (const auto& buffer : stream.staged) {
    if (quota == 0 || count == parts.size()) break;
    const std::size_t size = std::min(quota, buffer->end - buffer->begin);
    parts[count++] = {buffer->data.get() + buffer->begin, size};
    quota -= size;
  }
  std::size_t taken = console.sink.write({parts.data(), count});
  if (console.sink.state() == Sink::State::Gone) taken = console.quota + 1;  // let it go
  if (taken == 0) return false;
  progress_.fetch_add(1);
  last_progress_ = now;
  if (console.newline_first) {
    console.newline_first = false;
    --taken;
  }
  taken = std::min(taken, console.quota);
  console.quota -= taken;
  consume(stream, taken);
  return console.quota == 0;
}

void OutputLoop::end_turn(Console& console, Time now) {
  Stream& stream = *console.writer;
  console.writer = nullptr;
  console.turns.written(stream, console.left, now);
  offer_what_is_left(stream, now);
}

void OutputLoop::consume(Stream& stream, std::size_t count) {
  stream.staged_bytes -= count;
  while (count > 0) {
    Buffer& buffer = *stream.staged.front();
    const std::size_t taken = std::min(count, buffer.end - buffer.begin);
    buffer.begin += taken;
    count -= taken;
    if (buffer.begin == buffer.end) {
      pool_.give(std::move(stream.staged.front()));
      stream.staged.pop_front();
    }
  }
  if (stream.readable && stream.staged_bytes < kReadAhead) set_ready(stream);
}

void OutputLoop::forget_written() {
  std::erase_if(released_, [](const std::unique_ptr<Stream>& stream) {
    if (stream->staged_bytes > 0 || !stream->unfinished.empty()) return false;
    if (stream->console->writer == stream.get()) return false;
    stream->console->turns.leave(*stream);
    return true;
  });
}

void OutputLoop::answer_drained() {
  if (draining_.empty() || !released_.empty()) return;
  for (const std::uint64_t id : draining_) {
    auto answer = std::make_unique<OutputAnswer>();
    answer->id = id;
    answers_.post(std::move(answer));
  }
  draining_.clear();
}

bool OutputLoop::everything_written() const {
  return released_.empty() && own_.staged_bytes == 0 && draining_.empty();
}

}  // namespace drun::launcher
