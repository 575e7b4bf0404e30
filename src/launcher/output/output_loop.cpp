#include "launcher/output/output_loop.hpp"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/deadline.hpp"
#include "launcher/output/output_terminal.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kReadAhead = 64 * 1024;        // staged bytes from which a stream is not read
constexpr std::size_t kReadAtEnd = 4 * 1024 * 1024;  // of a dead worker's stream, at most
constexpr std::size_t kUsualPipe = 64 * 1024;        // of Linux
// The system allows a user 64 MiB of pipes; whoever is beyond gets tiny ones.
constexpr int kMostGrownPipes = 64;
constexpr int kEvents = 64;

void add(int epoll, int fd, std::uint32_t events, void* pointer) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = pointer;
  // EPERM: a file or device that is always ready.
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0 && errno != EPERM && errno != EEXIST)
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

}  // namespace

OutputLoop::OutputLoop(const OutputLoopOptions& options)
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      consoles_{Console(options.standard_output), Console(options.standard_error)},
      error_(same_destination(options.standard_output, options.standard_error) ? 0 : 1),
      foldings_{Folding(pool_), Folding(pool_)},
      own_(pool_, 0) {
  if (!epoll_) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  add(epoll_.get(), commands_.fd(), EPOLLIN, nullptr);
  for (std::size_t i = 0; i <= error_; ++i) {
    Console& console = consoles_[i];
    if (console.sink().wait_fd() >= 0)
      add(epoll_.get(), console.sink().wait_fd(), EPOLLOUT | EPOLLET, &console);
    foldings_[i].out.console = &console;
    foldings_[i].folder = LineFolder({.window = options.fold_window});
    foldings_[i].stamped = options.stamped_folds;
  }
  own_.console = &consoles_[error_];
}

// The stream joins its console before the first byte of any stream that was opened after it. Else a
// rank that prints early would count as alone there, and its unfinished lines would not be held.
void OutputLoop::watch(Stream& stream) {
  stream.next_arrival = arrivals_.load(std::memory_order_relaxed);
  while (!arrivals_.compare_exchange_weak(stream.next_arrival, &stream, std::memory_order_release,
                                          std::memory_order_relaxed)) {
  }
  add(epoll_.get(), stream.source.get(), EPOLLIN | EPOLLET, &stream);
}

void OutputLoop::run() {
  join(own_);
  std::array<epoll_event, kEvents> events{};
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), kEvents,
                                   timeout(std::chrono::steady_clock::now()));
    const Time now = std::chrono::steady_clock::now();
    attach_arrivals();
    bool commanded = false;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.ptr == nullptr) {
        commanded = true;
      } else if (event.data.ptr == &consoles_[0] || event.data.ptr == &consoles_[1]) {
        static_cast<Console*>(event.data.ptr)->sink().unblock();
      } else {
        Stream& stream = *static_cast<Stream*>(event.data.ptr);
        stream.readable = true;
        stream.hung_up |= (event.events & (EPOLLHUP | EPOLLERR)) != 0;
        set_ready(stream);
      }
    }
    pump(now);
    look_at_streams(now);
    flush_folds(now);
    pump(now);
    // Last: a command may delete streams that had events.
    while (commanded) {
      const auto command = commands_.receive();
      if (command == nullptr) break;
      execute(*command, now);
    }
    forget_written();
    if (stopping_ && (everything_written() || now - last_progress_ >= patience_)) {
      answer(*stopping_, {});
      return;
    }
  }
}

int OutputLoop::timeout(Time now) const {
  if (!ready_.empty()) return 0;
  EarliestDeadline next;
  for (std::size_t i = 0; i <= error_; ++i) {
    next.include(consoles_[i].deadline(now));
    if (foldings_[i].out.staged.empty()) next.include(foldings_[i].folder.deadline());
  }
  if (stopping_) next.include(last_progress_ + patience_);
  if (!next.time()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next.time() - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

// ---- commands ----

void OutputLoop::execute(OutputCommand& command, Time now) {
  attach_arrivals();  // it may be about a stream that came a moment ago
  switch (command.kind) {
    case OutputCommand::Kind::Tail: {
      std::vector<std::string> lines;
      for (Stream* stream : command.streams) {
        read_all(*stream, now);
        if (stream->is_error) lines = stream->last.lines();
      }
      answer(command.id, std::move(lines));
      break;
    }
    case OutputCommand::Kind::Message:
      say(command.text, now);
      break;
    case OutputCommand::Kind::Resize:
      for (const Stream* stream : command.streams)
        if (stream->terminal && stream->source)
          copy_window_size(stream->console->sink().fd(), stream->source.get());
      answer(command.id, {});
      break;
    case OutputCommand::Kind::Drain:
      for (auto& stream : command.released)
        release(std::move(stream), now);
      draining_.push_back(command.id);
      note_unwritten();  // a write may hang
      break;
    case OutputCommand::Kind::Stop:
      for (auto& stream : command.released)
        release(std::move(stream), now);
      stopping_ = command.id;
      patience_ = command.patience;
      last_progress_ = now;
      break;
  }
  flush_folds(now);
  pump(now);
}

void OutputLoop::release(std::unique_ptr<Stream> stream, Time now) {
  read_all(*stream, now);
  source_ended(*stream, now);
  std::erase(ready_, stream.get());
  for (Folding& folding : foldings_)
    std::erase(folding.waiting, stream.get());
  released_.push_back(std::move(stream));
}

void OutputLoop::forget_written() {
  std::erase_if(released_, [](const std::unique_ptr<Stream>& stream) {
    if (!stream->staged.empty() || !stream->unfinished.empty()) return false;
    if (stream->console == nullptr) return true;
    if (stream->console->is_writing(*stream)) return false;
    stream->console->leave(*stream);
    return true;
  });
  if (draining_.empty()) return;
  if (!everything_written()) return note_unwritten();
  drained_.store(draining_.back());
  for (const std::uint64_t id : draining_)
    answer(id, {});
  draining_.clear();
}

void OutputLoop::answer(std::uint64_t id, std::vector<std::string> lines) {
  auto answer = std::make_unique<OutputAnswer>();
  answer->id = id;
  answer->lines = std::move(lines);
  answers_.post(std::move(answer));
}

bool OutputLoop::everything_written() const {
  const auto is_empty = [](const Folding& folding) {
    return folding.out.staged.empty() && !folding.folder.deadline();
  };
  return released_.empty() && own_.staged.empty() && is_empty(foldings_[0]) &&
         is_empty(foldings_[1]);
}

// A pipe is writable only when its reader has emptied a page of it, a socket much of its buffer.
std::uint64_t OutputLoop::taken(bool error) const {
  const std::size_t console = error ? error_ : 0;
  return (progress_[console].load() << 32) - consoles_[console].sink().unread();
}

void OutputLoop::note_unwritten() {
  const auto waits = [](const Folding& folding) { return !folding.out.staged.empty(); };
  std::array<bool, 2> unwritten{waits(foldings_[0]), waits(foldings_[1]) || !own_.staged.empty()};
  for (const auto& stream : released_)
    unwritten[stream->is_error ? 1 : 0] = true;
  unwritten_.store(unwritten);
}

// ---- reading ----

void OutputLoop::attach_arrivals() {
  Stream* stream = arrivals_.exchange(nullptr, std::memory_order_acquire);
  while (stream != nullptr)
    join(*std::exchange(stream, stream->next_arrival));
}

void OutputLoop::join(Stream& stream) {
  if (stream.joined) return;
  stream.joined = true;
  if (stream.console != nullptr) stream.console->join(stream);
  if (stream.folding != nullptr) {
    join(stream.folding->out);
    stream.folding->folder.join(stream.rank);
  }
}

void OutputLoop::set_ready(Stream& stream) {
  if (stream.ready || stream.ended) return;
  stream.ready = true;
  ready_.push_back(&stream);
}

bool OutputLoop::ahead(const Stream& stream) const {
  return stream.staged.size() >= kReadAhead ||
         (stream.folding != nullptr && stream.folding->out.staged.size() >= kReadAhead);
}

// One read of each stream that has something and is not ahead of its reader. A stream that is ahead
// leaves the list and comes back when its bytes are written.
void OutputLoop::look_at_streams(Time now) {
  const std::size_t count = ready_.size();
  for (std::size_t i = 0; i < count; ++i) {
    Stream& stream = *ready_[i];
    stream.ready = false;
    if (ahead(stream)) {
      if (stream.folding != nullptr) {
        stream.folding->waiting.push_back(&stream);
        stream.console->hold_back(stream);
      }
      continue;
    }
    if (read_once(stream, now)) set_ready(stream);
    if (stream.folding != nullptr) flush_folds(now);
    pump(now);
  }
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
}

void OutputLoop::read_all(Stream& stream, Time now) {
  if (stream.ended) return;
  stream.readable = stream.hung_up = true;  // whether or not: until there is nothing
  const std::uint64_t end = stream.received + kReadAtEnd;
  while (read_once(stream, now) && stream.received < end) {
  }
}

// True while there may be more.
bool OutputLoop::read_once(Stream& stream, Time now) {
  if (stream.ended) return false;
  const auto room = stream.raw() ? read_raw(stream) : read_lines(stream, now);
  if (!room && errno != EAGAIN) {
    source_ended(stream, now);  // end of file; EIO: the last user of a terminal has left
    return false;
  }
  const bool drained = !room || (*room > 0 && !stream.terminal && !stream.hung_up);
  if (drained) stream.readable = false;
  if (stream.console != nullptr) stream.console->offer(stream, now);
  look_at_files(stream, now);
  return stream.readable;
}

void OutputLoop::look_at_files(Stream& stream, Time now) {
  if (stream.log != nullptr && stream.log->error() != 0) {
    lose_log(stream.log->path(), stream.log->error(), now);
    stream.log.reset();
  }
  if (stream.filter == nullptr) return;
  if (const int error = stream.filter->new_error(); error != 0)
    lose_log(stream.filter->path(), error, now);
}

// A full disk ends all logs within a moment: the first is named now, the number at the end.
void OutputLoop::lose_log(const std::string& path, int error, Time now) {
  if (lost_logs_.load() == 0) {
    first_lost_log_ = path + ": " + std::generic_category().message(error);
    say("drun: cannot write " + first_lost_log_ + "; the rest of it is lost\n", now);
  }
  lost_logs_.fetch_add(1);
}

std::string OutputLoop::lost_logs() const {
  const unsigned count = lost_logs_.load();
  if (count == 0) return {};
  return (count == 1 ? "a log file is" : std::to_string(count) + " log files are") +
         std::string(" not complete: cannot write ") + first_lost_log_;
}

namespace {

// errno is 0 at the end of the stream.
ssize_t read_some(int fd, char* to, std::size_t room) {
  for (;;) {
    const ssize_t count = ::read(fd, to, room);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = 0;
    return count;
  }
}

}  // namespace

// Reads behind the unfinished line, where the bytes stay until they are written. The result: how
// much room is left; nullopt: nothing was read, errno says why.
std::optional<std::size_t> OutputLoop::read_raw(Stream& stream) {
  const std::size_t carried = stream.unfinished.size();
  char* const begin = stream.staged.room(carried + kReadAhead);
  const std::size_t room = stream.staged.spare() - carried;
  const ssize_t count = read_some(stream.source.get(), begin + carried, room);
  if (count <= 0) {
    const int error = errno;
    stream.staged.trim();
    errno = error;
    return std::nullopt;
  }
  std::copy(stream.unfinished.begin(), stream.unfinished.end(), begin);
  const std::string_view bytes(begin, carried + static_cast<std::size_t>(count));
  take_note(stream, bytes.substr(carried));
  const std::size_t whole = whole_lines(bytes, carried);
  stream.unfinished.assign(bytes.substr(whole));
  if (whole > 0) stream.line_state = state_after(stream.line_state, bytes.substr(0, whole));
  stream.staged.commit(whole);
  stream.staged.trim();
  return room - static_cast<std::size_t>(count);
}

std::optional<std::size_t> OutputLoop::read_lines(Stream& stream, Time now) {
  if (scratch_ == nullptr) scratch_.reset(new char[kBufferSize]);
  const ssize_t count = read_some(stream.source.get(), scratch_.get(), kBufferSize);
  if (count <= 0) return std::nullopt;
  const std::string_view bytes(scratch_.get(), static_cast<std::size_t>(count));
  take_note(stream, bytes);
  stream.take(bytes, now);
  return kBufferSize - static_cast<std::size_t>(count);
}

void OutputLoop::take_note(Stream& stream, std::string_view bytes) {
  // It was full: its writer waited for us.
  if (bytes.size() >= kUsualPipe && !stream.grown && grown_pipes_ < kMostGrownPipes) {
    stream.grown = true;
    ++grown_pipes_;
    ::fcntl(stream.source.get(), F_SETPIPE_SZ, static_cast<int>(kBufferSize));
  }
  stream.received += bytes.size();
  if (stream.is_error) stream.last.append(bytes);
  if (stream.log != nullptr) stream.log->write(bytes);
}

void OutputLoop::source_ended(Stream& stream, Time now) {
  if (stream.ended) return;
  if (stream.grown) --grown_pipes_;
  // Closing does not end the events while a forked process has the descriptor too.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stream.source.get(), nullptr);
  stream.source.reset();
  if (stream.console == nullptr) {
    stream.ended = true;
    stream.finish(now);
    look_at_files(stream, now);
    return;
  }
  stream.console->end(stream);
  stream.finish(now);
  look_at_files(stream, now);
  stream.console->offer(stream, now);
}

// ---- writing ----

void OutputLoop::say(std::string_view text, Time now) {
  own_.staged.append(text);
  own_.line_state = state_after({}, text);
  own_.console->offer(own_, now);
}

void OutputLoop::flush_folds(Time now) {
  for (Folding& folding : foldings_) {
    if (folding.out.staged.size() < kReadAhead && folding.flush(now))
      folding.out.console->offer(folding.out, now);
  }
}

void OutputLoop::pump(Time now) {
  written_.clear();
  for (std::size_t i = 0; i <= error_; ++i) {
    if (consoles_[i].pump(now, written_)) {
      progress_[i].fetch_add(1);
      last_progress_ = now;
    }
  }
  for (Stream* stream : written_) {
    if (stream->readable && !ahead(*stream)) set_ready(*stream);
  }
  for (Folding& folding : foldings_) {
    if (folding.out.staged.size() >= kReadAhead) continue;
    for (Stream* stream : std::exchange(folding.waiting, {}))
      set_ready(*stream);
  }
  for (std::size_t i = 0; i <= error_ && !lost_output_; ++i) {
    const Sink& sink = consoles_[i].sink();
    if (sink.state() != Sink::State::Gone || sink.reader_left()) continue;
    lost_output_ = true;
    say("drun: cannot write standard " + std::string(i == 0 ? "output" : "error") + ": " +
            std::generic_category().message(sink.error()) + "; the rest of it is lost\n",
        now);
    pump(now);
  }
}

}  // namespace drun::launcher
