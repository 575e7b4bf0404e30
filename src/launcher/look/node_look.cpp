#include "launcher/look/node_look.hpp"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <utility>

#include "base/poll_until.hpp"
#include "launcher/look/worker_look.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The kernel says what state a process is in without waiting for it.
constexpr milliseconds kStatesLimit{1'000};
constexpr milliseconds kStateLimit{250};  // of one worker

std::size_t most_at_once() {
  constexpr int kLeast = 4;
  constexpr int kMost = 32;
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cpus = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return static_cast<std::size_t>(std::clamp(2 * cpus, kLeast, kMost));
}

// One look at each worker of a request, a few at once.
class Looks {
 public:
  // `each` has so long, all together have until `end`.
  Looks(const LookRequest& request, const LookTools& tools, Clock::time_point end)
      : tools_(tools),
        each_(request.each),
        end_(end),
        waiting_(request.workers.begin(), request.workers.end()) {}

  using OnEnd = std::function<void(WorkerLook&, bool ended)>;
  // For each look, as it ends; `ended`: by itself, else it was too slow. Those for which there was
  // no time are left.
  void run(const OnEnd& on_end) {
    start();
    while (!looks_.empty()) {
      listen(on_end);
      start();
    }
  }
  [[nodiscard]] const std::deque<LookRequest::Worker>& left() const { return waiting_; }

 private:
  void start() {
    std::erase_if(waiting_, [](const LookRequest::Worker& worker) { return worker.pid == 0; });
    for (; !waiting_.empty() && looks_.size() < most_at_once() && Clock::now() < end_;
         waiting_.pop_front())
      looks_.emplace_back(waiting_.front(), tools_, each_, end_);
  }

  void listen(const OnEnd& on_end) {
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
        on_end(*look, over);
        look = looks_.erase(look);
      } else {
        ++look;
      }
    }
  }

  const LookTools& tools_;
  const milliseconds each_;
  const Clock::time_point end_;
  std::deque<LookRequest::Worker> waiting_;
  std::list<WorkerLook> looks_;
};

}  // namespace

stacks::StackReport look_at_node(const LookRequest& request, const LookTools& tools,
                                 std::vector<stacks::StackNote> notes) {
  const auto begin = Clock::now();
  std::vector<LookRequest::Worker> running = request.workers;
  std::erase_if(running, [](const LookRequest::Worker& worker) { return worker.pid == 0; });
  const auto states = states_of(std::move(running), kStateLimit, kStatesLimit);
  std::vector<stacks::Sample> samples;
  const auto add_state = [&](int rank, const std::string& problem) {
    const auto state = states.find(rank);
    if (state == states.end()) return false;
    samples.push_back(state->second);
    samples.back().problem = problem;
    return true;
  };
  Looks looks(request, tools, begin + request.all);
  looks.run([&](WorkerLook& look, bool ended) {
    const std::string nothing = look.finish(ended, samples, notes);
    if (nothing.empty() || add_state(look.rank(), nothing)) return;
    notes.push_back({nothing, {{look.rank(), look.rank()}}});
  });
  for (const LookRequest::Worker& worker : looks.left())
    if (constexpr const char* kOver = "not looked at: the time was over";
        !add_state(worker.rank, kOver))
      notes.push_back({kOver, {{worker.rank, worker.rank}}});
  for (const LookRequest::Worker& worker : request.workers)
    if (worker.pid == 0) notes.push_back({"its worker does not run", {{worker.rank, worker.rank}}});
  stacks::StackReport report = fold(request.node, samples);
  report.notes = std::move(notes);
  return fold(std::vector{std::move(report)});
}

}  // namespace drun::launcher
