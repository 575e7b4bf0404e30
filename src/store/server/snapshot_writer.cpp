#include "store/server/snapshot_writer.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>

#include "base/close_descriptors.hpp"
#include "drun/base/log.hpp"
#include "store/server/snapshot.hpp"

namespace drun::store {
namespace {

using Outcome = SnapshotFile::Outcome;

SnapshotFile::Content content_of(const KeyTable& table, const Sessions& sessions) {
  return [&](const SnapshotSink& sink) { return write_snapshot(table, sessions, sink); };
}

}  // namespace

void SnapshotWriter::start(const KeyTable& table, const Sessions& sessions, std::size_t bytes) {
  Result<SnapshotFile::Replacement> begun = file_.begin();
  if (!begun) {
    failed_start_ = begun.error();
    return;
  }
  replacement_ = std::move(*begun);
  if (bytes > kLargeBytes && start_child(table, sessions)) return;
  thread_ = std::async(std::launch::async, [this, bytes = encode_snapshot(table, sessions)] {
    return file_.write(replacement_, [&](const SnapshotSink& sink) { return sink(bytes); });
  });
}

bool SnapshotWriter::start_child(const KeyTable& table, const Sessions& sessions) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  FileDescriptor reading(ends[0]);
  const FileDescriptor writing(ends[1]);
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) run_child(table, sessions, self, writing.get());
  if (pid < 0) {
    log::debug("no process for the snapshot: " + std::generic_category().message(errno));
    return false;
  }
  child_ = pid;
  report_ = std::move(reading);
  return true;
}

// Ends with the server's thread. Takes no memory: another thread may have held the heap's lock.
void SnapshotWriter::run_child(const KeyTable& table, const Sessions& sessions, int parent,
                               int report) const {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  // With the server's sockets it would keep its connections open when the server closes them.
  const auto [low, high] = std::minmax({replacement_.get(), report});
  const std::array kept{low, high};
  close_descriptors(0, kept);
  const Outcome outcome = file_.write(replacement_, content_of(table, sessions));
  char bytes[sizeof outcome];
  std::memcpy(bytes, &outcome, sizeof outcome);
  const bool told = ::write(report, bytes, sizeof bytes) == sizeof bytes;
  ::_exit(told ? 0 : 1);
}

bool SnapshotWriter::is_busy() {
  if (thread_.valid()) {
    return thread_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  }
  if (child_ == 0) return false;
  siginfo_t state{};
  const int waited =
      ::waitid(P_PID, static_cast<id_t>(child_), &state, WEXITED | WNOHANG | WNOWAIT);
  return waited == 0 && state.si_pid == 0;
}

std::optional<Status> SnapshotWriter::take_result() {
  if (failed_start_) return std::exchange(failed_start_, std::nullopt);
  if (is_busy()) return std::nullopt;
  if (thread_.valid()) return file_.finish(std::move(replacement_), thread_.get());
  if (child_ != 0) return child_result();
  return std::nullopt;
}

// Precondition: it has ended. Where the program around this server collects all children, its exit
// status is not known here, but what it reported is.
Status SnapshotWriter::child_result() {
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = 0;
  char bytes[sizeof(Outcome)];
  const bool told = ::read(report_.get(), bytes, sizeof bytes) == sizeof bytes;
  report_.reset();
  if (!told) {
    file_.abandon(replacement_);
    replacement_.reset();
    const std::string end = WIFSIGNALED(status)
                                ? " was ended by signal " + std::to_string(WTERMSIG(status))
                                : " ended without a result";
    return Error(std::make_error_code(std::errc::interrupted),
                 "write " + file_.path() + ": the process that writes it" + end);
  }
  Outcome outcome;
  std::memcpy(&outcome, bytes, sizeof outcome);
  return file_.finish(std::move(replacement_), outcome);
}

void SnapshotWriter::stop_child() {
  if (child_ == 0) return;
  ::kill(child_, SIGKILL);
  (void)child_result();
}

Status SnapshotWriter::write_now(const KeyTable& table, const Sessions& sessions) {
  stop_child();  // it would write what is out of date
  if (thread_.valid()) {
    const Outcome written = thread_.get();  // until then the thread uses the replacement
    (void)file_.finish(std::move(replacement_), written);
  }
  failed_start_.reset();
  Result<SnapshotFile::Replacement> begun = file_.begin();
  if (!begun) return begun.error();
  const Outcome outcome = file_.write(*begun, content_of(table, sessions));
  return file_.finish(std::move(*begun), outcome);
}

}  // namespace drun::store
