#include "etcd/etcd_fsm.hpp"

#include <algorithm>
#include <utility>

#include "base/duration_text.hpp"
#include "base/fnv1a.hpp"

namespace drun::etcd {
namespace {

using rendezvous::CommitOutcome;
using rendezvous::Link;
using std::chrono::milliseconds;

constexpr milliseconds kFirstRedial{10};
constexpr milliseconds kLongestRedial{1'000};
constexpr milliseconds kFirstAttempt{5'000};
constexpr milliseconds kShortestAttempt{500};
constexpr milliseconds kGoodbyeLimit{1'000};

std::string describe(EtcdFsm::Time::duration duration) {
  return describe_duration(std::chrono::duration_cast<milliseconds>(duration).count());
}

// Each job has a lease of its own, which all of its agents know without a word. Positive.
LeaseId lease_of(std::string_view job) {
  return static_cast<LeaseId>(std::max<std::uint64_t>(fnv1a(job) >> 1U, 1));
}

}  // namespace

EtcdFsm::EtcdFsm(EtcdOptions options, std::uint32_t seed)
    : options_(std::move(options)),
      job_lease_(lease_of(options_.job)),
      backoff_(kFirstRedial, kLongestRedial, seed),
      endpoint_(seed % options_.cluster.endpoints.size()) {}

std::string EtcdFsm::here() const {
  return "etcd at " + to_string(options_.cluster.endpoints[endpoint_]);
}

// ---- the caller ----

void EtcdFsm::open(Time now) {
  if (phase_ != Phase::Idle) return;
  started_ = now;
  give_up_ = now + std::max(options_.connect_timeout, kShortestAttempt);
  connect(now);
}

void EtcdFsm::watch(rendezvous::WatchId watch, std::string key, bool prefix, Time now) {
  if (phase_ == Phase::Over) return;
  unwatch(watch);
  const std::uint64_t serial = watches_.add(watch, std::move(key), prefix);
  if (phase_ != Phase::Up) return;
  work_.emplace_back(Look{watch, serial});
  do_work(now);
}

void EtcdFsm::unwatch(rendezvous::WatchId watch) {
  if (const auto stream = watches_.remove(watch)) canceled_.push_back(*stream);
}

void EtcdFsm::commit(rendezvous::RequestId request, rendezvous::Transaction transaction, Time now) {
  if (phase_ == Phase::Over || closing_by_) return answer(request, CommitOutcome::Unknown);
  work_.emplace_back(Commit{request, std::move(transaction)});
  if (phase_ == Phase::Up) do_work(now);
}

void EtcdFsm::close(Time now) {
  if (phase_ == Phase::Over || closing_by_) return;
  if (phase_ != Phase::Up)  // no goodbye can be said: the session, if there is one, times out
    return over(Link::Closed, "closed without a connection to " + describe(options_.cluster));
  closing_by_ = now + kGoodbyeLimit;
  work_.emplace_back(Goodbye{});
  do_work(now);
}

// ---- calls ----

std::uint64_t EtcdFsm::call(std::string path, std::string body, bool streams) {
  calls_.push_back({++last_call_, std::move(path), std::move(body), streams, false});
  return last_call_;
}

std::optional<EtcdFsm::Member> EtcdFsm::member() const {
  if (phase_ != Phase::Connecting && phase_ != Phase::Up) return std::nullopt;
  return Member{connection_, endpoint_};
}

std::vector<EtcdCall> EtcdFsm::take_calls() {
  return std::exchange(calls_, {});
}

std::vector<std::uint64_t> EtcdFsm::take_canceled() {
  return std::exchange(canceled_, {});
}

std::vector<rendezvous::KeyValueEvent> EtcdFsm::take_events() {
  return std::exchange(events_, {});
}

void EtcdFsm::answer(rendezvous::RequestId request, CommitOutcome outcome, std::string detail) {
  events_.emplace_back(rendezvous::CommitResult{request, outcome, std::move(detail)});
}

void EtcdFsm::on_reply(std::uint64_t call, const EtcdReply& reply, Time now) {
  if (phase_ == Phase::Connecting) {
    if (call == step_call_) on_step(reply, now);
    return;
  }
  if (phase_ != Phase::Up) return;
  if (call == work_call_) {
    on_work(reply, now);
  } else if (call == beat_call_) {
    on_beat(reply, now);
  } else if (call == presence_call_) {
    on_presence(reply, now);
  } else if (call == job_call_) {
    job_call_ = 0;
  } else if (watches_.of_stream(call) && usable(reply, now)) {
    lost("it ended a watch", now);
  }
}

// What gets in the way of every answer: none came, or not from etcd.
bool EtcdFsm::usable(const EtcdReply& reply, Time now) {
  if (reply.status == 200) return true;
  // Tokens grow old: the next attempt asks for another one.
  if (reply.status != 0) token_.clear();
  const auto silent = std::chrono::duration_cast<milliseconds>(now - last_heard_);
  const bool answered = reply.status != 0;
  lost(causes(reply), now, answered ? silent : milliseconds(0));
  return false;
}

std::string EtcdFsm::causes(const EtcdReply& reply) const {
  if (reply.status == 0) return shown(reply.error);
  const auto refusal = read_refusal(reply.body);
  if (refusal) return "it says: " + refusal->text;
  return "it answers with HTTP status " + std::to_string(reply.status) +
         (reply.body.empty() ? "" : ": " + shown(reply.body));
}

// ---- breaks, time and the end ----

void EtcdFsm::on_unusable(std::string why) {
  if (phase_ != Phase::Over) fail(std::move(why));
}

void EtcdFsm::on_unreachable(const std::string& cause, bool final, Time now) {
  if (phase_ != Phase::Connecting && phase_ != Phase::Up) return;
  attempt_failed(shown(cause), final ? Hope::Elsewhere : Hope::Again, now);
}

// One member that is set up badly does not end a start that the others could make.
void EtcdFsm::attempt_failed(const std::string& cause, Hope hope, Time now) {
  hopeless_in_a_row_ = hope == Hope::Again ? 0 : hopeless_in_a_row_ + 1;
  const bool everywhere =
      hope == Hope::None || hopeless_in_a_row_ >= options_.cluster.endpoints.size();
  if (everywhere && !had_session_) return fail(here() + ": " + cause);
  lost(cause, now);
}

void EtcdFsm::drop_connection() {
  calls_.clear();
  canceled_.clear();
  step_call_ = work_call_ = beat_call_ = presence_call_ = job_call_ = 0;
  beat_due_.reset();
  watches_.drop_streams();
}

// The next attempt goes to the next member.
void EtcdFsm::lost(const std::string& cause, Time now, milliseconds silent) {
  const bool was_up = phase_ == Phase::Up;
  const std::string member = here();
  if (closing_by_) return over(Link::Closed, "lost " + member + " while leaving it: " + cause);
  const bool several = options_.cluster.endpoints.size() > 1;
  last_error_ = several ? to_string(options_.cluster.endpoints[endpoint_]) + ": " + cause : cause;
  drop_connection();
  endpoint_ = (endpoint_ + 1) % options_.cluster.endpoints.size();
  if (was_up) {
    events_.emplace_back(
        rendezvous::LinkEvent{Link::Down, "lost " + member + ": " + cause, silent});
    // Those that were not sent never will be. For the one that was, the fence decides.
    for (const Work& work : std::exchange(work_, {})) {
      if (const auto* commit = std::get_if<Commit>(&work))
        answer(commit->request, CommitOutcome::Unknown);
    }
    if (!std::exchange(troubled_, true)) {
      started_ = now;
      give_up_ = now + options_.keep_alive;
      failed_in_a_row_ = 0;
      backoff_.reset();
      return connect(now);
    }
  }
  if (now >= give_up_) return give_up();
  // All members are tried before the first pause; but connections that come about and break at once
  // would follow one another as fast as the network allows.
  ++failed_in_a_row_;
  phase_ = Phase::Pausing;
  phase_deadline_ = now;
  if (was_up || failed_in_a_row_ % options_.cluster.endpoints.size() == 0)
    phase_deadline_ = std::min<Time>(now + backoff_.next(), give_up_);
  if (had_session_) phase_deadline_ = std::min(phase_deadline_, now + attempt_limit() / 3);
}

void EtcdFsm::give_up() {
  fail((had_session_ ? "lost " + describe(options_.cluster) + " and could not reach it again"
                     : "could not reach " + describe(options_.cluster)) +
       " within " + describe(give_up_ - started_) + ": " + last_error_);
}

void EtcdFsm::fail(std::string detail) {
  last_error_ = detail;
  over(Link::Failed, std::move(detail));
}

void EtcdFsm::over(Link link, std::string detail) {
  drop_connection();
  phase_ = Phase::Over;
  session_ = 0;
  for (const Work& work : std::exchange(work_, {})) {
    if (const auto* commit = std::get_if<Commit>(&work))
      answer(commit->request, CommitOutcome::Unknown);
  }
  events_.emplace_back(rendezvous::LinkEvent{link, std::move(detail)});
}

milliseconds EtcdFsm::attempt_limit() const {
  if (!had_session_) return kFirstAttempt;
  return std::max(kShortestAttempt, std::min(options_.heartbeat_timeout, options_.keep_alive / 4));
}

void EtcdFsm::on_time(Time now) {
  switch (phase_) {
    case Phase::Pausing:
      if (now >= phase_deadline_) connect(now);
      return;
    case Phase::Connecting:
      // What went wrong before says more than that the last attempt had no time left.
      if (now >= give_up_ && !last_error_.empty()) return give_up();
      if (now >= std::min(phase_deadline_, give_up_))
        attempt_failed(
            step_ == Step::KeepAlive || step_ == Step::Authenticate
                ? "no answer"
                : "it does not answer; perhaps no majority of its members can be reached",
            Hope::Again, now);
      return;
    case Phase::Up:
      break;
    case Phase::Idle:
    case Phase::Over:
      return;
  }
  if (closing_by_ && now >= *closing_by_)
    return over(Link::Closed, here() + " did not answer the goodbye");
  if ((beat_due_ && now >= *beat_due_) || (work_call_ != 0 && now >= work_due_)) {
    const auto silent = std::chrono::duration_cast<milliseconds>(now - last_heard_);
    return lost("no answer for " + describe(silent), now, silent);
  }
  if (const auto due = watches_.next_due(); due && now >= *due)
    return lost("no answer to a watch", now);
  const bool beating = beat_call_ != 0 || presence_call_ != 0;
  if (!beating && now >= next_beat_) beat(now);
  if (now >= next_job_beat_) keep_job(now);
}

std::optional<EtcdFsm::Time> EtcdFsm::next_deadline() const {
  switch (phase_) {
    case Phase::Pausing:
      return phase_deadline_;
    case Phase::Connecting:
      return std::min(phase_deadline_, give_up_);
    case Phase::Up: {
      Time due = next_job_beat_;
      if (beat_call_ == 0 && presence_call_ == 0) due = std::min(due, next_beat_);
      if (beat_due_) due = std::min(due, *beat_due_);
      if (work_call_ != 0) due = std::min(due, work_due_);
      if (closing_by_) due = std::min(due, *closing_by_);
      return std::min(due, watches_.next_due().value_or(due));
    }
    case Phase::Idle:
    case Phase::Over:
      break;
  }
  return std::nullopt;
}

}  // namespace drun::etcd
