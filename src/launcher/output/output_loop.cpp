#include "launcher/output/output_loop.hpp"

#include <fcntl.h>
#include <sys/epoll.h>

#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "base/deadline.hpp"
#include "launcher/output/output_terminal.hpp"

namespace drun::launcher {
namespace {

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
      own_(pool_, 0),
      stamped_(options.stamped),
      words_begin_(options.words_begin),
      words_end_(options.words_end),
      told_reader_left_(options.quiet) {
  if (!epoll_) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  add(epoll_.get(), commands_.fd(), EPOLLIN, nullptr);
  for (std::size_t i = 0; i <= error_; ++i) {
    Console& console = consoles_[i];
    if (console.sink().wait_fd() >= 0)
      add(epoll_.get(), console.sink().wait_fd(), EPOLLOUT | EPOLLET, &console);
    foldings_[i].out.console = &console;
    foldings_[i].folder = LineFolder({.window = options.fold_window});
    foldings_[i].stamped = options.stamped;
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
    Time now = std::chrono::steady_clock::now();
    if (count > 0 && pace_.waits(now)) {
      std::this_thread::sleep_for(ReadPace::kPause);
      now = std::chrono::steady_clock::now();
    }
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
    if (const std::size_t longest = std::exchange(longest_read_, 0); longest > 0)
      pace_.ended(longest, std::exchange(read_, 0), std::chrono::steady_clock::now());
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
  return poll_limit(time_left(*next.time(), now));
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
          copy_window_size(stream->console->sink().fd(), stream->source.get(),
                           stream->columns_before());
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

// ---- writing ----

void OutputLoop::say(std::string_view text, Time now) {
  if (!words_begin_.empty()) {
    for (const std::string_view part :
         {std::string_view(words_begin_), text, std::string_view(words_end_)})
      own_.staged.append(part);
    text = words_end_;
    // What begins with a carriage return is the status line, which is no line of a log.
  } else if (stamped_ && !text.starts_with('\r')) {
    append_lines(own_.staged, text, time_stamp(std::chrono::system_clock::now()), Begins::Line);
  } else {
    own_.staged.append(text);
  }
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
    // One of --fold may have to wait for the folded lines.
    if (stream->readable && (stream->folding != nullptr || !ahead(*stream))) set_ready(*stream);
  }
  for (Folding& folding : foldings_) {
    if (folding.out.staged.size() >= kReadAhead) continue;
    for (Stream* stream : std::exchange(folding.waiting, {}))
      set_ready(*stream);
  }
  tell_what_is_gone(now);
}

void OutputLoop::tell_what_is_gone(Time now) {
  for (std::size_t i = 0; i <= error_; ++i) {
    const Sink& sink = consoles_[i].sink();
    if (sink.state() != Sink::State::Gone) continue;
    if (!sink.reader_left()) {
      if (lost_output_.exchange(true)) continue;
      say("drun: cannot write standard " + std::string(i == 0 ? "output" : "error") + ": " +
              std::generic_category().message(sink.error()) + "; the rest of it is lost\n",
          now);
    } else if (i != error_ && !std::exchange(told_reader_left_, true)) {
      say("drun: warning: nobody reads standard output any more; the workers run on, and what they "
          "print there is not shown\n",
          now);
    } else {
      continue;
    }
    pump(now);
  }
}

}  // namespace drun::launcher
