// How long thousands of nodes take to agree: real participants over real control connections to a
// real drun-store, all on this machine. For each number of nodes: the time from the last node's
// join to the moment when the last node has its assignment, the same for the end of the job,
// messages and payload per node, and the leader's own CPU time.
//
// Then the same job ends with a failure on every rank, each with last words of its own.
//
//   rendezvous_bench [--nodes 100,1000,4000,10000]
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/fd_limit.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/store/server.hpp"
#include "launcher/backend/store_backend.hpp"
#include "rendezvous/failure_merge.hpp"
#include "rendezvous/participant.hpp"
#include "support/places.hpp"

namespace {

using namespace drun;
using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double thread_cpu() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// drun-store as a child process; its endpoint from the line that it prints.
class StoreProcess {
 public:
  StoreProcess() {
    int ends[2];
    if (::pipe(ends) != 0) std::exit(125);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      const std::string program = places::program("drun-store");
      ::execl(program.c_str(), "drun-store", "--bind", "127.0.0.1", "--port", "0",
              static_cast<char*>(nullptr));
      std::_Exit(127);
    }
    ::close(ends[1]);
    std::string line;
    for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';)
      line += c;
    ::close(ends[0]);
    const auto parsed = parse_endpoint(line.substr(line.rfind(' ') + 1), 0);
    if (!parsed) {
      std::fprintf(stderr, "drun-store did not start: '%s'\n", line.c_str());
      std::exit(125);
    }
    endpoint_ = *parsed;
  }
  StoreProcess(const StoreProcess&) = delete;
  StoreProcess& operator=(const StoreProcess&) = delete;
  ~StoreProcess() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  // CPU time so far, seconds.
  [[nodiscard]] double cpu() const {
    clockid_t clock{};
    timespec now{};
    if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &now) != 0) return 0;
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }

 private:
  pid_t pid_ = -1;
  Endpoint endpoint_;
};

struct Totals {
  int registered = 0;
  int assigned = 0;
  int finished = 0;
  std::size_t messages = 0;
  std::size_t bytes = 0;
};

class Node {
 public:
  Node(asio::io_context& io, const Endpoint& endpoint, int index, int nodes, Totals& totals)
      : totals_(totals), timer_(io) {
    config_.run_id = "bench" + std::to_string(nodes);
    config_.min_nodes = config_.max_nodes = nodes;
    config_.local_world_size = 8;
    config_.host = "node" + std::to_string(index);
    config_.address = "127.0.0.1";
    config_.worker_store_port = 29500;
    config_.is_host = index == 0;
    config_.ticket = "ticket-" + std::to_string(index);
    store::ControlOptions options;
    options.endpoint = endpoint;
    options.time_to_live = options.keep_alive = std::chrono::seconds(60);
    key_value_ = std::make_unique<launcher::StoreBackend>(
        io, options, [this](const rendezvous::KeyValueEvent& event) { on_event(event); });
  }
  void open() { key_value_->open(); }
  void close() {
    timer_.cancel();
    key_value_.reset();
  }
  [[nodiscard]] double cpu() const { return cpu_; }

  void succeed() {
    const double before = thread_cpu();
    participant_->on_workers_succeeded(assignment_.round, Clock::now());
    pump();
    cpu_ += thread_cpu() - before;
  }

  // As when a communication library notices on all ranks that one is gone.
  void fail() {
    const double before = thread_cpu();
    rendezvous::FailureSummary failure;
    failure.host = config_.host;
    failure.exit_code = 1;
    failure.cause = "exit code 1";
    failure.traceback = std::string(4'000, 'x');
    for (int i = 0; i < config_.local_world_size; ++i) {
      const int rank = assignment_.first_rank + i;
      const std::string words =
          "[Rank " + std::to_string(rank) + "] Watchdog caught collective operation timeout";
      if (i == 0) {
        failure.rank = rank;
        failure.last_words = words;
      } else {
        rendezvous::add_failed(failure.others, {rank, rank}, failure.cause, words);
      }
    }
    participant_->on_workers_failed(assignment_.round, std::move(failure), Clock::now());
    participant_->on_workers_stopped(Clock::now());
    pump();
    note_cpu(before);
  }
  // The longest time between two looks at the network.
  [[nodiscard]] double longest() const { return longest_; }

 private:
  void note_cpu(double before) {
    const double spent = thread_cpu() - before;
    cpu_ += spent;
    longest_ = std::max(longest_, spent);
  }
  static std::size_t size(const std::vector<rendezvous::Change>& changes) {
    std::size_t result = 0;
    for (const auto& change : changes)
      result += change.key.size() + (change.value ? change.value->size() : 0);
    return result;
  }
  void count(const rendezvous::KeyValueEvent& event) {
    ++totals_.messages;
    if (const auto* snapshot = std::get_if<rendezvous::WatchSnapshot>(&event))
      totals_.bytes += size(snapshot->entries);
    if (const auto* changes = std::get_if<rendezvous::WatchChanges>(&event))
      totals_.bytes += size(changes->changes);
  }

  void on_event(const rendezvous::KeyValueEvent& event) {
    count(event);
    const double before = thread_cpu();
    if (const auto* link = std::get_if<rendezvous::LinkEvent>(&event)) {
      if (link->link == rendezvous::Link::Failed) {
        std::fprintf(stderr, "%s\n", link->detail.c_str());
        std::exit(125);
      }
      if (!participant_)
        participant_ = std::make_unique<rendezvous::Participant>(config_, Clock::now());
    }
    participant_->on_key_value(event, Clock::now());
    pump();
    note_cpu(before);
  }

  void pump() {
    for (auto actions = participant_->take_actions(); !actions.empty();
         actions = participant_->take_actions()) {
      for (auto& action : actions)
        std::visit([this](auto& each) { perform(each); }, action);
    }
    const auto due = participant_->next_deadline();
    if (!due || finished_) return static_cast<void>(timer_.cancel());
    timer_.expires_at(*due);
    timer_.async_wait([this](asio::error_code cancelled) {
      if (cancelled) return;
      const double before = thread_cpu();
      participant_->on_time(Clock::now());
      pump();
      note_cpu(before);
    });
  }

  void perform(rendezvous::WatchAction& action) {
    key_value_->watch(action.watch, action.key, action.prefix);
  }
  void perform(const rendezvous::UnwatchAction& action) { key_value_->unwatch(action.watch); }
  void perform(rendezvous::CommitAction& action) {
    ++totals_.messages;
    for (const auto& write : action.transaction.writes) {
      totals_.bytes += write.key.size() + (write.value ? write.value->size() : 0);
    }
    if (!registered_) {
      registered_ = true;
      ++totals_.registered;
    }
    key_value_->commit(action.request, std::move(action.transaction));
  }
  void perform(const rendezvous::VoteAction& action) {
    key_value_->vote(action.vote, action.successors);
  }
  void perform(const rendezvous::PrepareWorkerStoreAction& action) {
    participant_->on_worker_store_ready(action.assignment.round, config_.worker_store_port,
                                        Clock::now());
  }
  void perform(const rendezvous::StartAction& action) {
    assignment_ = action.assignment;
    ++totals_.assigned;
    participant_->on_workers_started(assignment_.round, Clock::now());
  }
  void perform(const rendezvous::RenewLeaseAction& /*action*/) {}
  void perform(const rendezvous::StopAction& /*action*/) {
    participant_->on_workers_stopped(Clock::now());
  }
  void perform(const rendezvous::FinishAction& action) {
    if (action.outcome.exit_code > 1) {
      std::fprintf(stderr, "the job failed: %s\n", action.outcome.text.c_str());
      std::exit(1);
    }
    finished_ = true;
    ++totals_.finished;
    key_value_->close();
  }
  void perform(const rendezvous::RoundStopsAction& /*action*/) {}
  void perform(const rendezvous::HangAction& /*action*/) {}
  void perform(const rendezvous::LogAction& /*action*/) {}
  void perform(const rendezvous::ProgressAction& /*action*/) {}
  void perform(const rendezvous::CompareFactsAction& /*action*/) {}
  void perform(const rendezvous::SetAsideAction& /*action*/) {}
  void perform(const rendezvous::NewsAction& /*action*/) {}

  Totals& totals_;
  rendezvous::Config config_;
  std::unique_ptr<launcher::StoreBackend> key_value_;
  std::unique_ptr<rendezvous::Participant> participant_;
  asio::steady_timer timer_;
  rendezvous::Assignment assignment_;
  bool registered_ = false;
  bool finished_ = false;
  double cpu_ = 0;
  double longest_ = 0;
};

template <typename Condition>
void run_until(asio::io_context& io, Condition condition) {
  const auto limit = Clock::now() + std::chrono::minutes(5);
  while (!condition()) {
    io.run_one_for(std::chrono::milliseconds(100));
    if (Clock::now() > limit) {
      std::fprintf(stderr, "not within five minutes\n");
      std::exit(1);
    }
  }
}

void measure(int count, bool fails) {
  const StoreProcess store;
  asio::io_context io(1);
  Totals totals;
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < count; ++i)
    nodes.push_back(std::make_unique<Node>(io, store.endpoint(), i, count, totals));
  // In slices, so that the listener's backlog is never full. The last one joins when all others
  // stand.
  for (int i = 0; i + 1 < count; ++i) {
    nodes[static_cast<std::size_t>(i)]->open();
    if (i % 500 == 499 || i + 2 == count) run_until(io, [&] { return totals.registered >= i + 1; });
  }
  io.run_for(std::chrono::milliseconds(500 + count / 4));  // what they have to say to one another

  totals.messages = totals.bytes = 0;
  const double leader_before = nodes.front()->cpu();
  const double store_before = store.cpu();
  const auto join = Clock::now();
  nodes.back()->open();
  run_until(io, [&] { return totals.assigned == count; });
  const double assigned = seconds(Clock::now() - join);
  const double leader = nodes.front()->cpu() - leader_before;
  const double store_cpu = store.cpu() - store_before;
  const Totals round = totals;

  const auto end = Clock::now();
  for (auto& node : nodes)
    fails ? node->fail() : node->succeed();
  run_until(io, [&] { return totals.finished == count; });
  const double finished = seconds(Clock::now() - end);
  const double leader_end = nodes.front()->cpu() - leader_before - leader;
  std::printf("%7d %8s %12.3f %14.1f %12.3f %16.1f %16.0f %12.3f %12.3f %12.3f %12.3f\n", count,
              fails ? "failure" : "success", assigned, assigned * 1e6 / count, finished,
              static_cast<double>(round.messages) / count, static_cast<double>(round.bytes) / count,
              leader, store_cpu, leader_end, nodes.front()->longest());
  std::fflush(stdout);
  for (auto& node : nodes)
    node->close();
  io.poll();
}

}  // namespace

int main(int argc, char** argv) {
  std::string list = "100,1000,4000,10000";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--nodes") list = argv[i + 1];
  }
  const auto limit = raise_fd_limit();
  const auto descriptors = limit ? std::size_t{limit->rlim_max} : std::size_t{1024};
  std::printf("%7s %8s %12s %14s %12s %16s %16s %12s %12s %12s %12s\n", "nodes", "end",
              "assigned s", "us per node", "ended s", "messages/node", "bytes/node", "leader CPU s",
              "store CPU s", "its end s", "longest s");
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    const int count = std::atoi(word.c_str());
    if (count < 2 || static_cast<std::size_t>(count) + 64 > descriptors) {
      std::printf(
          "%7s skipped: needs 2 nodes or more, and fewer than the %zu descriptors allowed here\n",
          word.c_str(), descriptors);
      continue;
    }
    for (const bool fails : {false, true})
      measure(count, fails);
  }
}
