#include "launcher/look/worker_look.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/duration_text.hpp"
#include "base/pipe.hpp"
#include "base/poll_until.hpp"
#include "base/split.hpp"
#include "base/whole_number.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// For one that was killed to be gone.
constexpr milliseconds kEndLimit{300};

// From the process to the helper, a line each: what it is, the number of the process, the rest.
constexpr char kWithout = '-';
constexpr char kWith = '+';
constexpr char kDone = '=';
constexpr char kNote = '!';

// In a forked child; does not return.
[[noreturn]] void look(const LookRequest::Worker& worker, const LookTools& tools, LookDepth depth,
                       Clock::time_point deadline, int pipe) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  const auto say = [pipe](char what, int process, const std::string& text) {
    std::string line = what + std::to_string(process) + " " + text + "\n";
    for (std::string_view rest = line; !rest.empty();) {
      const auto written = ::write(pipe, rest.data(), rest.size());
      if (written < 0 && errno != EINTR) ::_exit(1);
      if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
    }
  };
  LookCalls calls;
  calls.without_stack = [&](int process, const auto& it) { say(kWithout, process, encode(it)); };
  calls.with_stack = [&](int process, const auto& it) { say(kWith, process, encode(it)); };
  calls.done = [&](int process) { say(kDone, process, ""); };
  calls.note = [&](const std::string& text) { say(kNote, 0, text); };
  if (depth == LookDepth::State)
    look_at_state(worker, calls);
  else
    look_at(worker, tools, deadline, calls);
  ::_exit(0);
}

}  // namespace

WorkerLook::WorkerLook(const LookRequest::Worker& worker, const LookTools& tools, LookDepth depth,
                       milliseconds limit, Time end)
    : rank_(worker.rank), limit_(limit), deadline_(std::min(Clock::now() + limit, end)) {
  auto pipe = try_pipe();
  if (!pipe) return;
  reader_ = std::move(pipe->read);
  child_ = ::fork();
  if (child_ == 0) look(worker, tools, depth, deadline_, pipe->write.get());
}

WorkerLook::~WorkerLook() {
  if (child_ <= 0) return;
  ::kill(-child_, SIGKILL);  // with the tools that it has started
  ::kill(child_, SIGKILL);
  // Its end of the pipe goes with it. One that hangs in the kernel is left behind.
  const auto deadline = Clock::now() + kEndLimit;
  bool ended = false;
  std::array<char, 65'536> rest;
  while (!ended && await_ready(fd(), POLLIN, deadline))
    ended = ::read(fd(), rest.data(), rest.size()) == 0;
  while (::waitpid(child_, nullptr, ended ? 0 : WNOHANG) < 0 && errno == EINTR) {
  }
}

bool WorkerLook::read() {
  std::array<char, 65'536> bytes;
  const auto got = child_ <= 0 ? 0 : ::read(fd(), bytes.data(), bytes.size());
  if (got < 0) return errno == EINTR;
  text_.append(bytes.data(), static_cast<std::size_t>(got));
  for (auto end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
    take(std::string_view(text_).substr(0, end));
    text_.erase(0, end + 1);
  }
  return got > 0;
}

std::string WorkerLook::finish(bool ended, std::vector<stacks::Sample>& samples,
                               std::vector<stacks::StackNote>& notes) {
  for (auto& [process, found] : processes_) {
    for (stacks::Sample& sample : found.done ? found.with : found.without) {
      if (!found.done)
        sample.problem = ended ? "the look at it failed"
                               : "no answer within " + describe_duration(limit_.count());
      samples.push_back(std::move(sample));
    }
  }
  const std::vector<NumberRange> ranks{{rank_, rank_}};
  for (const std::string& note : notes_)
    notes.push_back({note, ranks});
  if (child_ < 0) return "not looked at: no process can be started";
  if (!processes_.empty()) return {};
  return ended ? "not looked at: it has just ended" : "not looked at: no answer in time";
}

std::optional<stacks::Sample> WorkerLook::state() const {
  for (const auto& [process, found] : processes_)
    if (!found.without.empty()) return found.without.front();
  return std::nullopt;
}

void WorkerLook::take(std::string_view line) {
  if (line.empty()) return;
  const char what = line.front();
  line.remove_prefix(1);
  const auto process = whole_number<int>(take_until(line, ' '));
  if (!process) return;
  if (what == kNote) {
    notes_.emplace_back(line);
    return;
  }
  Found& found = processes_[*process];
  if (what == kDone) found.done = true;
  if (what != kWith && what != kWithout) return;
  if (auto sample = decode_sample(line))
    (what == kWith ? found.with : found.without).push_back(std::move(*sample));
}

}  // namespace drun::launcher
