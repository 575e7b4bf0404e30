#include "store/server/succession.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/addresses.hpp"
#include "base/deadline.hpp"

namespace drun::store {
namespace {

using std::chrono::microseconds;

bool counts(const Vote& vote) {
  return vote.latest().nodes > 0;
}

// Rounded up: what is said must not be too short.
std::uint32_t age_in_ms(Time since, Time now) {
  const auto age = std::chrono::ceil<Milliseconds>(std::max(now - since, Time::duration(0)));
  constexpr Milliseconds::rep kMost = control::Pulsed::kNever - 1;
  return static_cast<std::uint32_t>(std::min(age.count(), kMost));
}

}  // namespace

Succession::Succession(Options options, KeyTable& table)
    : options_(std::move(options)), table_(table) {
  is_serving_ = !options_.is_successor;
  generation_ = is_serving_ ? 1 : 0;
  if (!options_.job.empty()) job_ = options_.job;
}

std::uint64_t Succession::stamp_of(Time time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<microseconds>(time.time_since_epoch()).count());
}

Time Succession::time_of(std::uint64_t stamp, Time now) {
  return Time(microseconds(static_cast<microseconds::rep>(std::min(stamp, stamp_of(now)))));
}

Electorate* Succession::electorate_of(std::string_view job) {
  const auto found = jobs_.find(job);
  if (found != jobs_.end()) return &found->second;
  if (jobs_.size() >= kMostJobs) return nullptr;
  const Electorate::Options options{!options_.is_successor, options_.quorum};
  return &jobs_.emplace(std::string(job), Electorate(options)).first->second;
}

// Founders of another list speak of other nodes.
Vote Succession::admitted(const Vote& vote) const {
  const Place& settled = vote.settled;
  const Place& known = options_.founders;
  Vote result = vote;
  std::erase_if(result.later, [](const Place& place) { return place.electorate.is_founding(); });
  const bool is_other = settled.electorate != known.electorate || settled.nodes != known.nodes;
  if (settled.electorate.is_founding() && is_other) result.settled = {};
  return result;
}

// ---- sessions ----

void Succession::vote(SessionId session, std::string_view job, const Vote& said, Time now) {
  const Vote vote = admitted(said);
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

control::Pulsed Succession::pulsed(std::string_view job, Time now) {
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

void Succession::confirm(SessionId session, std::uint64_t stamp, Time now) {
  const auto entry = voters_.find(session);
  if (entry == voters_.end()) return;
  const auto job = jobs_.find(entry->second.job);
  if (job != jobs_.end()) job->second.confirm(entry->second.voter, time_of(stamp, now));
}

void Succession::goodbye(SessionId session, Time now) {
  const auto entry = voters_.find(session);
  if (entry == voters_.end()) return;
  const auto job = jobs_.find(entry->second.job);
  if (job == jobs_.end()) return;
  const Vote* const vote = job->second.find(entry->second.voter);
  if (options_.is_successor && vote != nullptr) note_death(generation_, job->first, *vote, now);
  job->second.gone(entry->second.voter);
}

void Succession::ended(SessionId session, Time now) {
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

Time Succession::opens_at(std::string_view job) const {
  const auto sought = sought_.find(job);
  return sought == sought_.end() ? listens_until_ : std::max(listens_until_, sought->second);
}

bool Succession::lets_in(const control::OpenSuccessor& request, Time now) const {
  if (options_.is_successor || request.job.empty()) return true;
  const bool brings_a_round =
      counts(request.vote) && !request.vote.latest().electorate.is_founding();
  return brings_a_round || now >= opens_at(request.job);
}

void Succession::on_time(Time now) {
  std::size_t over = std::erase_if(sought_, [now](const auto& each) { return now >= each.second; });
  over += forget_deserted(now);
  if (options_.is_successor) {
    if (over == 0) return;
    call_those_who_wait(now);
    return begin_if_possible(now);
  }
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    if (now < opens_at(each->second.job)) {
      ++each;
      continue;
    }
    const Waiting waiting = std::move(each->second);
    each = waiting_.erase(each);
    waiting.applicant->on_call(pulsed(waiting.job, now));
    (void)waiting.applicant->on_welcome(now);
  }
}

std::optional<Time> Succession::next_deadline() const {
  EarliestDeadline next;
  for (const auto& [job, until] : sought_)
    next.include(until);
  if (!deserted_.empty()) next.include(looked_away_ ? look_at_ : forget_due_);
  if (!options_.is_successor)
    for (const auto& [number, waiting] : waiting_)
      next.include(opens_at(waiting.job));
  return next.time();
}

// A job looks for its store. Its nodes may meet at this very store in the end, and newcomers must
// not have begun the job anew here by then. If this store knows the round of the job, that does not
// matter.
void Succession::hear_that_it_looks(const control::Find& request, Time now) {
  const auto job = jobs_.find(request.job);
  const bool knows_it = job != jobs_.end() && !job->second.is_deserted();
  const bool begins = options_.is_successor ? options_.is_founding && !is_serving_
                                            : request.generation >= generation_ && !knows_it;
  if (!begins) return;
  const auto known = elsewhere_.find(request.job);
  const bool is_it = known != elsewhere_.end() && known->second.generation <= request.generation;
  if (is_it && known->second.until) elsewhere_.erase(known);
  std::erase_if(sought_, [now](const auto& each) { return now >= each.second; });
  if (sought_.size() >= kMostJobs) return;
  sought_.insert_or_assign(std::string(request.job), now + kSought);
}

// Who told of the job's rounds may come again, with others.
void Succession::note_desertion(const std::string& job, Time now) {
  const bool begins = !options_.is_successor || (options_.is_founding && !is_serving_);
  if (!begins || !jobs_.find(job)->second.is_deserted()) return;
  if (deserted_.empty()) {
    look_at_ = now;
    forget_due_ = Time::max();
  }
  deserted_.emplace(job, now);
  forget_due_ = std::min(forget_due_, forgets_at(job, now));
  if (!options_.is_successor && table_.find(job + "round") != nullptr) kept_.insert(job);
}

// With each vote: there is rarely such a job.
void Succession::note_return(const Electorate& electorate, const std::string& job) {
  if (deserted_.empty() || electorate.is_deserted()) return;
  deserted_.erase(job);
  kept_.erase(job);
}

// Asked in each turn of the server's loop: so not all of them are looked at each time.
std::size_t Succession::forget_deserted(Time now) {
  looked_away_ = now < look_at_ && now < forget_due_;
  if (looked_away_ || deserted_.empty()) return 0;
  const std::size_t forgotten =
      std::erase_if(deserted_, [this, now](auto& each) { return forgets(each.first, now); });
  look_at_ = now + kLookPause;
  forget_due_ = Time::max();
  for (const auto& [job, since] : deserted_)
    forget_due_ = std::min(forget_due_, forgets_at(job, since));
  return forgotten;
}

Time Succession::forgets_at(const std::string& job, Time since) const {
  const auto known = jobs_.find(job);
  const bool was_here = known != jobs_.end() && known->second.had_majority();
  const auto sought = sought_.find(job);
  const Time pause = since + (was_here ? kAbandoned : kSought);
  return sought == sought_.end() ? pause : std::max(pause, sought->second);
}

// Nobody has come again, and nobody is looking for the store: whoever is here may begin the job
// anew, as if this store had only just begun. Founders who were called before are called again,
// with a higher generation: they may have told another store of this one. True: there is no more to
// wait for.
bool Succession::forgets(const std::string& job, Time now) {
  const auto known = jobs_.find(job);
  const bool is_over = known == jobs_.end() || !known->second.is_deserted();
  const bool deleted = kept_.contains(job) && table_.find(job + "round") == nullptr;
  if (!is_over && !deleted && now < forgets_at(job, deserted_.find(job)->second)) return false;
  kept_.erase(job);
  if (is_over) return true;
  if (!options_.is_successor) {
    jobs_.erase(known);
    return true;
  }
  if (!options_.is_founding || is_serving_) return true;
  known->second.forget_rounds();
  known->second.unconfirm();
  is_calling_ = false;
  highest_ = std::max(highest_, generation_);
  for (auto& [number, waiting] : waiting_)
    waiting.call = 0;
  return true;
}

bool Succession::is_sought(std::string_view job, Time now) const {
  const auto sought = sought_.find(job);
  return sought != sought_.end() && now < sought->second;
}

// Founders may have forgotten the job, or never have heard of it, so they must not begin it while
// it looks for its store. Once an agent has come that knows a round of it, a majority of that round
// decides, not the founders: the job may have met here.
bool Succession::may_begin(Time now) const {
  if (is_serving_ || !job_) return false;
  if (!options_.is_founding || !is_sought(*job_, now)) return true;
  const auto known = jobs_.find(*job_);
  if (known == jobs_.end()) return false;
  const Place& settled = known->second.settled();
  return settled.nodes > 0 && !settled.electorate.is_founding();
}

// ---- who waits ----

VoterId Succession::apply(Applicant& applicant, const control::OpenSuccessor& application,
                          Time now) {
  const VoterId number = ++last_voter_;
  Waiting& waiting = waiting_[number];
  waiting.applicant = &applicant;
  waiting.job = application.job;
  if (is_serving_) return number;
  const Vote vote = admitted(application.vote);
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
void Succession::call_those_who_wait(Time now) {
  if (!may_begin(now) || elsewhere(*job_, now).generation > 0) return;
  Electorate& electorate = *electorate_of(*job_);
  if (!is_calling_ && !electorate.has_majority()) return;
  is_calling_ = true;
  if (generation_ <= highest_) {
    generation_ = highest_ + 1;
    electorate.unconfirm();
    for (auto& [number, waiting] : waiting_)
      waiting.call = 0;
  }
  last_call_ = std::max(last_call_ + 1, stamp_of(now));
  control::Pulsed call;
  call.generation = generation_;
  call.settled = electorate.settled();
  call.stamp = last_call_;
  for (auto& [number, waiting] : waiting_) {
    if (!waiting.votes || waiting.call != 0) continue;
    waiting.call = last_call_;
    waiting.applicant->on_call(call);
  }
}

void Succession::confirm_call(VoterId applicant, std::uint64_t stamp, Time now) {
  const auto waiting = waiting_.find(applicant);
  if (waiting == waiting_.end() || stamp == 0 || waiting->second.call != stamp) return;
  electorate_of(*job_)->confirm(applicant, time_of(stamp, now));
  begin_if_possible(now);
}

void Succession::begin_if_possible(Time now) {
  if (!may_begin(now) || !is_calling_ || !electorate_of(*job_)->quorum(now)) return;
  is_serving_ = true;
  write_silence(now);
  for (const auto& [number, waiting] : std::exchange(waiting_, {})) {
    // Who has no vote was not called, and has to know whose generation this is as well.
    if (!waiting.votes && !waiting.job.empty())
      waiting.applicant->on_call(pulsed(waiting.job, now));
    const SessionId session = waiting.applicant->on_welcome(now);
    if (session != kNoSession && waiting.votes) voters_[session] = {*job_, number};
  }
}

void Succession::withdraw(VoterId applicant, Time now) {
  const auto waiting = waiting_.find(applicant);
  if (waiting == waiting_.end()) return;
  const bool voted = waiting->second.votes;
  waiting_.erase(waiting);
  if (!voted) return;
  electorate_of(*job_)->leave(applicant);
  note_desertion(*job_, now);
}

// ---- the dead ----

// It may have waited in the kernel while another store served, since before that one was lost. The
// dead one was dead by then, and has confirmed nothing since.
void Succession::gone(const control::Gone& proof, Time came, Time now) {
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

void Succession::note_death(std::uint64_t generation, std::string_view job, const Vote& vote,
                            Time came) {
  write_gone(job, vote);
  if (!options_.is_successor) return;
  const auto is_it = [&](const Deaths::Death& each) { return each.vote == vote; };
  if (std::any_of(deaths_.all.begin(), deaths_.all.end(), is_it)) return;
  if (deaths_.all.size() == kMostDeaths) deaths_.all.pop_front();
  deaths_.all.push_back({generation, vote, came});
}

void Succession::recall(const Deaths& deaths, Time now) {
  if (!job_) return;
  for (const auto& [generation, vote, came] : deaths.all)
    gone({generation, *job_, vote}, came, now);
}

// For how long at least no other store can have been sure of a majority: who has confirmed the call
// here has confirmed nothing to another one since, nor has who is gone. Of fewer than a majority
// nothing follows.
void Succession::write_silence(Time now) {
  if (options_.quorum > 0) return;
  Time heard = last_proof_;
  for (const auto& [number, waiting] : waiting_)
    if (waiting.votes) heard = std::max(heard, waiting.heard);
  const auto silence = std::chrono::duration_cast<Milliseconds>(now - heard);
  (void)table_.put(*job_ + "silence", std::to_string(silence.count()));
  table_.publish();
}

// ---- where the store is ----

void Succession::hear(const control::Find& request, Time now) {
  if (request.port == 0 && request.generation > 0) return hear_that_it_looks(request, now);
  if (request.generation <= served_generation() || request.port == 0) return;
  if (numeric_addresses(request.host).empty()) return;
  auto found = elsewhere_.find(request.job);
  if (found == elsewhere_.end()) {
    if (elsewhere_.size() >= kMostJobs)
      std::erase_if(elsewhere_, [now](const auto& each) {
        return each.second.until && now >= *each.second.until;
      });
    if (elsewhere_.size() >= kMostJobs) return;
    found = elsewhere_.emplace(std::string(request.job), Pointer{}).first;
  }
  Pointer& pointer = found->second;
  const bool old = pointer.until && now >= *pointer.until;
  const bool own = !pointer.until && pointer.generation >= request.generation;
  if (own || (!old && pointer.generation > request.generation)) return;
  pointer = {request.generation, {std::string(request.host), request.port}, now + kHearsay};
  tell_those_who_wait(request.job, now);
}

void Succession::tell_those_who_wait(std::string_view job, Time now) {
  const control::Moved moved = elsewhere(job, now);
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    const auto [number, waiting] = *each;
    if (waiting.job != job) {
      ++each;
      continue;
    }
    each = waiting_.erase(each);
    if (waiting.votes) {
      electorate_of(job)->leave(number);
      note_desertion(waiting.job, now);
    }
    waiting.applicant->on_moved(moved);
  }
}

// What it has heard of deaths stays true. The job has begun, so its founders count no more: they
// may have forgotten that.
bool Succession::point_to(std::uint64_t generation, const Endpoint& store, Time now) {
  if (!job_ || (is_serving_ && (options_.is_successor || generation <= generation_))) return false;
  if (is_serving_) {
    elsewhere_[*job_] = {generation, store, std::nullopt};
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
    elsewhere_.erase(*job_);
    call_those_who_wait(now);
  } else {
    elsewhere_[*job_] = {generation, store, std::nullopt};
    tell_those_who_wait(*job_, now);
  }
  return true;
}

control::Moved Succession::elsewhere(std::string_view job, Time now) const {
  const auto found = elsewhere_.find(job);
  if (found == elsewhere_.end()) return {};
  const Pointer& pointer = found->second;
  if (pointer.generation <= served_generation() || (pointer.until && now >= *pointer.until))
    return {};
  return {pointer.generation, pointer.place.host, pointer.place.port};
}

control::Moved Succession::find(std::string_view job, Time now) const {
  const control::Moved moved = elsewhere(job, now);
  if (moved.generation > 0) return moved;
  if (is_serving_) return {generation_, {}, 0};
  const bool is_of_a_job = options_.is_successor && !options_.is_founding;
  constexpr std::uint16_t kNoPlace = 1;
  if (is_of_a_job || is_sought(job, now))
    return {std::max<std::uint64_t>(highest_, 1), {}, kNoPlace};
  return {};
}

control::Moved Succession::signpost(Time now) const {
  if (table_.size() > 0) return {};
  for (const auto& [job, pointer] : elsewhere_)
    if (const control::Moved moved = elsewhere(job, now); moved.generation > 0) return moved;
  return {};
}

void Succession::write_gone(std::string_view job, const Vote& vote) {
  const auto write = [&](const Place& place) {
    if (place.rank == kNoRank || place.electorate.is_founding()) return;
    const std::string key = std::string(job) + "gone/" + std::to_string(place.electorate.era) +
                            "." + std::to_string(place.electorate.round) + "." +
                            std::to_string(place.rank);
    (void)table_.put(key, "");
  };
  if (vote.settled.nodes > 0) write(vote.settled);
  std::for_each(vote.later.begin(), vote.later.end(), write);
  table_.publish();
}

}  // namespace drun::store
