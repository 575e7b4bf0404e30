#include "launcher/workers/worker_group.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <system_error>
#include <utility>

#include "base/deadline.hpp"
#include "base/log.hpp"
#include "base/unix_time.hpp"
#include "launcher/report/failure_report.hpp"
#include "launcher/report/hang_suspicion.hpp"
#include "launcher/workers/round_launch.hpp"
#include "launcher/workers/worker_states.hpp"
#include "rendezvous/root_cause.hpp"

namespace drun::launcher {
namespace {

constexpr std::chrono::milliseconds kDrainLimit{1000};
// For the last words of a worker that failed.
constexpr std::chrono::milliseconds kLastWordsLimit{200};
// The other nodes count from when they have heard of a failure, and then say what is to be stopped.
constexpr std::chrono::milliseconds kToBeTold{1'000};

Preparation refuse(std::size_t workers, const LaunchError& reason) {
  Preparation result;
  result.one_reason = true;
  result.workers.resize(workers);
  for (auto& worker : result.workers)
    worker.refusal = reason;
  return result;
}

}  // namespace

WorkerGroup::WorkerGroup(const WorkerSpec& spec, std::string host,
                         process::ProcessRunner& processes, WorkerOutput& output,
                         FileWork& file_work, RoundServices services)
    : spec_(spec),
      host_(std::move(host)),
      processes_(processes),
      output_(output),
      file_work_(file_work),
      services_(std::move(services)),
      program_(std::make_shared<const Program>(spec)),
      stop_signal_(spec.stop_signal.value_or(SIGTERM)) {}

void WorkerGroup::start(const rendezvous::Assignment& assignment, Time now) {
  assignment_ = assignment;
  workers_.clear();
  labels_.clear();
  failures_ = {};
  last_stop_ = {};
  state_ = State::Preparing;
  not_started_ = not_ended_ = static_cast<std::size_t>(spec_.nproc_per_node);
  for (int local_rank = 0; local_rank < spec_.nproc_per_node; ++local_rank) {
    labels_.push_back(stream_label(spec_, assignment_, next_id_++, local_rank));
    Worker worker;
    worker.local_rank = local_rank;
    workers_.emplace(labels_.back().worker, std::move(worker));
  }
  ++starts_;
  if (services_.before_start != nullptr)
    start_held_until_ = services_.before_start->begin(now, [this, start = starts_] {
      if (start == starts_) start_held_until_.reset();
    });
  auto opening = std::make_shared<std::atomic<bool>>(false);
  file_work_.ask<Preparation>(
      kFilesLimit,
      [program = program_, labels = labels_, make_files = output_.make_files(), opening] {
        return prepare(*program, labels, [&](const StreamLabel& label) {
          *opening = true;
          return make_files(label);
        });
      },
      [this, start = starts_, opening](Result<Preparation> prepared) {
        if (state_ != State::Preparing || start != starts_) return;
        prepared_ = prepared ? std::move(*prepared)
                             : refuse(labels_.size(), without_answer(prepared.error(), *opening));
      });
  ask_for_peers();
  if (ready(now)) launch(now);
}

void WorkerGroup::ask_for_peers() {
  peers_.reset();
  if (services_.peers == nullptr) {
    peers_.emplace();
    return;
  }
  services_.peers->ask(assignment_, spec_.nproc_per_node,
                       [this, start = starts_](Result<PeerDirectory::Places> places) {
                         if (state_ != State::Preparing || start != starts_) return;
                         peers_.emplace();
                         if (places) {
                           *peers_ = std::move(*places);
                         } else {
                           LaunchError reason;
                           reason.no_answer = places.error().what();
                           reason.of_drun = true;
                           prepared_ = refuse(labels_.size(), reason);
                         }
                       });
}

void WorkerGroup::launch(Time now) {
  Preparation prepared = *std::exchange(prepared_, std::nullopt);
  state_ = State::Running;
  one_reason_ = prepared.one_reason;
  // If the job is on one machine, main() has said so before it began.
  if (spec_.max_nodes > 1 && spec_.local_node < 0 && !prepared.warning.empty() &&
      !std::exchange(warned_, true))
    log::warning("{}", prepared.warning);
  const RoundLaunch launch(spec_, assignment_, *std::exchange(peers_, std::nullopt),
                           services_.timer_file);
  if (services_.peers != nullptr) services_.peers->let_go();
  processes_.share_environment(launch.shared_environment());
  launch.announce();
  if (services_.ranks != nullptr) services_.ranks->begin(assignment_, spec_.nproc_per_node);
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    Worker& worker = workers_.at(labels_[i].worker);
    worker.requested = worker.started = now;
    auto& [refusal, files] = prepared.workers[i];
    if (!refusal) refusal = launch_worker(launch, labels_[i], worker, files);
    if (!refusal) continue;
    refused_.emplace_back(labels_[i].worker, *refusal);
    if (!one_reason_ && refusal->of_drun) {
      // The others would fare no better.
      one_reason_ = true;
      for (std::size_t next = i + 1; next < labels_.size(); ++next)
        prepared.workers[next].refusal = refusal;
    }
  }
}

std::optional<LaunchError> WorkerGroup::launch_worker(const RoundLaunch& launch,
                                                      const StreamLabel& label, Worker& worker,
                                                      WorkerFiles& files) {
  worker.error_file = files.error_file;
  // There is one as soon as the first worker has an error file.
  if (label.local_rank == 0 && !files.private_folder.empty())
    processes_.remove_at_end(files.private_folder);
  auto request = launch.request(label, worker.error_file);
  try {
    WorkerStreams streams = output_.open(label, std::move(files));
    request.standard_output = std::move(streams.standard_output);
    request.standard_error = std::move(streams.standard_error);
    if (services_.ranks != nullptr) request.service = services_.ranks->connect(label.local_rank);
  } catch (const std::system_error& failed) {
    return no_output(failed);
  }
  processes_.spawn(std::move(request));
  return std::nullopt;
}

void WorkerGroup::go_idle() {
  state_ = State::Idle;
  refused_.clear();
  if (services_.ranks != nullptr) services_.ranks->end();
  if (services_.peers != nullptr) services_.peers->let_go();
}

void WorkerGroup::call_off() {
  if (state_ == State::Preparing) go_idle();
  prepared_.reset();
}

void WorkerGroup::begin_stop(bool immediately, Time now) {
  note_running(now);
  last_stop_.hurried |= immediately || spec_.shutdown_timeout.count() == 0;
  state_ = State::Stopping;
  processes_.stop(immediately ? SIGKILL : stop_signal_,
                  immediately ? std::chrono::milliseconds(0) : spec_.shutdown_timeout);
}

GroupNews WorkerGroup::stop(bool immediately, Time now) {
  GroupNews news;
  call_off();
  if (state_ == State::Idle) {
    news.stopped = true;
  } else if (state_ == State::Stopped) {
    // All are gone. Who is in a hurry does not wait for what they have left behind.
    if (immediately && report_ && !report_->remains) report_->remains.emplace();
    report_failure(news, now, true);
    end_stop(news);
  } else if (immediately || state_ != State::Stopping) {
    begin_stop(immediately, now);
  }
  return news;
}

void WorkerGroup::stop_with(int signal) {
  if (!spec_.stop_signal) stop_signal_ = signal;
}

GroupNews WorkerGroup::abandon(Time now) {
  GroupNews news;
  note_running(now);
  call_off();
  report_failure(news, now, true);
  if (report_) {  // what is still read comes too late
    report_->remains.emplace();
    report_failure(news, now, true);
  }
  news.stopped = stopping();
  go_idle();
  return news;
}

Worker* WorkerGroup::find(process::WorkerId id) {
  const auto found = workers_.find(id);
  return found == workers_.end() ? nullptr : &found->second;
}

GroupNews WorkerGroup::on_event(const process::GuardianEvent& event, Time now) {
  return std::visit([&](const auto& each) { return on(each, now); }, event);
}

GroupNews WorkerGroup::on(const process::Spawned& spawned, Time now) {
  GroupNews news;
  Worker* const worker = find(spawned.id);
  if (worker == nullptr) return news;
  worker->stage = Worker::Stage::Running;
  worker->pid = spawned.pid;
  worker->started = now;
  if (services_.watch != nullptr) services_.watch->on_started(assignment_, *worker);
  news.started = --not_started_ == 0 && state_ == State::Running;
  return news;
}

GroupNews WorkerGroup::on(const process::SpawnFailed& failed, Time now) {
  WorkerEnd end;
  const LaunchError reason = of_spawn(failed.error, failed.attempted);
  end.spawn_error = failed.error;
  end.status.code = reason.exit_code();
  return on_end(failed.id, end, reason.text(), now);
}

GroupNews WorkerGroup::on(const process::Exited& exited, Time now) {
  WorkerEnd end;
  end.status = exited.status;
  std::string cause = process::describe(exited);
  if (Worker* const worker = find(exited.id)) {
    worker->killed = exited.killed_by_stop;
    worker->usage = exited.usage;
    if (services_.ranks != nullptr && state_ == State::Running && !worker->fault)
      worker->fault = services_.ranks->at_end(worker->local_rank, end.success());
    if (worker->fault) {
      if (end.success()) end.status.code = worker->fault->exit_code;
      cause += " (" + worker->fault->cause + ")";
    }
  }
  return on_end(exited.id, end, std::move(cause), now);
}

GroupNews WorkerGroup::on(const process::Stopped& stopped, Time now) {
  GroupNews news;
  if (!stopping()) return news;
  last_stop_.processes_killed += stopped.killed;
  state_ = State::Stopped;
  report_failure(news, now, true);
  end_stop(news);
  return news;
}

// Whoever hears that all have stopped must have heard why.
void WorkerGroup::end_stop(GroupNews& news) {
  if (state_ != State::Stopped || report_) return;
  output_.drain(kDrainLimit);
  go_idle();
  news.stopped = true;
}

// The guardian gives the workers no grace.
GroupNews WorkerGroup::on(const process::LeaseOver& /*over*/, Time now) {
  note_running(now);
  last_stop_.hurried = true;
  return {};
}

// The owner of the guardian calls abandon() then.
GroupNews WorkerGroup::on(const process::GuardianLost& /*lost*/, Time /*now*/) {
  return {};
}

GroupNews WorkerGroup::on_end(process::WorkerId id, WorkerEnd end, std::string cause, Time now) {
  GroupNews news;
  Worker* const worker = find(id);
  if (worker == nullptr) return news;
  worker->stage = Worker::Stage::Ended;
  if (worker->condemned) {  // and told already
    if (--not_ended_ == 0) report_failure(news, now, true);
    return news;
  }
  worker->ended = now;
  worker->end = end;
  worker->cause = std::move(cause);
  const bool is_stopping = stopping();
  if (services_.watch != nullptr) services_.watch->on_ended(assignment_, *worker, is_stopping);
  // A process that ends after its round was stuck in the kernel: nobody waits for it any more.
  if (state_ != State::Idle)
    failures_.on_end(id, end, is_stopping ? std::optional(stop_signal_) : std::nullopt, now);
  if (failures_.first() == id) news.failing = on_first_failure(id, now);
  if (--not_ended_ > 0) return news;
  news.succeeded = state_ == State::Running && !failures_.first();
  report_failure(news, now, true);
  // A shell's background jobs ignore SIGINT and SIGQUIT: processes that outlive the workers are
  // asked again.
  const bool as_told = !spec_.stop_signal && (stop_signal_ == SIGINT || stop_signal_ == SIGQUIT);
  if (is_stopping && as_told) processes_.stop(SIGTERM, spec_.shutdown_timeout);
  return news;
}

// Ranks that wait for the same one fail in the same moment: those that are stopped before cannot be
// told from the one that hangs.
bool WorkerGroup::on_first_failure(process::WorkerId id, Time now) {
  failure_time_ms_ = unix_ms();
  stop_at_.reset();
  held_until_.reset();
  const auto& fault = workers_.at(id).fault;
  const bool hangs = fault && fault->hangs;
  const bool has_others = assignment_.group_world_size > 1;
  if (state_ != State::Running || (not_ended_ < 2 && !hangs)) return has_others;
  if (services_.before_stop != nullptr)
    held_until_ = services_.before_stop->begin(hangs, now, [this, start = starts_] {
      if (start == starts_) held_until_.reset();
    });
  if (hangs) {
    // What is stopped here would fail others that have not said yet that they hang, too.
    const auto others = fault->clue.others_within;
    if (has_others && others.count() > 0) stop_at_ = now + others + kToBeTold;
    return has_others;
  }
  const auto tail = output_.tail(id, kLastWordsLimit);
  if (!speaks_of_timeout(headline("", tail), tail)) return has_others;
  stop_at_ = now + rendezvous::kOthersTimeOut;
  // With several nodes the leader waits for the others' time-outs.
  if (!has_others) failures_.put_off(rendezvous::kOthersTimeOut);
  return has_others;
}

void WorkerGroup::on_fault(int local_rank, const RankFault& fault) {
  for (auto& [id, worker] : workers_)
    if (worker.local_rank == local_rank && !worker.fault) worker.fault = fault;
}

// Takes workers with a fault that have not ended for failed.
bool WorkerGroup::condemn_faulty(Time now) {
  if (state_ != State::Running) return false;
  bool failing = false;
  std::vector<process::WorkerId> faulty;
  for (const auto& [id, worker] : workers_)
    if (worker.fault && worker.stage == Worker::Stage::Running && !worker.condemned)
      faulty.push_back(id);
  std::stable_sort(faulty.begin(), faulty.end(), [this](auto a, auto b) {
    return rendezvous::is_nearer(workers_.at(a).fault->clue, workers_.at(b).fault->clue);
  });
  for (const auto id : faulty) {
    Worker& worker = workers_.at(id);
    worker.condemned = true;
    worker.ended = now;
    worker.end.status.code = worker.fault->exit_code;
    worker.cause = worker.fault->cause;
    failures_.on_end(id, worker.end, std::nullopt, now);
    if (failures_.first() == id) failing = on_first_failure(id, now);
  }
  return failing;
}

GroupNews WorkerGroup::on_time(Time now) {
  GroupNews news;
  if (ready(now)) launch(now);
  for (const auto& [id, reason] : std::exchange(refused_, {})) {
    WorkerEnd end;
    end.spawn_error = reason.error;
    end.status.code = reason.exit_code();
    auto each = on_end(id, end, reason.text(), now);
    if (each.failure) news.failure = std::move(each.failure);
    news.failing |= each.failing;
  }
  news.failing |= condemn_faulty(now);
  const auto is_ahead = [now](const std::optional<Time>& time) { return time && now < *time; };
  const bool waits = not_ended_ > 0 && (is_ahead(stop_at_) || is_ahead(held_until_));
  if (failures_.first() && state_ == State::Running && !waits) begin_stop(false, now);
  report_failure(news, now, false);
  end_stop(news);
  return news;
}

std::optional<WorkerGroup::Time> WorkerGroup::next_deadline() const {
  const bool can_report = report_ && report_->remains;
  if (!refused_.empty() || can_report) return Time{};
  EarliestDeadline due;
  if (prepared_ && peers_) due.include(start_held_until_.value_or(Time{}));
  due.include(failures_.next_deadline());
  if (failures_.first() && state_ == State::Running) {
    due.include(stop_at_);
    due.include(held_until_);
  }
  return due.time();
}

}  // namespace drun::launcher
