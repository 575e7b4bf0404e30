// The decisions inside a connection to etcd: session, watches, transactions, heartbeats.
#include <algorithm>
#include <utility>

#include "etcd/etcd_fsm.hpp"
#include "etcd/etcd_session.hpp"

namespace drun::etcd {
namespace {

using rendezvous::CommitOutcome;
using rendezvous::Link;
using std::chrono::milliseconds;

constexpr const char* kTransaction = "/v3/kv/txn";
constexpr const char* kRange = "/v3/kv/range";
constexpr const char* kWatch = "/v3/watch";
constexpr const char* kGrant = "/v3/lease/grant";
constexpr const char* kKeepAlive = "/v3/lease/keepalive";
constexpr const char* kAuthenticate = "/v3/auth/authenticate";

// What a job leaves behind goes this long after its last agent, as with torchrun.
constexpr std::chrono::seconds kJobLifetime{7'200};
constexpr std::chrono::minutes kJobBeat{10};
constexpr const char* kSessionEnded = "the session has ended";
// A member that is ending closes a connection once or twice; something else does so every time.
constexpr std::size_t kClosedInARow = 6;
// A heartbeat that an election has come between is repeated after this.
constexpr milliseconds kBeatAgain{50};
// How often a connection after a break shows that it works.
constexpr milliseconds kTrialBeat{500};

bool is_about_user(const Refusal& refusal) {
  return refusal.is(GrpcCode::Unauthenticated) ||
         refusal.text.find("user name") != std::string::npos ||
         refusal.text.find("auth") != std::string::npos;
}

bool is_limit(const Refusal& refusal) {
  return refusal.is(GrpcCode::ResourceExhausted) || refusal.is(GrpcCode::InvalidArgument) ||
         refusal.is(GrpcCode::PermissionDenied);
}

}  // namespace

// ---- connecting ----

void EtcdFsm::connect(Time now) {
  phase_ = Phase::Connecting;
  ++connection_;
  granted_here_ = false;
  authenticated_here_ = false;
  phase_deadline_ = now + attempt_limit();
  const bool known = options_.cluster.user.empty() || !token_.empty();
  take_step(!known ? Step::Authenticate : session_ != 0 ? Step::KeepAlive : Step::Grant, now);
}

void EtcdFsm::take_step(Step step, Time now) {
  step_ = step;
  switch (step) {
    case Step::Authenticate:
      step_call_ = call(kAuthenticate,
                        authenticate_request(options_.cluster.user, options_.cluster.password));
      return;
    case Step::KeepAlive:
      alive_sent_ = now;
      step_call_ = call(kKeepAlive, lease_request(session_));
      return;
    case Step::EndSession:
      step_call_ = call(kRevokePath, lease_request(session_));
      return;
    case Step::Grant:
      alive_sent_ = now;
      step_call_ = call(
          kGrant,
          grant_request(0, std::chrono::ceil<std::chrono::seconds>(options_.time_to_live).count()));
      return;
    case Step::KeepJob:
      step_call_ = call(kGrant, grant_request(job_lease_, kJobLifetime.count()));
      return;
    case Step::RaiseFence:
    case Step::CreateFence:
      fence_ = fence_of(session_, ++generation_);
      step_call_ = call(kTransaction, fence_request(fence_, step == Step::CreateFence, session_));
      return;
  }
}

void EtcdFsm::on_step(const EtcdReply& reply, Time now) {
  step_call_ = 0;
  closed_in_a_row_ = reply.closed ? closed_in_a_row_ + 1 : 0;
  if (reply.status == 0) {
    const std::size_t most = std::max(kClosedInARow, options_.cluster.endpoints.size());
    return attempt_failed(causes(reply),
                          closed_in_a_row_ >= most ? Hope::None
                          : reply.final            ? Hope::Elsewhere
                                                   : Hope::Again,
                          now);
  }
  if (reply.status != 200) {
    const auto refusal = read_refusal(reply.body);
    return refusal ? on_step_refused(*refusal, now) : on_no_etcd(reply, now);
  }
  switch (step_) {
    case Step::Authenticate:
      return on_token(reply.body, now);
    case Step::KeepAlive:
      return on_kept_alive(reply.body, now);
    case Step::EndSession:
      return on_session_ended(now);
    case Step::Grant:
      return on_granted(reply.body, now);
    case Step::KeepJob:
      next_job_beat_ = now + kJobBeat;
      return take_step(granted_here_ ? Step::CreateFence : Step::RaiseFence, now);
    case Step::RaiseFence:
    case Step::CreateFence:
      return on_fence(reply.body, now);
  }
}

void EtcdFsm::on_step_refused(const Refusal& refusal, Time now) {
  if (step_ == Step::KeepJob && refusal.is(GrpcCode::FailedPrecondition)) {  // it has the lease
    next_job_beat_ = now;
    return take_step(granted_here_ ? Step::CreateFence : Step::RaiseFence, now);
  }
  if (refusal.is(GrpcCode::NotFound) && session_ != 0)
    return step_ == Step::EndSession ? on_session_ended(now) : take_step(Step::EndSession, now);
  if (is_about_user(refusal)) {
    const bool stale = !token_.empty() && !authenticated_here_;
    token_.clear();
    if (stale) return attempt_failed("it says: " + refusal.text, Hope::Again, now);
    return attempt_failed(refusal.text + "; check username and password in --rdzv-conf", Hope::None,
                          now);
  }
  if (refusal.is(GrpcCode::PermissionDenied))
    return attempt_failed(
        refusal.text +
            "; the user must be allowed to read and write the keys that begin with "
            "'drun/'",
        Hope::None, now);
  attempt_failed("it says: " + refusal.text, Hope::Again, now);
}

void EtcdFsm::on_no_etcd(const EtcdReply& reply, Time now) {
  // A proxy whose member is not there speaks so, too.
  if (reply.status >= 500) return attempt_failed(causes(reply), Hope::Again, now);
  attempt_failed("this is no etcd 3.4 or later with its JSON gateway: " + causes(reply),
                 Hope::Elsewhere, now);
}

void EtcdFsm::on_token(const std::string& body, Time now) {
  auto token = read_token(body);
  if (!token) return attempt_failed(token.error().what(), Hope::Again, now);
  token_ = std::move(*token);
  authenticated_here_ = true;
  take_step(session_ != 0 ? Step::KeepAlive : Step::Grant, now);
}

void EtcdFsm::on_kept_alive(const std::string& body, Time now) {
  const auto lease = read_keep_alive(body);
  if (!lease) {
    token_.clear();  // perhaps it is that
    return attempt_failed(lease.error().what(), Hope::Again, now);
  }
  // No proof that the lease is over: one who leads no longer, or has just begun to, may not know
  // it.
  if (lease->seconds <= 0) return take_step(Step::EndSession, now);
  term_ = lease->term;
  take_step(Step::KeepJob, now);
}

void EtcdFsm::on_session_ended(Time now) {
  session_ = 0;
  take_step(Step::Grant, now);
}

void EtcdFsm::on_granted(const std::string& body, Time now) {
  const auto lease = read_grant(body);
  if (!lease) return attempt_failed(lease.error().what(), Hope::Again, now);
  session_ = lease->lease;
  term_ = lease->term;
  granted_here_ = true;
  take_step(Step::KeepJob, now);
}

void EtcdFsm::on_fence(const std::string& body, Time now) {
  const auto answer = read_transaction(body);
  if (!answer) return attempt_failed(answer.error().what(), Hope::Again, now);
  if (!answer->succeeded) {
    // Who has deleted it may have deleted the keys of the session, too.
    if (!answer->fence) return take_step(Step::EndSession, now);
    // An attempt of before has come late.
    const auto generation = generation_in(*answer->fence);
    if (!generation)
      return attempt_failed("another has changed the key of this session", Hope::Again, now);
    generation_ = std::max(generation_, *generation);
    return take_step(Step::RaiseFence, now);
  }
  // Who kept a lease of before alive may not have been the leader any more.
  if (answer->term != term_ && !granted_here_) return take_step(Step::KeepAlive, now);
  session_ready(now);
}

void EtcdFsm::session_ready(Time now) {
  const bool again = had_session_;
  const Link link = again && known_session_ != session_ ? Link::NewSession : Link::Up;
  std::string detail = (again ? "reconnected to " : "connected to ") + here();
  if (link == Link::NewSession) detail += ", which had ended the session";
  phase_ = Phase::Up;
  had_session_ = true;
  known_session_ = session_;
  last_error_.clear();
  failed_in_a_row_ = 0;
  hopeless_in_a_row_ = 0;
  last_heard_ = now;
  next_beat_ = std::max(now, alive_sent_ + beat_interval());
  events_.emplace_back(rendezvous::LinkEvent{link, std::move(detail), {}, kMostOperations});
  events_.emplace_back(rendezvous::Renewed{alive_sent_});
  // Watches first: what the waiting transactions change then comes as changes.
  std::deque<Work> work;
  for (const auto& [name, serial] : watches_.serials())
    work.emplace_back(Look{name, serial});
  std::move(work_.begin(), work_.end(), std::back_inserter(work));
  work_ = std::move(work);
  do_work(now);
}

// ---- what the caller asked for ----

void EtcdFsm::do_work(Time now) {
  while (work_call_ == 0 && !work_.empty()) {
    const Work& work = work_.front();
    work_due_ = now + options_.read_timeout;
    if (const auto* commit = std::get_if<Commit>(&work)) {
      work_call_ =
          call(kTransaction, commit_request(commit->transaction, fence_, session_, job_lease_));
      calls_.back().once = true;
    } else if (const auto* look = std::get_if<Look>(&work)) {
      const auto* const watch = watches_.find(look->watch, look->serial);
      if (watch == nullptr) {
        work_.pop_front();
        continue;
      }
      work_call_ = call(kRange, range_request(watch->key, watch->prefix));
    } else {
      work_call_ = call(kRevokePath, lease_request(session_));
    }
  }
}

void EtcdFsm::on_work(const EtcdReply& reply, Time now) {
  if (reply.status != 0 && reply.status != 200) {
    if (const auto refusal = read_refusal(reply.body)) return on_work_refused(*refusal, now);
  }
  if (!usable(reply, now)) return;
  work_call_ = 0;
  const Work& work = work_.front();
  const std::uint64_t connection = connection_;
  if (const auto* commit = std::get_if<Commit>(&work)) {
    on_committed(*commit, reply.body, now);
  } else if (const auto* look = std::get_if<Look>(&work)) {
    on_looked(*look, reply.body, now);
  } else {
    return over(Link::Closed, "left " + here());
  }
  if (phase_ != Phase::Up || connection != connection_) return;
  work_.pop_front();
  do_work(now);
}

void EtcdFsm::on_committed(const Commit& commit, const std::string& body, Time now) {
  const auto result = read_transaction(body);
  if (!result) return lost(result.error().what(), now);
  if (result->succeeded) return answer(commit.request, CommitOutcome::Committed);
  if (result->fence != fence_.value) return session_lost(now);
  answer(commit.request, CommitOutcome::Refused);
}

void EtcdFsm::on_looked(const Look& look, const std::string& body, Time now) {
  const auto* const watch = watches_.find(look.watch, look.serial);
  if (watch == nullptr) return;
  auto found = read_range(body);
  if (!found) return lost(found.error().what(), now);
  const auto stream =
      call(kWatch, watch_request(watch->key, watch->prefix, found->revision + 1), true);
  watches_.begin(look.watch, stream, now + options_.heartbeat_timeout);
  events_.emplace_back(rendezvous::WatchSnapshot{look.watch, std::move(found->entries)});
}

void EtcdFsm::on_work_refused(const Refusal& refusal, Time now) {
  const auto silent = std::chrono::duration_cast<milliseconds>(now - last_heard_);
  const Work& work = work_.front();
  if (std::holds_alternative<Goodbye>(work))
    return over(Link::Closed, here() + " says: " + refusal.text);
  if (refusal.is(GrpcCode::NotFound)) return session_lost(now);
  if (is_about_user(refusal)) {
    token_.clear();
    return lost("it says: " + refusal.text, now);
  }
  if (!is_limit(refusal)) return lost("it says: " + refusal.text, now, silent);
  if (const auto* commit = std::get_if<Commit>(&work)) {
    answer(commit->request, CommitOutcome::Rejected, here() + " says: " + refusal.text);
  } else if (const auto* look = std::get_if<Look>(&work);
             watches_.find(look->watch, look->serial) != nullptr) {
    (void)watches_.remove(look->watch);
    events_.emplace_back(rendezvous::WatchRejected{look->watch, here() + " says: " + refusal.text});
  }
  work_call_ = 0;
  work_.pop_front();
  do_work(now);
}

void EtcdFsm::on_stream(std::uint64_t call, std::string_view bytes, Time now) {
  if (phase_ != Phase::Up) return;
  if (!watches_.receive(call, bytes)) return lost("it sends an event without an end", now);
  const auto name = watches_.of_stream(call);
  while (const auto line = watches_.take_line(call))
    on_line(*name, *line, now);
}

void EtcdFsm::on_line(rendezvous::WatchId name, std::string_view line, Time now) {
  if (line.empty()) return;
  auto news = read_watch(line);
  if (!news) return lost(news.error().what(), now);
  watches_.note_word(name);
  for (auto& changes : news->changes)
    events_.emplace_back(rendezvous::WatchChanges{name, std::move(changes)});
  if (!news->canceled) return;
  if (news->compacted) return lost("it has compacted what was to be watched", now);
  if (news->reason.find("permission denied") == std::string::npos)
    return lost("it ended a watch" + (news->reason.empty() ? "" : ": " + news->reason), now);
  unwatch(name);
  events_.emplace_back(rendezvous::WatchRejected{name, here() + " says: " + news->reason});
}

// ---- heartbeats ----

// Whether it has is seen by the next connection.
void EtcdFsm::session_lost(Time now) {
  lost(kSessionEnded, now);
}

milliseconds EtcdFsm::beat_interval() const {
  return troubled_ ? std::min(kTrialBeat, options_.heartbeat_interval)
                   : options_.heartbeat_interval;
}

void EtcdFsm::beat(Time now) {
  alive_sent_ = now;
  if (!beat_due_) beat_due_ = now + options_.heartbeat_timeout;
  beat_call_ = call(kKeepAlive, lease_request(session_));
}

void EtcdFsm::on_beat(const EtcdReply& reply, Time now) {
  if (!usable(reply, now)) return;
  beat_call_ = 0;
  const auto lease = read_keep_alive(reply.body);
  if (!lease) {
    token_.clear();
    return lost(lease.error().what(), now);
  }
  if (lease->seconds <= 0) return session_lost(now);
  term_ = lease->term;
  presence_call_ = call(kRange, presence_request(fence_.key));
}

void EtcdFsm::on_presence(const EtcdReply& reply, Time now) {
  if (!usable(reply, now)) return;
  presence_call_ = 0;
  const auto found = read_range(reply.body);
  if (!found) return lost(found.error().what(), now);
  if (found->count == 0) return session_lost(now);
  if (found->term != term_) {
    next_beat_ = now + kBeatAgain;
    return;
  }
  beat_due_.reset();
  last_heard_ = now;
  events_.emplace_back(rendezvous::Renewed{alive_sent_});
  if (watches_.all_stream()) troubled_ = false;
  next_beat_ = std::max(now, alive_sent_ + beat_interval());
}

void EtcdFsm::keep_job(Time now) {
  next_job_beat_ = now + kJobBeat;
  job_call_ = call(kKeepAlive, lease_request(job_lease_));
}

std::string EtcdFsm::farewell() const {
  if (session_ == 0 || options_.cluster.tls.used) return "";
  return farewell_bytes(session_, options_.cluster.endpoints[endpoint_], token_);
}

}  // namespace drun::etcd
