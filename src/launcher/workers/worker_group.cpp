#include "launcher/workers/worker_group.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "drun/base/log.hpp"
#include "launcher/output/output_text.hpp"
#include "launcher/report/core_file.hpp"
#include "launcher/report/error_file.hpp"
#include "launcher/report/failure_report.hpp"
#include "launcher/workers/environment.hpp"
#include "rendezvous/failures.hpp"

namespace drun::launcher {
namespace {

// How long the other ranks' own failures are collected before the first is reported. The stop is
// under way meanwhile.
constexpr std::chrono::milliseconds kSettle{150};
constexpr std::chrono::milliseconds kTailLimit{200};
constexpr std::chrono::milliseconds kOtherTailLimit{20};  // for each of perhaps hundreds
constexpr std::chrono::milliseconds kDrainLimit{1000};
constexpr std::size_t kDescribedEach = 8;  // workers with a line of their own at a time limit

std::int64_t unix_milliseconds() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::int64_t milliseconds_between(WorkerGroup::Time from, WorkerGroup::Time to) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(to - from).count();
}

// A worker that ended while it was being stopped: did it fail of its own accord? A crash did; an
// exit code may be its answer to the stop, unless it is the very code of the first failure.
bool resembles_own_failure(const process::ExitStatus& status, const process::ExitStatus& first,
                           int stop_signal) {
  if (status.signal != 0) return status.signal != stop_signal && status.signal != SIGKILL;
  return first.signal == 0 && status.code == first.code && status.code != 128 + stop_signal;
}

// Whether the restart policy allows another try. What cannot be run now cannot be run a moment
// later either.
bool may_restart(const Options& options, const process::ExitStatus& status, int spawn_error) {
  if (spawn_error != 0 && spawn_error != EAGAIN && spawn_error != ENOMEM) return false;
  if (options.no_restart_on.contains(status)) return false;
  return !options.restart_on || options.restart_on->contains(status);
}

}  // namespace

WorkerGroup::WorkerGroup(const Options& options, std::string host, process::Guardian& guardian,
                         Output& output)
    : options_(options),
      host_(std::move(host)),
      guardian_(guardian),
      output_(output),
      stop_signal_(options.stop_signal.value_or(SIGTERM)) {}

void WorkerGroup::start(const rendezvous::Assignment& assignment, Time now) {
  assignment_ = assignment;
  workers_.clear();
  first_failure_.reset();
  report_failure_at_.reset();
  refused_.clear();
  state_ = State::Running;
  not_started_ = not_exited_ = static_cast<std::size_t>(options_.nproc_per_node);
  const auto no_program = unrunnable_program(options_);
  node_refused_ = no_program.has_value();
  const WorkerEnvironments environments(options_, assignment);
  guardian_.share_environment(environments.shared());
  for (const auto& line :
       placement_lines(options_.placement, options_.local_node, assignment.first_rank)) {
    options_.report_bindings ? log::info(line) : log::debug(line);
  }
  if (options_.stdin_rank.value_or(0) >= assignment.world_size && assignment.group_rank == 0)
    log::warning("--stdin " + std::to_string(*options_.stdin_rank) + ": this round has " +
                 std::to_string(assignment.world_size) +
                 " ranks, counted from 0: nobody reads standard input");
  for (int local_rank = 0; local_rank < options_.nproc_per_node; ++local_rank) {
    process::SpawnRequest request;
    request.id = next_id_++;
    StreamLabel label;
    label.worker = request.id;
    label.rank = assignment.first_rank + local_rank;
    label.local_rank = local_rank;
    label.round = assignment.round;
    label.restart_count = assignment.restart_count;
    label.role = options_.role;
    auto streams = output_.open(label);
    request.argv = worker_command(options_, local_rank);
    Worker worker;
    worker.error_file = output_.error_file(label);
    if (local_rank == 0 && !output_.private_folder().empty())
      guardian_.remove_at_end(output_.private_folder());
    request.environment = environments.own(local_rank, worker.error_file);
    const WorkerPlacement& place = options_.placement.of(options_.local_node, local_rank);
    request.cpu_affinity = place.cpus;
    request.memory_nodes = place.memory_nodes;
    request.standard_output = std::move(streams.standard_output);
    request.standard_error = std::move(streams.standard_error);
    if (label.rank == options_.stdin_rank)
      request.standard_input.reset(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    worker.local_rank = local_rank;
    worker.requested = worker.started = now;
    workers_.emplace(request.id, std::move(worker));
    if (auto missing = no_program ? no_program : unreadable_script(options_, local_rank)) {
      refused_.emplace_back(request.id, std::move(*missing));
    } else {
      guardian_.spawn(std::move(request));
    }
  }
}

void WorkerGroup::begin_stop(bool immediately) {
  state_ = State::Stopping;
  guardian_.stop(immediately ? SIGKILL : stop_signal_,
                 immediately ? std::chrono::milliseconds(0) : options_.shutdown_timeout);
}

GroupNews WorkerGroup::stop(bool immediately) {
  GroupNews news;
  if (state_ == State::Idle) {
    news.stopped = true;
  } else if (immediately || state_ != State::Stopping) {
    begin_stop(immediately);
  }
  return news;
}

void WorkerGroup::stop_with(int signal) {
  if (!options_.stop_signal) stop_signal_ = signal;
}

GroupNews WorkerGroup::abandon() {
  GroupNews news;
  news.stopped = state_ == State::Stopping;
  state_ = State::Idle;
  report_failure_at_.reset();
  refused_.clear();
  return news;
}

GroupNews WorkerGroup::on_exit(Worker& worker, process::WorkerId id, Time now) {
  GroupNews news;
  worker.exited = true;
  worker.running = false;
  worker.ended = now;
  --not_exited_;
  const bool success = worker.spawn_error == 0 && worker.status.success();
  if (state_ == State::Running && !success) {
    worker.failed_by_itself = true;
    if (!first_failure_) {
      first_failure_ = id;
      failure_time_ms_ = unix_milliseconds();
      report_failure_at_ = now + kSettle;
    }
  } else if (state_ == State::Stopping && first_failure_ && !success) {
    worker.failed_by_itself =
        resembles_own_failure(worker.status, workers_.at(*first_failure_).status, stop_signal_);
  }
  if (not_exited_ == 0 && state_ == State::Running && !first_failure_) news.succeeded = true;
  if (not_exited_ == 0) flush_failure(news);
  // A shell's background jobs ignore SIGINT and SIGQUIT: what outlives the workers is asked again.
  const bool as_told = !options_.stop_signal && (stop_signal_ == SIGINT || stop_signal_ == SIGQUIT);
  if (not_exited_ == 0 && state_ == State::Stopping && as_told)
    guardian_.stop(SIGTERM, options_.shutdown_timeout);
  return news;
}

GroupNews WorkerGroup::on_event(const process::GuardianEvent& event, Time now) {
  GroupNews news;
  if (const auto* spawned = std::get_if<process::Spawned>(&event)) {
    const auto found = workers_.find(spawned->id);
    if (found == workers_.end()) return news;
    found->second.pid = spawned->pid;
    found->second.running = true;
    found->second.started = now;
    news.started = --not_started_ == 0 && state_ == State::Running;
  } else if (const auto* failed = std::get_if<process::SpawnFailed>(&event)) {
    const auto found = workers_.find(failed->id);
    if (found == workers_.end()) return news;
    found->second.spawn_error = failed->error;
    found->second.status.code = exit_code_of_spawn_error(failed->error);
    found->second.cause = failed->attempted + ": " + std::generic_category().message(failed->error);
    news = on_exit(found->second, failed->id, now);
  } else if (const auto* exited = std::get_if<process::Exited>(&event)) {
    const auto found = workers_.find(exited->id);
    if (found == workers_.end()) return news;
    found->second.status = exited->status;
    found->second.cause = process::describe(*exited);
    news = on_exit(found->second, exited->id, now);
  } else if (std::get_if<process::Stopped>(&event) != nullptr) {
    if (state_ != State::Stopping) return news;
    flush_failure(news);
    output_.drain(kDrainLimit);
    state_ = State::Idle;
    news.stopped = true;
  }
  return news;
}

GroupNews WorkerGroup::on_time(Time now) {
  GroupNews news;
  for (const auto& [id, reason] : std::exchange(refused_, {})) {
    Worker& worker = workers_.at(id);
    worker.spawn_error = reason.error;
    worker.status.code = reason.exit_code();
    worker.cause = reason.text();
    if (auto each = on_exit(worker, id, now); each.failure) news.failure = std::move(each.failure);
  }
  if (first_failure_ && state_ == State::Running) begin_stop(false);
  if (report_failure_at_ && now >= *report_failure_at_) flush_failure(news);
  return news;
}

std::optional<WorkerGroup::Time> WorkerGroup::next_deadline() const {
  return refused_.empty() ? report_failure_at_ : Time{};
}

void WorkerGroup::flush_failure(GroupNews& news) {
  if (!report_failure_at_) return;
  report_failure_at_.reset();
  news.failure = summarize();
}

// What the program itself wrote about its end, if it did.
std::string WorkerGroup::traceback_of(const Worker& worker) {
  const auto error = read_error_file(worker.error_file);
  return error ? error->text() : "";
}

std::string WorkerGroup::core_file_of(const Worker& worker) const {
  CoreNames names;
  names.pid = worker.pid;
  names.signal = worker.status.signal;
  names.executable = options_.command.front();
  std::error_code gone;
  names.directory = std::filesystem::current_path(gone).string();
  names.host = host_;
  return find_core(names);
}

rendezvous::FailureSummary WorkerGroup::summarize() {
  const auto& worker = workers_.at(*first_failure_);
  rendezvous::FailureSummary summary;
  summary.rank = assignment_.first_rank + worker.local_rank;
  summary.local_rank = worker.local_rank;
  summary.group_rank = assignment_.group_rank;
  summary.host = host_;
  summary.pid = worker.pid;
  summary.exit_code = worker.status.code;
  summary.signal = worker.status.signal;
  summary.cause = worker.cause;
  summary.time_ms = failure_time_ms_;
  // Heard of its start and its end at once: it ran since some time after it was asked for.
  const bool at_once = worker.started == worker.ended;
  summary.uptime_ms =
      milliseconds_between(at_once ? worker.requested : worker.started, worker.ended);
  summary.restartable = may_restart(options_, worker.status, worker.spawn_error);
  summary.highest_code = worker.status.shell_code();
  summary.lowest_rank = summary.rank;
  summary.lowest_code = summary.highest_code;
  summary.traceback = traceback_of(worker);
  summary.tail = output_.tail(*first_failure_, kTailLimit);
  summary.last_words = essence(summary.traceback, summary.tail);
  summary.log_file = output_.log_file(*first_failure_);
  if (worker.status.core_dumped) summary.core_file = core_file_of(worker);
  if (node_refused_) return summary;
  for (const auto& [id, other] : workers_) {
    if (id == *first_failure_ || !other.failed_by_itself) continue;
    const int rank = assignment_.first_rank + other.local_rank;
    const int code = other.status.shell_code();
    summary.highest_code = std::max(summary.highest_code, code);
    if (rank < summary.lowest_rank) {
      summary.lowest_rank = rank;
      summary.lowest_code = code;
    }
    rendezvous::add_failed(summary.others, {rank, rank}, other.cause,
                           essence(traceback_of(other), output_.tail(id, kOtherTailLimit)));
  }
  return summary;
}

bool WorkerGroup::has_input() const {
  if (idle() || !options_.stdin_rank) return false;
  const int local_rank = *options_.stdin_rank - assignment_.first_rank;
  return local_rank >= 0 && local_rank < options_.nproc_per_node;
}

void WorkerGroup::forward(int signal) {
  guardian_.signal_all(signal);
}

std::string WorkerGroup::error_file(const rendezvous::FailureSummary& failure) const {
  for (const auto& [id, worker] : workers_)
    if (failure.group_rank == assignment_.group_rank && worker.local_rank == failure.local_rank &&
        worker.pid == failure.pid)
      return worker.error_file;
  return {};
}

std::vector<std::string> WorkerGroup::describe(Time now) const {
  const bool each = workers_.size() <= kDescribedEach;
  std::vector<std::string> lines;
  std::map<std::string, std::vector<int>> same;
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (const auto& [id, worker] : workers_)
    if (worker.running) shortest = std::min(shortest, milliseconds_between(worker.started, now));
  for (const auto& [id, worker] : workers_) {
    const int rank = assignment_.first_rank + worker.local_rank;
    std::string state = "not started";
    if (worker.exited) {
      state = worker.cause;
    } else if (worker.running) {
      state = each ? "running for " + describe_duration(milliseconds_between(worker.started, now))
                   : "running for at least " + describe_duration(shortest);
    }
    if (!each) {
      same[state].push_back(rank);
      continue;
    }
    const std::string pid = worker.running ? " (pid " + std::to_string(worker.pid) + ")" : "";
    lines.push_back("rank " + std::to_string(rank) + pid + ": " + state);
  }
  for (const auto& [state, ranks] : same)
    lines.push_back((ranks.size() == 1 ? "rank " : "ranks ") + describe_ranks(ranks) + ": " +
                    state);
  return lines;
}

}  // namespace drun::launcher
