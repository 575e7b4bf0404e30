#include "launcher/output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "launcher/output_loop.hpp"
#include "launcher/output_terminal.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// Signals are the agent's thread's business.
std::thread start_thread(OutputLoop& loop) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([&loop] { loop.run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

class Output::Impl {
 public:
  explicit Impl(const OutputOptions& options)
      : options_(options),
        loop_(options.standard_output, options.standard_error, options.patience),
        thread_(start_thread(loop_)) {}

  // False when the thread is stuck in a write that never returns: it still uses this object.
  bool stop() {
    auto command = std::make_unique<OutputCommand>();
    command->kind = OutputCommand::Kind::Stop;
    command->released = std::move(streams_);
    const std::uint64_t id = command->id = ++last_id_;
    loop_.post(std::move(command));
    for (;;) {
      const std::uint64_t before = loop_.progress();
      // The loop gives up by itself after its patience: the rest is for a write that hangs.
      if (wait_answer(id, options_.patience + std::chrono::milliseconds(500))) {
        thread_.join();
        return true;
      }
      if (loop_.progress() == before) {
        thread_.detach();
        return false;
      }
    }
  }

  FileDescriptor open(const StreamLabel& label, bool error) {
    auto stream = std::make_unique<Stream>(error ? options_.tail_lines : 0);
    stream->worker = label.worker;
    stream->is_error = error;
    stream->console = loop_.console_of(error);
    const int own = error ? options_.standard_error : options_.standard_output;
    FileDescriptor other;
    if (options_.terminal && ::isatty(own) != 0) {
      Terminal terminal = open_terminal(own);
      stream->terminal = true;
      stream->source = std::move(terminal.master);
      other = std::move(terminal.slave);
    } else {
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0)
        throw std::system_error(errno, std::generic_category(), "make a pipe for a worker");
      stream->source.reset(ends[0]);
      other.reset(ends[1]);
      ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    }
    loop_.watch(*stream);
    streams_.push_back(std::move(stream));
    return other;
  }

  std::vector<std::string> tail(std::uint32_t worker, std::chrono::milliseconds limit) {
    auto command = std::make_unique<OutputCommand>();
    command->kind = OutputCommand::Kind::Tail;
    for (const auto& stream : streams_)
      if (stream->worker == worker) command->streams.push_back(stream.get());
    if (command->streams.empty()) return {};
    const std::uint64_t id = command->id = ++last_id_;
    loop_.post(std::move(command));
    auto answer = wait_answer(id, limit);
    return answer ? std::move(answer->lines) : std::vector<std::string>{};
  }

  bool drain(std::chrono::milliseconds limit) {
    auto command = std::make_unique<OutputCommand>();
    command->kind = OutputCommand::Kind::Drain;
    command->released = std::move(streams_);
    streams_.clear();
    const std::uint64_t id = command->id = ++last_id_;
    loop_.post(std::move(command));
    return wait_answer(id, limit) != nullptr;
  }

  void message(std::string text) {
    if (text.empty() || text.back() != '\n') text += '\n';
    auto command = std::make_unique<OutputCommand>();
    command->kind = OutputCommand::Kind::Message;
    command->text = std::move(text);
    loop_.post(std::move(command));
  }

  void resize() {
    auto command = std::make_unique<OutputCommand>();
    command->kind = OutputCommand::Kind::Resize;
    for (const auto& stream : streams_)
      command->streams.push_back(stream.get());
    loop_.post(std::move(command));
  }

 private:
  // Answers that came too late for their question are dropped.
  std::unique_ptr<OutputAnswer> wait_answer(std::uint64_t id, std::chrono::milliseconds limit) {
    const auto deadline = Clock::now() + limit;
    for (;;) {
      while (auto answer = loop_.answer())
        if (answer->id == id) return answer;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) return nullptr;
      pollfd ready{loop_.answer_fd(), POLLIN, 0};
      ::poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
    }
  }

  OutputOptions options_;
  OutputLoop loop_;
  std::thread thread_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::uint64_t last_id_ = 0;
};

Output::Output(OutputOptions options) : impl_(std::make_unique<Impl>(options)) {}

Output::~Output() {
  if (!impl_->stop()) (void)impl_.release();  // the stuck thread's, until the process ends
}

WorkerStreams Output::open(const StreamLabel& label) {
  WorkerStreams streams;
  streams.standard_output = impl_->open(label, false);
  streams.standard_error = impl_->open(label, true);
  return streams;
}

std::vector<std::string> Output::tail(std::uint32_t worker, std::chrono::milliseconds limit) {
  return impl_->tail(worker, limit);
}

bool Output::drain(std::chrono::milliseconds limit) {
  return impl_->drain(limit);
}

void Output::message(std::string text) {
  impl_->message(std::move(text));
}

void Output::resize() {
  impl_->resize();
}

}  // namespace drun::launcher
