#include "store/server/succession.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/addresses.hpp"
#include "base/deadline.hpp"
#include "store/server/founders.hpp"
#include "store/server/job_notes.hpp"
#include "store/server/stamps.hpp"

namespace drun::store {
namespace {

bool counts(const Vote& vote) {
  return vote.latest().nodes > 0;
}

}  // namespace

StoreSuccession::StoreSuccession(Options options, KeyTable& table)
    : options_(std::move(options)), table_(table) {
  if (options_.is_successor) stage_ = Stage::Gathering;
  generation_ = is_serving() ? 1 : 0;
  if (!options_.job.empty()) job_ = options_.job;
}

Electorate* StoreSuccession::electorate_of(std::string_view job) {
  const auto found = jobs_.find(job);
  if (found != jobs_.end()) return &found->second;
  if (jobs_.size() >= kMostJobs) return nullptr;
  const Electorate::Options options{!options_.is_successor, options_.quorum};
  return &jobs_.emplace(std::string(job), Electorate(options)).first->second;
}

// ---- sessions ----

void StoreSuccession::vote(SessionId session, std::string_view job, const Vote& said, Time now) {
  const Vote vote = admitted(said, options_.founders);
  if (job.empty() || !counts(vote)) return;
  auto entry = voters_.find(session);
  if (entry != voters_.end() && entry->second.job != job) {
    ended(session, now);
    entry = voters_.end();
  }
  Electorate* const electorate = electorate_of(job);
  if (electorate == nullptr) return;
  if (entry == voters_.end())
    entry = voters_.emplace(session, JobVoter{std::string(job), ++last_voter_}).first;
  electorate->vote(entry->second.voter, vote, now);
  note_return(*electorate, entry->second.job);
}

control::Pulsed StoreSuccession::pulsed(std::string_view job, Time now) {
  control::Pulsed answer;
  answer.generation = generation_;
  answer.stamp = stamp_of(now);
  const auto found = jobs_.find(job);
  if (found != jobs_.end()) {
    if (const auto since = found->second.quorum(now)) answer.age_ms = age_in_ms(*since, now);
    answer.settled = found->second.settled();
  } else if (!options_.is_successor && (job.empty() || jobs_.size() < kMostJobs)) {
    answer.age_ms = 0;  // nobody is elsewhere: nobody has voted
  }
  return answer;
}

void StoreSuccession::confirm(SessionId session, std::uint64_t stamp, Time now) {
  const auto entry = voters_.find(session);
  if (entry == voters_.end()) return;
  const auto job = jobs_.find(entry->second.job);
  if (job != jobs_.end()) job->second.confirm(entry->second.voter, time_of(stamp, now));
}

void StoreSuccession::goodbye(SessionId session, Time now) {
  const auto entry = voters_.find(session);
  if (entry == voters_.end()) return;
  const auto job = jobs_.find(entry->second.job);
  if (job == jobs_.end()) return;
  const Vote* const vote = job->second.find(entry->second.voter);
  if (options_.is_successor && vote != nullptr) note_death(generation_, job->first, *vote, now);
  job->second.gone(entry->second.voter);
}

void StoreSuccession::ended(SessionId session, Time now) {
  const auto entry = voters_.find(session);
  if (entry == voters_.end()) return;
  const auto job = jobs_.find(entry->second.job);
  if (job != jobs_.end()) {
    job->second.leave(entry->second.voter);
    // All of them have gone, and another job may have the name.
    if (!options_.is_successor && job->second.is_over())
      jobs_.erase(job);
    else
      note_desertion(job->first, now);
  }
  voters_.erase(entry);
}

// ---- who has to listen first ----

Time StoreSuccession::opens_at(std::string_view job) const {
  return std::max(listens_until_, sought_.until(job).value_or(listens_until_));
}

bool StoreSuccession::lets_in(const control::OpenSuccessor& request, Time now) const {
  if (options_.is_successor || request.job.empty()) return true;
  const bool brings_a_round =
      counts(request.vote) && !request.vote.latest().electorate.is_founding();
  return brings_a_round || now >= opens_at(request.job);
}

void StoreSuccession::on_time(Time now) {
  const std::size_t over = sought_.forget(now) + forget_deserted(now);
  if (options_.is_successor) {
    if (over == 0) return;
    call_those_who_wait(now);
    return begin_if_possible(now);
  }
  const auto may_come = [this, now](VoterId, const Applicants::Waiting& waiting) {
    return now >= opens_at(waiting.job);
  };
  for (const auto& [number, waiting] : waiting_.take_if(may_come)) {
    waiting.applicant->on_call(pulsed(waiting.job, now));
    (void)waiting.applicant->on_welcome(now);
  }
}

std::optional<Time> StoreSuccession::next_deadline() const {
  EarliestDeadline next;
  next.include(sought_.next_deadline());
  next.include(deserted_.next_deadline());
  if (!options_.is_successor)
    for (const auto& [number, waiting] : waiting_)
      next.include(opens_at(waiting.job));
  return next.time();
}

// A job looks for its store. Its nodes may meet at this very store in the end, and newcomers must
// not have begun the job anew here by then. If this store knows the round of the job, that does not
// matter.
void StoreSuccession::hear_that_it_looks(const control::Find& request, Time now) {
  const auto job = jobs_.find(request.job);
  const bool knows_it = job != jobs_.end() && !job->second.is_deserted();
  const bool begins = options_.is_successor ? options_.is_founding && !is_serving()
                                            : request.generation >= generation_ && !knows_it;
  if (!begins) return;
  elsewhere_.doubt(request.job, request.generation);
  sought_.hear(request.job, now);
}

// Who told of the job's rounds may come again, with others.
void StoreSuccession::note_desertion(const std::string& job, Time now) {
  const bool begins = !options_.is_successor || (options_.is_founding && !is_serving());
  if (!begins || !jobs_.find(job)->second.is_deserted()) return;
  const bool kept = !options_.is_successor && table_.find(job + "round") != nullptr;
  deserted_.add(job, kept, now, [this](const auto&... each) { return forgets_at(each...); });
}

// With each vote: there is rarely such a job.
void StoreSuccession::note_return(const Electorate& electorate, const std::string& job) {
  if (deserted_.empty() || electorate.is_deserted()) return;
  deserted_.remove(job);
}

std::size_t StoreSuccession::forget_deserted(Time now) {
  return deserted_.look(
      now, [this, now](const auto&... each) { return forgets(each..., now); },
      [this](const auto&... each) { return forgets_at(each...); });
}

Time StoreSuccession::forgets_at(const std::string& name, const DesertedJobs::Job& job) const {
  const auto known = jobs_.find(name);
  const bool was_here = known != jobs_.end() && known->second.had_majority();
  const Time pause = job.since + (was_here ? kAbandoned : SoughtJobs::kSought);
  return std::max(pause, sought_.until(name).value_or(pause));
}

// Nobody has come again, and nobody is looking for the store: whoever is here may begin the job
// anew, as if this store had only just begun. Founders who were called before are called again,
// with a higher generation: they may have told another store of this one. True: there is no more to
// wait for.
bool StoreSuccession::forgets(const std::string& name, const DesertedJobs::Job& job, Time now) {
  const auto known = jobs_.find(name);
  if (known == jobs_.end() || !known->second.is_deserted()) return true;
  const bool deleted = job.kept && table_.find(name + "round") == nullptr;
  if (!deleted && now < forgets_at(name, job)) return false;
  if (!options_.is_successor) {
    jobs_.erase(known);
    return true;
  }
  if (!options_.is_founding || is_serving()) return true;
  known->second.forget_rounds();
  known->second.unconfirm();
  stage_ = Stage::Gathering;
  highest_ = std::max(highest_, generation_);
  waiting_.uncall();
  return true;
}

// Founders may have forgotten the job, or never have heard of it, so they must not begin it while
// it looks for its store. Once an agent has come that knows a round of it, a majority of that round
// decides, not the founders: the job may have met here.
bool StoreSuccession::may_begin(Time now) const {
  if (is_serving() || !job_) return false;
  if (!options_.is_founding || !sought_.is_sought(*job_, now)) return true;
  const auto known = jobs_.find(*job_);
  if (known == jobs_.end()) return false;
  const Place& settled = known->second.settled();
  return settled.nodes > 0 && !settled.electorate.is_founding();
}

// ---- who waits ----

VoterId StoreSuccession::apply(Applicant& applicant, const control::OpenSuccessor& application,
                               Time now) {
  const VoterId number = ++last_voter_;
  Applicants::Waiting& waiting = waiting_.add(number, applicant, std::string(application.job));
  if (is_serving()) return number;
  const Vote vote = admitted(application.vote, options_.founders);
  if (application.job.empty() || !counts(vote)) return number;
  // Elsewhere it may be one who has forgotten that there is a job.
  if (vote.latest().electorate.is_founding() && !options_.is_founding) return number;
  if (!job_) job_ = application.job;
  waiting.votes = true;
  waiting.heard = now - Milliseconds(application.silent_ms);
  highest_ = std::max(highest_, application.generation);
  Electorate& electorate = *electorate_of(*job_);
  electorate.vote(number, vote, now);
  note_return(electorate, *job_);
  call_those_who_wait(now);
  return number;
}

// Each of them has to know of this generation, and then goes to no lower one: so no two stores have
// the same, and of two that were begun the one with the lower one has no majority any more.
void StoreSuccession::call_those_who_wait(Time now) {
  if (!may_begin(now) || elsewhere(*job_, now).generation > 0) return;
  Electorate& electorate = *electorate_of(*job_);
  if (stage_ == Stage::Gathering && !electorate.has_majority()) return;
  stage_ = Stage::Calling;
  if (generation_ <= highest_) {
    generation_ = highest_ + 1;
    electorate.unconfirm();
    waiting_.uncall();
  }
  last_call_ = std::max(last_call_ + 1, stamp_of(now));
  control::Pulsed call;
  call.generation = generation_;
  call.settled = electorate.settled();
  call.stamp = last_call_;
  waiting_.call(call);
}

void StoreSuccession::confirm_call(VoterId applicant, std::uint64_t stamp, Time now) {
  if (!waiting_.was_called(applicant, stamp)) return;
  electorate_of(*job_)->confirm(applicant, time_of(stamp, now));
  begin_if_possible(now);
}

void StoreSuccession::begin_if_possible(Time now) {
  if (!may_begin(now) || stage_ != Stage::Calling || !electorate_of(*job_)->quorum(now)) return;
  stage_ = Stage::Serving;
  tell_of_silence(now);
  for (const auto& [number, waiting] : waiting_.take_all()) {
    // Who has no vote was not called, and has to know whose generation this is as well.
    if (!waiting.votes && !waiting.job.empty())
      waiting.applicant->on_call(pulsed(waiting.job, now));
    const SessionId session = waiting.applicant->on_welcome(now);
    if (session != kNoSession && waiting.votes) voters_[session] = {*job_, number};
  }
}

void StoreSuccession::withdraw(VoterId applicant, Time now) {
  const auto waiting = waiting_.take(applicant);
  if (!waiting || !waiting->votes) return;
  electorate_of(*job_)->leave(applicant);
  note_desertion(*job_, now);
}

// ---- the dead ----

// It may have waited in the kernel while another store served, since before that one was lost. The
// dead one was dead by then, and has confirmed nothing since.
void StoreSuccession::gone(const control::Gone& proof, Time came, Time now) {
  if (proof.job.empty() || !counts(proof.vote) || !serves(proof.job)) return;
  if (is_older_than(proof.generation)) return;  // it counts elsewhere
  if (options_.is_successor && !job_) job_ = proof.job;
  if (!options_.is_successor && !jobs_.contains(proof.job)) return;
  highest_ = std::max(highest_, proof.generation);
  last_proof_ = std::max(last_proof_, came);
  electorate_of(proof.job)->gone(proof.vote);
  note_death(proof.generation, proof.job, proof.vote, came);
  call_those_who_wait(now);
  begin_if_possible(now);
}

void StoreSuccession::note_death(std::uint64_t generation, std::string_view job, const Vote& vote,
                                 Time came) {
  write_gone(table_, job, vote);
  if (options_.is_successor) deaths_.note({generation, vote, came});
}

void StoreSuccession::recall(const Deaths& deaths, Time now) {
  if (!job_) return;
  for (const auto& [generation, vote, came] : deaths.all)
    gone({generation, *job_, vote}, came, now);
}

// For how long at least no other store can have been sure of a majority: who has confirmed the call
// here has confirmed nothing to another one since, nor has who is gone. Of fewer than a majority
// nothing follows.
void StoreSuccession::tell_of_silence(Time now) {
  if (options_.quorum > 0) return;
  const Time heard = waiting_.heard(last_proof_);
  write_silence(table_, *job_, std::chrono::duration_cast<Milliseconds>(now - heard));
}

// ---- where the store is ----

void StoreSuccession::hear(const control::Find& request, Time now) {
  if (request.port == 0 && request.generation > 0) return hear_that_it_looks(request, now);
  if (request.generation <= served_generation() || request.port == 0) return;
  if (numeric_addresses(request.host).empty()) return;
  const Endpoint place{std::string(request.host), request.port};
  if (elsewhere_.hear(request.job, request.generation, place, now))
    tell_those_who_wait(request.job, now);
}

void StoreSuccession::tell_those_who_wait(std::string_view job, Time now) {
  const control::Moved moved = elsewhere(job, now);
  const auto is_theirs = [job](VoterId, const auto& waiting) { return waiting.job == job; };
  for (const auto& [number, waiting] : waiting_.take_if(is_theirs)) {
    if (waiting.votes) {
      electorate_of(job)->leave(number);
      note_desertion(waiting.job, now);
    }
    waiting.applicant->on_moved(moved);
  }
}

// What it has heard of deaths stays true. The job has begun, so its founders count no more: they
// may have forgotten that.
bool StoreSuccession::point_to(std::uint64_t generation, const Endpoint& store, Time now) {
  if (!job_ || (is_serving() && (options_.is_successor || generation <= generation_))) return false;
  if (is_serving()) {
    elsewhere_.know(*job_, generation, store);
    tell_those_who_wait(*job_, now);
    return true;
  }
  options_.is_founding = false;
  Electorate& electorate = *electorate_of(*job_);
  for (auto& [number, waiting] : waiting_) {
    const Vote* const vote = electorate.find(number);
    if (vote == nullptr || !vote->latest().electorate.is_founding()) continue;
    electorate.leave(number);
    waiting.votes = false;
  }
  if (generation == 0) {
    elsewhere_.forget(*job_);
    call_those_who_wait(now);
  } else {
    elsewhere_.know(*job_, generation, store);
    tell_those_who_wait(*job_, now);
  }
  return true;
}

control::Moved StoreSuccession::elsewhere(std::string_view job, Time now) const {
  return elsewhere_.find(job, served_generation(), now);
}

control::Moved StoreSuccession::find(std::string_view job, Time now) const {
  const control::Moved moved = elsewhere(job, now);
  if (moved.generation > 0) return moved;
  if (is_serving()) return {generation_, {}, 0};
  const bool is_of_a_job = options_.is_successor && !options_.is_founding;
  constexpr std::uint16_t kNoPlace = 1;
  if (is_of_a_job || sought_.is_sought(job, now))
    return {std::max<std::uint64_t>(highest_, 1), {}, kNoPlace};
  return {};
}

control::Moved StoreSuccession::signpost(Time now) const {
  return table_.size() > 0 ? control::Moved{} : elsewhere_.any(served_generation(), now);
}

}  // namespace drun::store
