#include "store/table/sessions.hpp"

#include <algorithm>

namespace drun::store {
namespace {

// In a time that does not depend on where the tokens differ.
bool same_token(const control::Token& a, const control::Token& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace

Sessions::~Sessions() {
  for (const auto& [id, session] : sessions_)
    give_back(session);
}

const Sessions::Record* Sessions::open(SessionHolder& holder, Milliseconds ttl, Milliseconds grace,
                                       const control::Token& token, Time now,
                                       std::string_view job) {
  if (!budget_.try_take_for(job, kOverheadBytes)) return nullptr;
  ++generation_;
  const SessionId id = ++last_id_;
  Session& session = sessions_[id];
  session.record.id = id;
  session.job = job;
  session.record.token = token;
  session.record.ttl = std::clamp(ttl, kShortestTtl, kLongestTtl);
  session.record.grace = std::clamp(grace, Milliseconds(0), kLongestGrace);
  session.holder = &holder;
  session.queued = Time::max();
  hear(session, now);
  return &session.record;
}

bool Sessions::resume(SessionHolder& holder, SessionId id, const control::Token& token, Time now) {
  const auto it = sessions_.find(id);
  if (it == sessions_.end() || !same_token(it->second.record.token, token)) return false;
  Session& session = it->second;
  // Not even when its time is up and expire() was not called yet.
  if (session.deadline <= now) return false;
  if (session.holder != nullptr && session.holder != &holder)
    session.holder->on_session_ended(control::EndReason::Resumed);
  session.holder = &holder;
  hear(session, now);
  return true;
}

void Sessions::renew(SessionId id, Time now) {
  Session& session = sessions_.at(id);
  session.heard = now;
  session.deadline = now + session.record.ttl;
}

std::optional<Sessions::Word> Sessions::last_word(SessionId id) const {
  const auto it = sessions_.find(id);
  if (it == sessions_.end()) return std::nullopt;
  return Word{it->second.heard, it->second.record.ttl};
}

void Sessions::detach(SessionId id, Time now) {
  Session& session = sessions_.at(id);
  session.holder = nullptr;
  set_deadline(session, std::min(session.deadline, now + session.record.grace));
}

void Sessions::close(SessionId id) {
  end(id);
}

void Sessions::end(SessionId id) {
  ++generation_;
  const auto it = sessions_.find(id);
  give_back(it->second);
  sessions_.erase(it);
  table_.erase_owned_by(id);
  on_end_(id);
}

void Sessions::give_back(const Session& session) {
  if (session.job)
    budget_.give_back_of(*session.job, kOverheadBytes);
  else
    budget_.give_back(kOverheadBytes);
}

void Sessions::hear(Session& session, Time now) {
  session.heard = now;
  set_deadline(session, now + session.record.ttl);
}

void Sessions::set_deadline(Session& session, Time deadline) {
  session.deadline = deadline;
  if (deadline < session.queued) queue(session);
}

void Sessions::queue(Session& session) {
  session.queued = session.deadline;
  deadlines_.emplace(session.deadline, session.record.id);
  forget_stale_deadlines();
}

// Sessions that were opened with a long time to live and closed at once leave their places behind.
void Sessions::forget_stale_deadlines() {
  if (deadlines_.size() <= 2 * sessions_.size() + 64) return;
  std::vector<Deadline> current;
  current.reserve(sessions_.size());
  for (const auto& [id, session] : sessions_)
    current.emplace_back(session.queued, id);
  deadlines_ = decltype(deadlines_)(std::greater<>(), std::move(current));
}

void Sessions::expire(Time now, std::uint64_t most) {
  const std::uint64_t before = table_.told();
  while (!deadlines_.empty() && deadlines_.top().first <= now && table_.told() - before <= most) {
    const auto [queued, id] = deadlines_.top();
    deadlines_.pop();
    const auto it = sessions_.find(id);
    if (it == sessions_.end() || it->second.queued != queued) continue;
    Session& session = it->second;
    if (session.deadline > now) {
      queue(session);
      continue;
    }
    if (session.holder != nullptr) session.holder->on_session_ended(control::EndReason::Silent);
    end(id);
  }
}

std::optional<Time> Sessions::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.top().first;
}

bool Sessions::restore(const Record& record, Time now) {
  if (!budget_.try_take(kOverheadBytes)) return false;
  last_id_ = std::max(last_id_, record.id);
  Session& session = sessions_[record.id];
  session.record = record;
  session.queued = Time::max();
  hear(session, now);
  return true;
}

}  // namespace drun::store
