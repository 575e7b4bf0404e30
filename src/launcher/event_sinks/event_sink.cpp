#include "launcher/event_sinks/event_sink.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <system_error>
#include <utility>

#include "base/file_descriptor.hpp"
#include "base/file_worker.hpp"
#include "base/pipe.hpp"
#include "base/poll_until.hpp"
#include "base/put_aside.hpp"
#include "launcher/event_sinks/side_command.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// Kept beside the present one: "events.jsonl.1", the youngest, to "events.jsonl.4".
constexpr int kOldFiles = 4;

// A pipe that takes nothing for so long is looked at again later.
constexpr std::chrono::seconds kReaderLimit{1};
// Of exec: after the end of its input.
constexpr std::chrono::seconds kCommandLimit{5};

std::string text_of_errno(int error) {
  return std::generic_category().message(error);
}

// One write for one line: nobody else's comes in between.
int write_line(int file, std::string_view line, std::size_t& written) {
  ssize_t count = 0;
  while ((count = ::write(file, line.data(), line.size())) < 0 && errno == EINTR) {
  }
  written = count < 0 ? 0 : static_cast<std::size_t>(count);
  return count < 0 ? errno : 0;
}

// Other agents may write to it as well, and put it aside.
class FileSink final : public EventSink {
 public:
  FileSink(std::string path, std::uint64_t max_size)
      : path_(std::move(path)), max_size_(max_size) {}

  SinkResult write(std::span<const std::string> lines) override {
    SinkResult result;
    for (const std::string& line : lines) {
      ++result.taken;
      if (const std::string why = write(line); why.empty()) {
        ++result.written;
      } else {
        result.why = why;
      }
    }
    return result;
  }

 private:
  std::string write(const std::string& line) {
    about_to("write " + path_);
    if (const int error = have_file(line.size()); error != 0)
      return "open " + path_ + ": " + text_of_errno(error);
    std::size_t written = 0;
    int error = 0;
    if (torn_) {  // then only that line is none
      error = write_line(file_.get(), "\n", written);
      torn_ = error != 0;
    }
    if (!torn_) error = write_line(file_.get(), line, written);
    if (written == line.size()) return "";
    if (error == 0) {
      take_back(written);
      error = ENOSPC;
    }
    return "write " + path_ + ": " + text_of_errno(error);
  }

  // What was written of a line, unless somebody has written behind it.
  void take_back(std::size_t written) {
    struct stat about {};
    const off_t end = ::lseek(file_.get(), 0, SEEK_CUR);
    const bool last = end >= 0 && ::fstat(file_.get(), &about) == 0 && about.st_size == end;
    torn_ = !last || ::ftruncate(file_.get(), end - static_cast<off_t>(written)) != 0;
  }

  int have_file(std::size_t more) {
    if (file_ && max_size_ > 0) look_at_size(more);
    if (file_) return 0;
    file_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666));
    return file_ ? 0 : errno;
  }

  void look_at_size(std::size_t more) {
    struct stat own {};
    struct stat named {};
    if (::fstat(file_.get(), &own) != 0 || !S_ISREG(own.st_mode)) return;
    if (::stat(path_.c_str(), &named) != 0 || named.st_ino != own.st_ino ||
        named.st_dev != own.st_dev)
      return file_.reset();  // somebody else has put it aside
    if (own.st_size == 0 || static_cast<std::uint64_t>(own.st_size) + more <= max_size_) return;
    // One of those that share it; the others see it before their next line.
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) return;
    if (::stat(path_.c_str(), &named) == 0 && named.st_ino == own.st_ino)
      put_aside(path_, kOldFiles);
    file_.reset();
  }

  const std::string path_;
  const std::uint64_t max_size_;
  FileDescriptor file_;
  bool torn_ = false;  // its last line has no end
};

// A pipe whose reader is slow holds up nobody but this thread, and not for long.
SinkResult write_to_pipe(int pipe, std::span<const std::string> lines, const std::string& name) {
  SinkResult result;
  for (const std::string& line : lines) {
    if (!await_ready(pipe, POLLOUT, Clock::now() + kReaderLimit)) return result;
    std::size_t written = 0;
    const int error = write_line(pipe, line, written);
    if (error == EAGAIN) return result;
    ++result.taken;
    if (written == line.size()) {
      ++result.written;
    } else {
      result.why = "write to " + name + ": " + text_of_errno(error == 0 ? ENOSPC : error);
    }
  }
  return result;
}

class DescriptorSink final : public EventSink {
 public:
  explicit DescriptorSink(int descriptor) : descriptor_(descriptor) {}
  SinkResult write(std::span<const std::string> lines) override {
    return write_to_pipe(descriptor_, lines, "descriptor " + std::to_string(descriptor_));
  }

 private:
  const int descriptor_;
};

class CommandSink final : public EventSink {
 public:
  explicit CommandSink(std::string command) : command_(std::move(command)) {}
  ~CommandSink() override {
    if (process_) signal_group(*process_, SIGTERM);
  }

  SinkResult write(std::span<const std::string> lines) override {
    if (!std::exchange(begun_, true)) begin();
    if (!input_) return {lines.size(), 0, failure_};
    return write_to_pipe(input_.get(), lines, "the command");
  }

  std::string end() override {
    input_.reset();  // it reads the end
    if (!process_) return "";
    const auto process = std::exchange(process_, std::nullopt);
    return end_side_command(*process, Clock::now() + kCommandLimit);
  }

 private:
  void begin() {
    auto pipe = try_pipe();
    if (!pipe) {
      failure_ = pipe.error().what();
      return;
    }
    auto started = start_side_command(command_, {}, pipe->read.get());
    if (!started) {
      failure_ = started.error().what();
      return;
    }
    process_ = std::move(*started);
    input_ = std::move(pipe->write);
  }

  const std::string command_;
  bool begun_ = false;
  FileDescriptor input_;
  std::optional<SideCommand> process_;
  std::string failure_;
};

}  // namespace

std::unique_ptr<EventSink> make_event_sink(const EventTarget& target, std::string path,
                                           std::uint64_t max_size) {
  switch (target.kind) {
    case EventTarget::Kind::Descriptor:
      return std::make_unique<DescriptorSink>(target.descriptor);
    case EventTarget::Kind::Command:
      return std::make_unique<CommandSink>(target.text);
    case EventTarget::Kind::File:
      break;
  }
  return std::make_unique<FileSink>(std::move(path), max_size);
}

}  // namespace drun::launcher
