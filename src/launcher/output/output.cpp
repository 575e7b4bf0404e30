#include "launcher/output/output.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/file_worker.hpp"
#include "launcher/output/output_route.hpp"
#include "launcher/output/output_thread.hpp"
#include "launcher/output/tail.hpp"

namespace drun::launcher {
namespace {

// For one look at a log that a worker writes itself. The loop waits for it.
constexpr std::chrono::milliseconds kLookLimit{2000};

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

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

bool is_full(const std::string& folder) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0 || disk.f_blocks == 0) return false;
  return (::geteuid() == 0 ? disk.f_bfree : disk.f_bavail) == 0;
}

}  // namespace

Output::Output(OutputOptions options)
    : options_(std::move(options)),
      files_(std::make_shared<OutputFiles>(options_.choices, options_.run_id, options_.temporary)),
      thread_(std::make_unique<OutputThread>(
          OutputLoopOptions{options_.standard_output, options_.standard_error, options_.fold_window,
                            options_.choices.timestamps, options_.quiet,
                            options_.choices.own_words.begin, options_.choices.own_words.end})) {
  thread_->start();
}

Output::~Output() {
  thread_->stop(std::move(streams_), options_.patience);
}

MakeFiles Output::make_files() {
  return [files = files_](const StreamLabel& label) { return files->open(label); };
}

WorkerStreams Output::open(const StreamLabel& label, WorkerFiles files) {
  try {
    WorkerStreams streams;
    streams.standard_output = open(label, false, std::move(files.standard_output));
    streams.standard_error = open(label, true, std::move(files.standard_error));
    return streams;
  } catch (const std::system_error&) {
    logs_.erase(label.worker);
    throw;
  }
}

FileDescriptor Output::open(const StreamLabel& label, bool error, StreamFiles files) {
  const OutputChoices& choices = options_.choices;
  const Route route = route_of(choices, label.local_rank, error, !files.log.empty());
  if (!files.log.empty()) logs_[label.worker][error ? 1 : 0] = files.log;
  if (files.direct) {
    direct_folder_ = folder_of(files.log);
    return std::move(files.direct);
  }
  if (route.nothing) return open_nothing();

  auto stream =
      std::make_unique<Stream>(thread_->loop().pool(), error ? options_.choices.tail_lines : 0);
  stream->worker = label.worker;
  stream->rank = label.rank;
  stream->is_error = error;
  if (route.console) {
    stream->console = thread_->loop().console(error);
    if (choices.fold) stream->folding = thread_->loop().folding(error);
    stream->stamped = choices.timestamps;
  }
  stream->log = std::move(files.kept);
  if (route.prefix)
    stream->prefix = line_prefix(choices.prefix_template,
                                 {label.role, label.rank, label.local_rank, options_.host});
  stream->filter = std::move(files.filter);
  const int own = error ? options_.standard_error : options_.standard_output;
  FileDescriptor other = stream->open_source(own, options_.terminal && route.terminal);
  thread_->loop().watch(*stream);
  streams_.push_back(std::move(stream));
  return other;
}

// At logs that the workers write themselves. Their file system may hang; if it does, nobody asks
// it again.
template <typename T>
std::optional<T> Output::look(std::function<T()> work) {
  if (direct_hangs_) return std::nullopt;
  try {
    auto found = ask_files<T>(kLookLimit, std::move(work));
    if (found) return std::move(*found);
    direct_hangs_ = found.error().code() == std::errc::timed_out;
  } catch (const std::system_error&) {  // no descriptor is left
  }
  return std::nullopt;
}

std::vector<std::string> Output::tail(std::uint32_t worker, std::chrono::milliseconds limit) {
  auto command = std::make_unique<OutputCommand>();
  command->kind = OutputCommand::Kind::Tail;
  for (const auto& stream : streams_)
    if (stream->worker == worker) command->streams.push_back(stream.get());
  const auto logs = logs_.find(worker);
  const bool direct = logs != logs_.end() && !logs->second[1].empty() &&
                      std::none_of(command->streams.begin(), command->streams.end(),
                                   [](const Stream* stream) { return stream->is_error; });
  if (direct) {
    const std::function<std::vector<std::string>()> read = [path = logs->second[1],
                                                            count = options_.choices.tail_lines] {
      return tail_of_file(path, count);
    };
    return look(read).value_or(std::vector<std::string>{});
  }
  if (command->streams.empty()) return {};
  auto answer = thread_->ask(std::move(command), limit);
  return answer ? std::move(answer->lines) : std::vector<std::string>{};
}

std::optional<Output::Time> Output::last_output(std::uint32_t worker) const {
  std::optional<Time> last;
  int streams = 0;
  for (const auto& stream : streams_) {
    if (stream->worker != worker) continue;
    ++streams;
    last = std::max(last, std::optional(stream->last_read.load(std::memory_order_relaxed)));
  }
  return streams == 2 ? last : std::nullopt;  // one of the two says nothing of a silence
}

bool Output::drain(std::chrono::milliseconds limit) {
  // Logs that the workers write themselves: only they see the error if the disk is full.
  if (!direct_folder_.empty() && !disk_full_)
    disk_full_ = look<bool>([folder = direct_folder_] { return is_full(folder); }).value_or(false);
  logs_.clear();
  return thread_->drain(std::exchange(streams_, {}), limit);
}

FlushProgress Output::flush_progress() const {
  return thread_->flush_progress();
}

bool Output::lost_output() const {
  return thread_->lost_output();
}

std::string Output::lost_logs() const {
  std::string lost = thread_->lost_logs();
  if (lost.empty() && disk_full_)
    lost = "the disk of --log-dir is full: what the workers wrote to their logs may be cut off";
  return lost;
}

void Output::message(std::string text) {
  if (text.empty() || text.back() != '\n') text += '\n';
  status(std::move(text));
}

void Output::status(std::string text) {
  thread_->post(message_command(std::move(text)));
}

void Output::resize() {
  thread_->resize(streams_);
}

std::string Output::log_file(std::uint32_t worker) const {
  const auto found = logs_.find(worker);
  if (found == logs_.end()) return {};
  return found->second[1].empty() ? found->second[0] : found->second[1];
}

}  // namespace drun::launcher
