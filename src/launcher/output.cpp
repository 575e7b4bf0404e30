#include "launcher/output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "launcher/output_loop.hpp"
#include "launcher/output_paths.hpp"
#include "launcher/output_route.hpp"
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

// A stream that nobody reads.
FileDescriptor open_nothing() {
  FileDescriptor null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!null) throw std::system_error(errno, std::generic_category(), "open /dev/null");
  return null;
}

std::vector<std::string> tail_of_file(const std::string& path, std::size_t lines) {
  constexpr off_t kEnd = 64 * 1024;
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const off_t size = file ? ::lseek(file.get(), 0, SEEK_END) : -1;
  if (size <= 0) return {};
  std::string bytes(static_cast<std::size_t>(std::min(size, kEnd)), '\0');
  const ssize_t n = ::pread(file.get(), bytes.data(), bytes.size(), size - std::min(size, kEnd));
  bytes.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return last_lines(bytes, lines);
}

}  // namespace

class Output::Impl {
 public:
  explicit Impl(OutputOptions options)
      : options_(std::move(options)),
        files_(options_.choices.log_dir, options_.run_id, options_.temporary),
        loop_({options_.standard_output, options_.standard_error, options_.patience,
               options_.choices.timestamps}),
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
    const OutputChoices& choices = options_.choices;
    const Route route = route_of(choices, label.local_rank, error, files_.keeps_logs());
    std::string log;
    if (route.log) {
      log = files_.rank_folder(label.round, label.restart_count, label.local_rank) +
            (error ? "/stderr.log" : "/stdout.log");
      logs_[label.worker][error ? 1 : 0] = log;
    }
    if (route.direct) return create_log(log);
    if (route.nothing) return open_nothing();

    auto stream = std::make_unique<Stream>(loop_.pool(), error ? options_.tail_lines : 0);
    stream->worker = label.worker;
    stream->rank = label.rank;
    stream->is_error = error;
    if (route.console) {
      stream->console = loop_.console(error);
      if (choices.fold) stream->folding = loop_.folding(error);
      stream->stamped = choices.timestamps;
    }
    if (route.log) stream->log = std::make_unique<LogFile>(log, choices.log_max_size);
    if (route.prefix)
      stream->prefix = line_prefix(choices.prefix_template,
                                   {label.role, label.rank, label.local_rank, options_.host});
    if (route.filter) stream->filter = filter(label, error);
    FileDescriptor other = connect(*stream, error, route.terminal);
    loop_.watch(*stream);
    streams_.push_back(std::move(stream));
    return other;
  }

  std::vector<std::string> tail(std::uint32_t worker, std::chrono::milliseconds limit) {
    auto command = std::make_unique<OutputCommand>();
    command->kind = OutputCommand::Kind::Tail;
    for (const auto& stream : streams_)
      if (stream->worker == worker) command->streams.push_back(stream.get());
    const auto logs = logs_.find(worker);
    const bool direct = logs != logs_.end() && !logs->second[1].empty() &&
                        std::none_of(command->streams.begin(), command->streams.end(),
                                     [](const Stream* stream) { return stream->is_error; });
    if (direct) return tail_of_file(logs->second[1], options_.tail_lines);
    if (command->streams.empty()) return {};
    const std::uint64_t id = command->id = ++last_id_;
    loop_.post(std::move(command));
    auto answer = wait_answer(id, limit);
    return answer ? std::move(answer->lines) : std::vector<std::string>{};
  }

  bool drain(std::chrono::milliseconds limit) {
    auto command = std::make_unique<OutputCommand>();
    command->kind = OutputCommand::Kind::Drain;
    command->released = std::exchange(streams_, {});
    logs_.clear();
    filters_.clear();
    const std::uint64_t id = command->id = ++last_id_;
    loop_.post(std::move(command));
    return wait_answer(id, limit) != nullptr;
  }

  void message(std::string text) {
    if (text.empty() || text.back() != '\n') text += '\n';
    status(std::move(text));
  }

  void status(std::string text) {
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

  RunFiles& files() { return files_; }

  std::string log_file(std::uint32_t worker) const {
    const auto found = logs_.find(worker);
    if (found == logs_.end()) return {};
    return found->second[1].empty() ? found->second[0] : found->second[1];
  }

 private:
  // The stream's source and the worker's end of it.
  FileDescriptor connect(Stream& stream, bool error, bool may_be_terminal) {
    const int own = error ? options_.standard_error : options_.standard_output;
    if (options_.terminal && may_be_terminal && ::isatty(own) != 0) {
      Terminal terminal = open_terminal(own);
      stream.terminal = true;
      stream.source = std::move(terminal.master);
      return std::move(terminal.slave);
    }
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw std::system_error(errno, std::generic_category(), "make a pipe for a worker");
    stream.source.reset(ends[0]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return FileDescriptor(ends[1]);
  }

  // One for all ranks of a round: the last stream that uses it closes it.
  std::shared_ptr<FilterFile> filter(const StreamLabel& label, bool error) {
    auto& shared = filters_[{label.round, error}];
    if (shared == nullptr) {
      const std::string folder = files_.attempt_folder(label.round, label.restart_count);
      shared = std::make_shared<FilterFile>(
          folder + (error ? "/filtered_stderr.log" : "/filtered_stdout.log"),
          error ? options_.choices.duplicate_stderr_filters
                : options_.choices.duplicate_stdout_filters);
    }
    return shared;
  }

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
  RunFiles files_;
  OutputLoop loop_;
  std::thread thread_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::map<std::uint32_t, std::array<std::string, 2>> logs_;             // of stdout and stderr
  std::map<std::pair<int, bool>, std::shared_ptr<FilterFile>> filters_;  // by round and stream
  std::uint64_t last_id_ = 0;
};

Output::Output(OutputOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

Output::~Output() {
  if (!impl_->stop()) (void)impl_.release();  // the stuck thread's, until the process ends
}

WorkerStreams Output::open(const StreamLabel& label) {
  WorkerStreams streams;
  streams.standard_output = impl_->open(label, false);
  streams.standard_error = impl_->open(label, true);
  return streams;
}

std::string Output::error_file(const StreamLabel& label) {
  return impl_->files().error_file(label.round, label.restart_count, label.local_rank);
}

std::string Output::log_file(std::uint32_t worker) const {
  return impl_->log_file(worker);
}

std::string Output::log_folder() {
  return impl_->files().keeps_logs() ? impl_->files().run_folder() : std::string{};
}

const std::string& Output::private_folder() const {
  return impl_->files().private_folder();
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

void Output::status(std::string text) {
  impl_->status(std::move(text));
}

void Output::resize() {
  impl_->resize();
}

}  // namespace drun::launcher
