// The control client's decisions inside a connection: session, watches, transactions, replies.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <variant>

#include "base/log.hpp"
#include "store/client/control_fsm.hpp"
#include "store/client/resolve.hpp"
#include "store/client/token_refusal.hpp"

namespace drun::store {
namespace {

using std::chrono::milliseconds;

constexpr std::uint16_t kSuccessorVersion = 2;
// How long after its first confirmation a client asks whether a majority has come with it, and the
// pause between two such questions: a store counts no more often.
constexpr milliseconds kCounts{300};
constexpr milliseconds kCountsAgain{100};

std::vector<ControlChange> copy(const std::vector<control::Entry>& entries) {
  std::vector<ControlChange> changes;
  changes.reserve(entries.size());
  for (const control::Entry& entry : entries) {
    changes.push_back({std::string(entry.key), {}});
    if (entry.value) changes.back().value.emplace(*entry.value);
  }
  return changes;
}

control::OptionalBytes view(const std::optional<std::string>& value) {
  return value ? control::OptionalBytes(*value) : std::nullopt;
}

control::Transaction encode(const ControlTransaction& transaction) {
  control::Transaction message;
  for (const ControlGuard& guard : transaction.guards) {
    message.guards.push_back({guard.key, view(guard.expected)});
  }
  for (const ControlWrite& write : transaction.writes) {
    message.writes.push_back({write.key, view(write.value), write.ephemeral});
  }
  return message;
}

}  // namespace

void ControlFsm::send_open_session(Time now) {
  session_asked_ = now;
  const auto whole = [](milliseconds time) {  // the server has bounds of its own
    constexpr milliseconds::rep kMost = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::clamp<milliseconds::rep>(time.count(), 0, kMost));
  };
  const std::uint32_t ttl = whole(options_.time_to_live);
  const std::uint32_t grace = whole(options_.grace.value_or(options_.time_to_live));
  const auto silent = std::chrono::duration_cast<milliseconds>(now - confirmed_.value_or(now));
  Vote vote = voter_.is_lost() ? Vote{} : voter_.vote();
  if (!founds_ && vote.latest().electorate.is_founding()) vote = {};
  if (!options_.job.empty() && (has_moved_ || version_ >= kSuccessorVersion))
    send(control::OpenSuccessor{ttl, grace, least_generation(), options_.job, vote, whole(silent)});
  else
    send(control::OpenSession{ttl, grace});
}

// With more places than a vote can have, the store believes the last one that it got.
void ControlFsm::send_heartbeat(Time now) {
  const milliseconds interval = heartbeat_interval();
  if (votes()) {
    const std::uint64_t request =
        send(control::Pulse{options_.job, voter_.is_lost() ? Vote{} : voter_.vote()});
    pulses_.emplace(request, now);
    next_heartbeat_ = now + interval / 2;
    // Until a majority has the same vote, workers of a round with new nodes wait for that word. The
    // others have theirs in a moment, or must come first.
    if (!voter_.vote().later.empty()) {
      next_heartbeat_ = std::min(next_heartbeat_, now + unsettled_pause_);
      unsettled_pause_ = std::min(2 * unsettled_pause_, interval);
    }
  } else {
    send(control::Heartbeat{});
    next_heartbeat_ = now + interval;
  }
  if (!heartbeat_sent_) heartbeat_sent_ = now;
}

// Never back, but for a newcomer at a store that serves: it has no part in the job yet, and that
// store none in the call of one that did not come to serve.
std::uint64_t ControlFsm::least_generation() const {
  const bool is_newcomer = options_.founding && visiting_ && !founds_ && !had_session_;
  return is_newcomer ? 0 : generation_;
}

bool ControlFsm::accept(const control::Pulsed& pulsed, Time now) {
  if (pulsed.generation < least_generation()) {
    lost("it is older than a store that this agent has been at", now);
    return false;
  }
  const bool is_called = pulsed.generation > generation_;
  generation_ = pulsed.generation;
  if (is_called) events_.emplace_back(ControlCall{generation_});
  // A store without a majority may have it from somebody who is lost to the job, and the job may
  // begin anew without that one.
  const bool has_majority = milliseconds(pulsed.age_ms) <= options_.majority_timeout;
  if (pulsed.settled.nodes > 0 && has_majority) {
    const bool waited = !voter_.vote().later.empty();
    voter_.settle(pulsed.settled);
    if (waited && voter_.vote().later.empty()) next_heartbeat_ = now + heartbeat_interval() / 2;
  }
  send(control::Confirm{pulsed.stamp});
  const bool silent = !confirmed_ || now - *confirmed_ > options_.majority_timeout / 2;
  if (!counts_from_ || silent) counts_from_ = now;
  confirmed_ = now;
  return true;
}

void ControlFsm::on_pulsed(std::uint64_t request, const control::Pulsed& pulsed, Time now) {
  const auto pulse = pulses_.find(request);
  if (pulse == pulses_.end()) return;
  const Time sent = pulse->second;
  pulses_.erase(pulse);
  if (!accept(pulsed, now)) return;
  // A store that was started again knows of no majority until one has come back to it. Until then
  // it renews nothing, and what was known before counts.
  const bool known = pulsed.age_ms != control::Pulsed::kNever;
  const milliseconds age = known ? milliseconds(pulsed.age_ms)
                                 : std::chrono::duration_cast<milliseconds>(now - majority_known_);
  if (age > options_.majority_timeout) {
    // It may have been this agent that was missing: it has just come, or was suspended.
    if (phase_ == Phase::Up && sent < *counts_from_ + kCounts) {
      next_heartbeat_ = std::min(next_heartbeat_, now + kCountsAgain);
      return;
    }
    ControlLink link{ControlState::Down, "most nodes of the job are not with " + store(), age};
    link.deserted = true;
    return strand(std::move(link));
  }
  if (!known) return;
  majority_known_ = std::max(majority_known_, sent - age);
  if (!voter_.is_lost()) renewed(sent - age);
}

// Never back: what has been at one store knows better than a store of a lower generation, and the
// one that it has lost is where it was.
void ControlFsm::on_moved(const control::Moved& moved, Time now) {
  const bool later = moved.generation > least_generation() ||
                     (!had_session_ && moved.generation > 0 && moved.generation == generation_);
  const Endpoint place{std::string(moved.host), moved.port};
  if (!later || moved.port == 0 || literal_addresses(place).empty()) {
    constexpr const char* kWhy = "it is not the job's store";
    if (!visiting_) return lost(kWhy, now);
    ControlLink link{ControlState::Down, "could not reach " + store() + ": " + kWhy};
    link.early = moved.generation > 0;
    return strand(std::move(link));
  }
  ControlLink link{ControlState::Down, "the job's store is not at " + to_string(options_.endpoint)};
  link.deserted = true;
  link.moved = place;
  strand(std::move(link));
}

void ControlFsm::send_watch(std::uint32_t name, Watch& watch) {
  watch.request = send(control::Watch{watch.key, watch.prefix});
  watch_of_request_[watch.request] = name;
}

void ControlFsm::send_commit(const Queued& queued) {
  const std::size_t before = output_.size();
  const std::uint64_t request = send(encode(queued.second));
  const std::size_t frame = output_.size() - before;
  if (frame - sizeof(std::uint32_t) > longest_frame_) {  // the store would close the connection
    output_.resize(before);
    --next_request_;
    events_.emplace_back(ControlCommit{
        queued.first, ControlOutcome::Rejected,
        "a transaction of " + std::to_string(frame) + " bytes is more than " + store() + " takes"});
    return;
  }
  commits_[request] = queued.first;
}

std::string ControlFsm::proof_of_death() const {
  std::string bytes;
  if (options_.job.empty() || voter_.is_lost()) return bytes;
  const Place& latest = voter_.vote().latest();
  if (latest.nodes == 0 || latest.electorate.is_founding()) return bytes;
  control::encode_opening(bytes);
  control::encode(bytes, 1,
                  control::Request(control::Gone{generation_, options_.job, voter_.vote()}));
  return bytes;
}

std::string ControlFsm::farewell(std::string_view sign) const {
  std::string bytes;
  if (!session_) return bytes;
  control::encode_opening(bytes);
  control::encode(bytes, 1, control::Request(*session_));
  if (!sign.empty())
    control::encode(bytes, 2, control::Request(control::Transaction{{}, {{sign, "", true}}}));
  control::encode(bytes, sign.empty() ? 2 : 3, control::Request(control::Goodbye{}));
  return bytes;
}

void ControlFsm::on_handshake_reply(const control::Reply& reply, Time now) {
  if (const auto* refused = std::get_if<control::VersionRefused>(&reply)) {
    const std::string why =
        " speaks the control protocol's versions " + std::to_string(refused->lowest) + " to " +
        std::to_string(refused->highest) + ", this program " +
        std::to_string(control::kLowestVersion) + " to " + std::to_string(control::kHighestVersion);
    if (visiting_) return lost("it" + why, now);
    return fail(store() + why);
  }
  if (const auto* welcome = std::get_if<control::Welcome>(&reply)) {
    longest_frame_ = welcome->frame_bytes;
    keys_per_request_ = welcome->keys_per_request;
    version_ = welcome->version;
    handshake_ = HandshakeStep::AwaitsSession;
    if (!session_ && asks_after_welcome()) send_open_session(now);
    return;
  }
  if (session_ && std::holds_alternative<control::Done>(reply)) {  // resumed
    session_ready(ControlState::Up, now);
    return;
  }
  if (session_ && std::holds_alternative<control::SessionEnded>(reply)) {
    // Too late to resume: the ephemeral keys are gone, and the caller has to write them again.
    session_.reset();
    send_open_session(now);
    return;
  }
  // It calls those who wait: a majority is there. It may call again.
  if (const auto* call = std::get_if<control::Pulsed>(&reply)) {
    (void)accept(*call, now);
    return;
  }
  if (const auto* moved = std::get_if<control::Moved>(&reply)) return on_moved(*moved, now);
  if (const auto* session = std::get_if<control::Session>(&reply)) {
    session_ = control::ResumeSession{session->session, session->token};
    time_to_live_ = milliseconds(session->ttl_ms);
    session_ready(had_session_ ? ControlState::NewSession : ControlState::Up, now);
    return;
  }
  if (const auto* error = std::get_if<control::Error>(&reply)) {
    if (const auto refusal = token_refusal(error->code))
      return on_refused(std::string(*refusal), now);
    if (error->code == control::ErrorCode::OtherJob)
      return on_refused(std::string(error->text), now);
    lost("it refuses a session: " + std::string(error->text), now);
    return;
  }
  lost("it sent an unexpected message", now);
}

void ControlFsm::session_ready(ControlState state, Time now) {
  std::string detail = had_session_ ? "reconnected to " + store() : "connected to " + store();
  if (visiting_)
    detail = "found " + store();
  else if (state == ControlState::NewSession)
    detail += ", which had ended the session";
  if (!had_session_) majority_known_ = now;
  if (state == ControlState::NewSession || visiting_) counts_from_.reset();
  had_session_ = true;
  visiting_ = false;
  handshakes_refused_ = 0;
  phase_ = Phase::Up;
  last_error_.clear();
  backoff_.reset();
  next_heartbeat_ = now + heartbeat_interval();
  heartbeat_sent_.reset();
  last_heard_ = now;
  ControlLink link{state, std::move(detail), {}, keys_per_request_};
  link.generation = generation_;
  events_.emplace_back(std::move(link));
  if (votes()) {
    send_heartbeat(now);
  } else {
    renewed_ = session_asked_;
    events_.emplace_back(ControlRenewal{renewed_, {}});
  }
  // Watches first: what the queued transactions change then comes as changes, after the snapshots.
  for (auto& [name, entry] : watches_)
    send_watch(name, entry);
  for (const Queued& queued : std::exchange(queued_, {}))
    send_commit(queued);
}

void ControlFsm::handle(std::uint64_t request, const control::Reply& reply, Time now) {
  if (const auto* snapshot = std::get_if<control::Snapshot>(&reply)) {
    const auto watch = watch_of_request_.find(request);
    if (watch != watch_of_request_.end()) {
      events_.emplace_back(ControlSnapshot{watch->second, copy(snapshot->entries)});
    }
  } else if (const auto* changes = std::get_if<control::Changes>(&reply)) {
    const auto watch = watch_of_request_.find(request);
    if (watch != watch_of_request_.end()) {
      events_.emplace_back(ControlChanges{watch->second, copy(changes->changes)});
    }
  } else if (std::holds_alternative<control::Committed>(reply)) {
    commit_answered(request, ControlOutcome::Committed);
  } else if (std::holds_alternative<control::Refused>(reply)) {
    commit_answered(request, ControlOutcome::Refused);
  } else if (const auto* error = std::get_if<control::Error>(&reply)) {
    answered_error(request, *error, now);
  } else if (const auto* pulsed = std::get_if<control::Pulsed>(&reply)) {
    on_pulsed(request, *pulsed, now);
  } else if (const auto* moved = std::get_if<control::Moved>(&reply)) {
    on_moved(*moved, now);
  } else if (std::holds_alternative<control::SessionEnded>(reply)) {
    session_.reset();
    lost("it ended the session", now);
  } else if (request == goodbye_request_ && phase_ == Phase::Closing) {
    over(ControlState::Closed, "left " + store());
  }
}

void ControlFsm::commit_answered(std::uint64_t request, ControlOutcome outcome,
                                 std::string detail) {
  const auto commit = commits_.find(request);
  if (commit == commits_.end()) return;
  events_.emplace_back(ControlCommit{commit->second, outcome, std::move(detail)});
  commits_.erase(commit);
}

// What asked for it hears of it, so nothing is logged here: it may ask again and again.
void ControlFsm::rejected(std::uint64_t request, std::string detail) {
  const auto watch = watch_of_request_.find(request);
  if (watch == watch_of_request_.end())
    return commit_answered(request, ControlOutcome::Rejected, std::move(detail));
  const std::uint32_t name = watch->second;
  watch_of_request_.erase(watch);
  watches_.erase(name);
  events_.emplace_back(ControlWatchRejected{name, std::move(detail)});
}

void ControlFsm::answered_error(std::uint64_t request, const control::Error& error, Time now) {
  switch (error.code) {
    case control::ErrorCode::Malformed:
    case control::ErrorCode::FrameTooLong:
      lost("it refuses a message: " + std::string(error.text), now);
      return;
    case control::ErrorCode::NoSession:
      if (phase_ == Phase::Closing) {  // it was over before the goodbye came
        over(ControlState::Closed, "left " + store());
        return;
      }
      session_.reset();
      lost("it ended the session", now);
      return;
    default:
      rejected(request, std::string(error.text));
  }
}

}  // namespace drun::store
