#include "launcher/starter/edge.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include <asio/buffer.hpp>

#include "base/pidfd.hpp"
#include "base/pipe.hpp"
#include "launcher/process/clean_spawn.hpp"
#include "launcher/process/exit_status.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kKeptOfStderr = 4096;
// A pipe holds this much, if nobody has changed it.
constexpr std::size_t kPipe = 64 * 1024;
// A launcher that has closed its streams, or whose drun there ends, ends at once: this is for what
// hangs.
constexpr std::chrono::seconds kExitLimit{2};

}  // namespace

Edge::Edge(asio::io_context& io, const std::vector<std::string>& command, Calls calls)
    : stderr_(io), process_(io), limit_(io), calls_(std::move(calls)) {
  const char* const what = "make a pipe for a launcher";
  Pipe in = make_pipe(what);
  Pipe out = make_pipe(what);
  Pipe error = make_pipe(what);
  process::CleanSpawn launcher;
  launcher.file = command.front();
  launcher.arguments = command;
  launcher.input = in.read.get();
  launcher.output = out.write.get();
  launcher.error = error.write.get();
  // In a process group of its own: a Ctrl-C is for drun, which tells the agents.
  const std::string attempt = "run " + command.front();
  const auto started = process::spawn_clean(launcher, attempt);
  if (!started) throw std::system_error(started.error().code(), attempt);
  pid_ = *started;
  FileDescriptor pidfd = open_pidfd(pid_);
  if (!pidfd) {
    const int failure = errno;
    kill();
    throw std::system_error(failure, std::generic_category(), "watch " + command.front());
  }
  process_.assign(pidfd.release());
  stderr_.assign(error.read.release());
  stderr_.non_blocking(true);
  link_ = std::make_unique<FrameLink>(
      io, std::move(out.read), std::move(in.write), true,
      FrameLink::Calls{calls_.frame, calls_.wants_copy,
                       [this](const std::string& why) { act(fsm_.on_silence(why)); }});
  read_stderr();
  await_exit();
  link_->start();
}

Edge::~Edge() {
  if (!fsm_.runs() || pid_ < 0) return;
  kill();
  ::waitpid(pid_, nullptr, 0);
}

// Reads when its turn comes, and not before: tell() must find all that was not kept yet.
void Edge::read_stderr() {
  stderr_.async_wait(asio::posix::stream_descriptor::wait_read, [this](asio::error_code error) {
    if (error) return;
    asio::error_code ended;
    keep_stderr(stderr_.read_some(asio::buffer(buffer_), ended));
    if (!ended || ended == asio::error::would_block) read_stderr();
  });
}

void Edge::keep_stderr(std::size_t size) {
  std::string& kept = ending_.stderr_end;
  kept.append(buffer_.data(), size);
  if (kept.size() > kKeptOfStderr) kept.erase(0, kept.size() - kKeptOfStderr);
}

void Edge::await_exit() {
  process_.async_wait(asio::posix::stream_descriptor::wait_read, [this](asio::error_code error) {
    if (!error) on_exit();
  });
}

void Edge::on_exit() {
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended == 0) return await_exit();
  ending_.code = ended < 0 ? 0 : process::from_wait_status(status).shell_code();
  act(fsm_.on_exit());
}

void Edge::act(EdgeFsm::Step step) {
  switch (step) {
    case EdgeFsm::Step::Nothing:
      break;
    case EdgeFsm::Step::Wait:
      limit();
      break;
    case EdgeFsm::Step::Kill:
      kill();
      break;
    case EdgeFsm::Step::Tell:
      tell();
      break;
  }
}

// Something that the launcher started may hold its streams open, and it itself may hang.
void Edge::limit() {
  limit_.expires_after(kExitLimit);
  limit_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled) act(fsm_.on_limit());
  });
}

void Edge::tell() {
  limit_.cancel();
  ending_.greeted = link_->greeted();
  ending_.noise = link_->noise();
  ending_.given_up = fsm_.given_up();
  link_->end();
  asio::error_code ignored;
  // What it said at the very end may still be there. Something that it has left behind may go on.
  for (std::size_t all = 0, size = 1; size > 0 && all < kPipe; all += size) {
    size = stderr_.read_some(asio::buffer(buffer_), ignored);
    keep_stderr(size);
  }
  stderr_.close(ignored);
  process_.close(ignored);
  calls_.ended(ending_);
}

void Edge::close() {
  link_->close_output();
  act(fsm_.on_input_closed());
}

void Edge::kill() {
  if (pid_ > 0 && fsm_.runs()) ::kill(-pid_, SIGKILL);
}

}  // namespace drun::launcher
