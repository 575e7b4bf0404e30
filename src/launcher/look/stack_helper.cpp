#include "launcher/look/stack_helper.hpp"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/environment_variable.hpp"
#include "base/poll_until.hpp"
#include "base/standard_streams.hpp"
#include "launcher/look/look_request.hpp"
#include "launcher/look/looker.hpp"
#include "launcher/look/worker_look.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kRequestLimit{10'000};
constexpr std::size_t kLongestRequest = 4U << 20;

std::size_t most_at_once() {
  constexpr int kLeast = 4;
  constexpr int kMost = 32;
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cpus = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return static_cast<std::size_t>(std::clamp(2 * cpus, kLeast, kMost));
}

// All looks of a request, a few at once.
class Looks {
 public:
  Looks(const LookRequest& request, const LookTools& tools)
      : request_(request),
        tools_(tools),
        end_(Clock::now() + request.all),
        waiting_(request.workers.begin(), request.workers.end()) {}

  stacks::StackReport run(std::vector<stacks::StackNote> notes) {
    notes_ = std::move(notes);
    start();
    while (!looks_.empty()) {
      listen();
      start();
    }
    stacks::StackReport report = fold(request_.node, samples_);
    report.notes = std::move(notes_);
    return fold(std::vector{std::move(report)});
  }

 private:
  void start() {
    for (; !waiting_.empty() && looks_.size() < most_at_once(); waiting_.pop_front()) {
      const LookRequest::Worker& worker = waiting_.front();
      const std::vector<NumberRange> ranks{{worker.rank, worker.rank}};
      if (worker.pid == 0)
        notes_.push_back({"its worker does not run", ranks});
      else if (Clock::now() >= end_)
        notes_.push_back({"not looked at: the time was over", ranks});
      else
        looks_.emplace_back(worker, tools_, request_.each, end_);
    }
  }

  void listen() {
    std::vector<pollfd> entries;
    auto deadline = kNoDeadline;
    for (const WorkerLook& look : looks_) {
      entries.push_back({look.fd(), POLLIN, 0});
      deadline = std::min(deadline, look.deadline());
    }
    (void)poll_until(entries, deadline);
    const auto now = Clock::now();
    std::size_t index = 0;
    for (auto look = looks_.begin(); look != looks_.end(); ++index) {
      const bool heard = look->fd() < 0 || entries[index].revents != 0;
      const bool over = heard && !look->read();
      if (over || now >= look->deadline()) {
        look->finish(over, samples_, notes_);
        look = looks_.erase(look);
      } else {
        ++look;
      }
    }
  }

  const LookRequest& request_;
  const LookTools& tools_;
  const Clock::time_point end_;
  std::deque<LookRequest::Worker> waiting_;
  std::list<WorkerLook> looks_;
  std::vector<stacks::Sample> samples_;
  std::vector<stacks::StackNote> notes_;
};

}  // namespace

int run_stack_helper() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "drun-stacks");
  // libdw would ask servers for debug information.
  ::unsetenv("DEBUGINFOD_URLS");
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);  // held_threads.hpp waits for it
  const auto request =
      decode_request(read_standard_input_line(kLongestRequest, Clock::now() + kRequestLimit));
  if (!request) return 1;
  LookTools tools;
  std::vector<stacks::StackNote> notes;
  if (request->unwind) {
    if (auto library = load_dwfl())
      tools.native = *library;
    else
      notes.push_back({library.error().what(), {request->node.ranks}});
    tools.python = find_python_tool(environment_variable(own_environment(), "PATH").value_or(""));
  }
  const auto written = write_standard_output(
      to_json_within(Looks(*request, tools).run(std::move(notes)), request->longest) + "\n");
  return written ? 0 : 1;
}

}  // namespace drun::launcher
