// OutputLoop: reading the workers' streams.
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "launcher/output/output_loop.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kReadAtEnd = 4 * 1024 * 1024;  // of a dead worker's stream, at most
// At most: a rank that is far ahead of the others leaves no lines for them to join.
constexpr std::size_t kReadToFold = 64 * 1024;
constexpr std::size_t kUsualPipe = 64 * 1024;  // of Linux
// The system allows a user 64 MiB of pipes; a user beyond that gets tiny ones.
constexpr int kMostGrownPipes = 64;

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

bool OutputLoop::waits_for_folded(const Stream& stream) const {
  return stream.folding != nullptr && stream.folding->out.staged.size() >= kReadAhead;
}

bool OutputLoop::ahead(const Stream& stream) const {
  return stream.staged.size() >= kReadAhead || stream.is_full() || waits_for_folded(stream);
}

// One read of each stream that has something and is not ahead of its reader. A stream that is ahead
// leaves the list and comes back when its bytes are written.
void OutputLoop::look_at_streams(Time now) {
  const std::size_t count = ready_.size();
  for (std::size_t i = 0; i < count; ++i) {
    Stream& stream = *ready_[i];
    stream.ready = false;
    if (ahead(stream)) {
      // Else its own bytes bring it back, when they are written.
      if (waits_for_folded(stream)) {
        auto& waiting = stream.folding->waiting;
        if (std::find(waiting.begin(), waiting.end(), &stream) == waiting.end())
          waiting.push_back(&stream);
        if (!stream.is_full()) stream.console->hold_back(stream);
      }
      continue;
    }
    if (read_once(stream, now)) set_ready(stream);
    if (stream.folding != nullptr) {
      // Nothing more of its line is read before the beginning is shown, behind all lines before it.
      if (stream.is_full()) stream.folding->folder.hurry();
      flush_folds(now);
    }
    pump(now);
  }
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
}

void OutputLoop::read_all(Stream& stream, Time now) {
  if (stream.ended) return;
  stream.readable = stream.hung_up = true;  // true or not: read until nothing is left
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

// Reads into the buffer behind the unfinished line; the bytes stay there until they are written.
// Returns how much room is left; nullopt: nothing was read, errno says why.
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
  const std::size_t wanted = stream.folding != nullptr ? kReadToFold : kBufferSize;
  const ssize_t count = read_some(stream.source.get(), scratch_.get(), wanted);
  if (count <= 0) return std::nullopt;
  const std::string_view bytes(scratch_.get(), static_cast<std::size_t>(count));
  take_note(stream, bytes);
  stream.take(bytes, now);
  return wanted - static_cast<std::size_t>(count);
}

void OutputLoop::take_note(Stream& stream, std::string_view bytes) {
  // It was full: its writer waited for us.
  if (bytes.size() >= kUsualPipe && !stream.grown && grown_pipes_ < kMostGrownPipes) {
    stream.grown = true;
    ++grown_pipes_;
    ::fcntl(stream.source.get(), F_SETPIPE_SZ, static_cast<int>(kBufferSize));
  }
  stream.received += bytes.size();
  longest_read_ = std::max(longest_read_, bytes.size());
  read_ += bytes.size();
  stream.last_read.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
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

}  // namespace drun::launcher
