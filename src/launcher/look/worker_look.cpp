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
constexpr char kBegins = '?';  // with a worker, of several

void say(int pipe, char what, int process, const std::string& text) {
  std::string line = what + std::to_string(process) + " " + text + "\n";
  for (std::string_view rest = line; !rest.empty();) {
    const auto written = ::write(pipe, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) ::_exit(1);
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

// In a forked child.
void look(const LookRequest::Worker& worker, const LookTools& tools, Clock::time_point deadline,
          int pipe) {
  LookCalls calls;
  calls.without_stack = [&](int process, const auto& it) {
    say(pipe, kWithout, process, encode(it));
  };
  calls.with_stack = [&](int process, const auto& it) { say(pipe, kWith, process, encode(it)); };
  calls.done = [&](int process) { say(pipe, kDone, process, ""); };
  calls.note = [&](const std::string& text) { say(pipe, kNote, 0, text); };
  look_at(worker, tools, deadline, calls);
}

}  // namespace

LookProcess::LookProcess(const std::function<void(int pipe)>& look) {
  auto pipe = try_pipe();
  if (!pipe) return;
  reader_ = std::move(pipe->read);
  child_ = ::fork();
  if (child_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  look(pipe->write.get());
  ::_exit(0);
}

LookProcess::~LookProcess() {
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

bool LookProcess::read(const std::function<void(std::string_view line)>& take) {
  std::array<char, 65'536> bytes;
  const auto got = child_ <= 0 ? 0 : ::read(fd(), bytes.data(), bytes.size());
  if (got < 0) return errno == EINTR;
  text_.append(bytes.data(), static_cast<std::size_t>(got));
  std::string_view rest = text_;
  for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
    take(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  text_.erase(0, text_.size() - rest.size());
  return got > 0;
}

WorkerLook::WorkerLook(const LookRequest::Worker& worker, const LookTools& tools,
                       milliseconds limit, Time end)
    : rank_(worker.rank),
      limit_(limit),
      has_all_of_it_(Clock::now() + limit <= end),
      deadline_(std::min(Clock::now() + limit, end)),
      process_([&](int pipe) { look(worker, tools, deadline_, pipe); }) {}

bool WorkerLook::read() {
  return process_.read([this](std::string_view line) { take(line); });
}

std::string WorkerLook::finish(bool ended, std::vector<stacks::Sample>& samples,
                               std::vector<stacks::StackNote>& notes) {
  for (auto& [process, found] : processes_) {
    for (stacks::Sample& sample : found.done ? found.with : found.without) {
      if (!found.done)
        sample.problem = ended            ? "the look at it failed"
                         : has_all_of_it_ ? "no answer within " + describe_duration(limit_.count())
                                          : "no answer before the time was over";
      samples.push_back(std::move(sample));
    }
  }
  const std::vector<NumberRange> ranks{{rank_, rank_}};
  for (const std::string& note : notes_)
    notes.push_back({note, ranks});
  if (!process_.began()) return "not looked at: no process can be started";
  if (!processes_.empty()) return {};
  return ended ? "not looked at: it has just ended" : "not looked at: no answer in time";
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

std::map<int, stacks::Sample> states_of(std::vector<LookRequest::Worker> workers, milliseconds each,
                                        milliseconds limit, const LookAtState& look) {
  std::map<int, stacks::Sample> states;
  const auto end = Clock::now() + limit;
  while (!workers.empty() && Clock::now() < end) {
    LookProcess process([&](int pipe) {
      for (std::size_t i = 0; i < workers.size(); ++i) {
        const int number = static_cast<int>(i);
        say(pipe, kBegins, number, "");
        LookCalls calls;
        calls.without_stack = [&](int, const auto& it) { say(pipe, kWithout, number, encode(it)); };
        look(workers[i], calls);
      }
    });
    std::size_t begun = 0;
    const auto take = [&](std::string_view line) {
      const char what = line.empty() ? '\0' : line.front();
      line.remove_prefix(std::min<std::size_t>(line.size(), 1));
      const auto number = whole_number<std::size_t>(take_until(line, ' '));
      if (what == kBegins && number) begun = *number;
      if (what != kWithout) return;
      if (auto sample = decode_sample(line)) states.emplace(sample->rank, std::move(*sample));
    };
    bool goes_on = true;
    while (goes_on && await_ready(process.fd(), POLLIN, std::min(end, Clock::now() + each)))
      goes_on = process.read(take);
    if (!goes_on || begun >= workers.size()) break;
    workers.erase(workers.begin(), workers.begin() + static_cast<std::ptrdiff_t>(begun) + 1);
  }
  return states;
}

}  // namespace drun::launcher
