#include "store/server/control_handler.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "store/protocol/relay_frames.hpp"
#include "store/server/peer.hpp"

namespace drun::store {
namespace {

using control::ErrorCode;

constexpr std::uint16_t kMovedVersion = 3;
constexpr std::string_view kOtherJob = "it serves another job";

std::string over_limit(std::string_view what, std::size_t limit) {
  return std::string(what) + " (the store takes " + std::to_string(limit) + ")";
}

// The last write to each key of a transaction, in their order.
std::vector<const control::Write*> effective_writes(const std::vector<control::Write>& writes) {
  std::vector<const control::Write*> effective;
  effective.reserve(writes.size());
  std::unordered_map<std::string_view, std::size_t, KeyHash> places;
  for (const control::Write& write : writes) {
    if (writes.size() > 1) {
      const auto [it, is_new] = places.try_emplace(write.key, effective.size());
      if (!is_new) {
        effective[it->second] = &write;
        continue;
      }
    }
    effective.push_back(&write);
  }
  return effective;
}

// Whether there is room for the writes, if each key were new: in all, and for each job.
bool has_room(Budget& budget, const std::vector<const control::Write*>& writes) {
  std::size_t all = 0;
  std::map<std::string_view, std::size_t> by_job;
  for (const control::Write* write : writes) {
    if (!write->value) continue;
    const std::size_t bytes = write->key.size() + write->value->size() + KeyTable::kOverheadBytes;
    all += bytes;
    if (budget.shares().are_limited()) by_job[job_of(write->key)] += bytes;
  }
  return budget.fits(all) && std::ranges::all_of(by_job, [&budget](const auto& job) {
           return budget.fits_job(job.first, job.second);
         });
}

}  // namespace

std::size_t longest_frame(const Limits& limits) {
  return std::min<std::size_t>(limits.request_bytes, std::numeric_limits<std::uint32_t>::max());
}

control::Welcome welcome(const Limits& limits, std::uint16_t version) {
  const auto clamp = [](std::size_t value) {
    return static_cast<std::uint32_t>(
        std::min<std::size_t>(value, std::numeric_limits<std::uint32_t>::max()));
  };
  return {version, clamp(longest_frame(limits)), clamp(limits.key_bytes), limits.value_bytes,
          clamp(limits.keys_per_request)};
}

void encode_moved(std::string& out, std::uint64_t request, const control::Moved& moved,
                  std::uint16_t version) {
  if (version >= kMovedVersion)
    control::encode(out, request, control::Reply(moved));
  else
    control::encode(out, request,
                    control::Error{ErrorCode::WrongStore, "the job's store is elsewhere"});
}

SessionId open_session(PeerContext& context, Peer& peer, const control::OpenSession& asked,
                       std::string_view job, std::uint64_t request, Time now, std::string& out) {
  const Sessions::Record* opened =
      context.sessions.open(peer, Milliseconds(asked.ttl_ms), Milliseconds(asked.grace_ms),
                            context.new_token(), now, job);
  if (opened == nullptr) {
    control::encode(out, request, control::Error{ErrorCode::Limit, context.budget.refusal()});
    return kNoSession;
  }
  control::encode(
      out, request,
      control::Session{opened->id, opened->token, static_cast<std::uint32_t>(opened->ttl.count()),
                       static_cast<std::uint32_t>(opened->grace.count())});
  return opened->id;
}

bool takes_much(PeerContext& context, SessionId session, const control::Frame& frame) {
  if (frame.body.size() > Turn::kMuch) return true;
  control::Request& request = context.control_request;
  const auto decoded = control::decode_request(frame, context.limits.keys_per_request, request);
  if (decoded != control::DecodeStatus::Ok) return false;
  const KeyTable& table = context.control_table;
  const auto length = [&](std::string_view key) {
    const std::string* value = table.find(key);
    return value ? value->size() : 0;
  };
  if (const auto* watch = std::get_if<control::Watch>(&request))
    return watch->prefix ? table.lists_more_than(Turn::kMuch, watch->key, Turn::kBytesOfAKey)
                         : length(watch->key) > Turn::kMuch;
  if (const auto* words = std::get_if<control::LastWords>(&request))
    return table.lists_more_than(Turn::kMuch, words->prefix, Turn::kBytesOfAKey);
  if (std::holds_alternative<control::Goodbye>(request))
    return table.erasing_takes_more_than(Turn::kMuch, session);
  const auto* transaction = std::get_if<control::Transaction>(&request);
  if (transaction == nullptr) return false;
  std::size_t shown = 0;  // if it is refused
  for (const control::Guard& guard : transaction->guards)
    shown += length(guard.key);
  std::size_t told = 0;  // if it is not
  for (auto write = transaction->writes.begin();
       write != transaction->writes.end() && told <= Turn::kMuch; ++write)
    told += table.bytes_to_tell(write->key, write->value ? write->value->size() : 0);
  return std::max(shown, told) > Turn::kMuch;
}

std::string_view encode_changes(std::uint64_t watch, Publication& publication) {
  if (publication.encoded != nullptr) {
    control::set_request(*publication.encoded, watch);
    return *publication.encoded;
  }
  control::Changes message;
  message.revision = publication.revision;
  message.changes.reserve(publication.changes.size());
  for (const Change& change : publication.changes)
    message.changes.push_back({change.key, change.value});
  publication.encoded = std::make_shared<std::string>();
  control::encode(*publication.encoded, watch, control::Reply(std::move(message)));
  return *publication.encoded;
}

bool ControlHandler::apply(const control::Frame& frame) {
  request_ = frame.request;
  control::Request& request = context_.control_request;
  const control::DecodeStatus decoded =
      control::decode_request(frame, context_.limits.keys_per_request, request);
  if (decoded == control::DecodeStatus::Malformed) {
    fail(ErrorCode::Malformed, "malformed body");
    return false;
  }
  if (!check_id()) return true;
  if (decoded == control::DecodeStatus::UnknownType) {
    const JobScope* scope = peer_.scope();
    if (scope != nullptr && frame.type == static_cast<std::uint8_t>(relay_frames::Type::Begin))
      fail(ErrorCode::OtherJob, scope->refusal());
    else
      fail(ErrorCode::UnknownRequest, "unknown request type " + std::to_string(frame.type));
    return true;
  }
  if (decoded == control::DecodeStatus::TooManyKeys) {
    fail(ErrorCode::Limit, over_limit("too many keys", context_.limits.keys_per_request));
    return true;
  }
  if (session_ != kNoSession) context_.sessions.renew(session_, now_);
  if (const JobScope* scope = peer_.scope(); scope != nullptr && !scope->narrow(request)) {
    fail(ErrorCode::OtherJob, scope->refusal());
    return true;
  }
  std::visit(*this, request);
  return true;
}

void ControlHandler::reply(const control::Reply& message) {
  control::encode(out_, request_, message);
}

void ControlHandler::fail(ErrorCode code, std::string_view text) {
  reply(control::Error{code, text});
}

bool ControlHandler::check_id() {
  if (request_ != 0 && !KeyTable::is_watching(peer_, request_)) return true;
  fail(ErrorCode::RequestIdInUse, "request id is 0 or in use");
  return false;
}

bool ControlHandler::check_key(std::string_view key) {
  if (key.size() <= context_.limits.key_bytes) return true;
  fail(ErrorCode::Limit, over_limit("key too long", context_.limits.key_bytes));
  return false;
}

bool ControlHandler::check_reply(std::size_t bytes) {
  if (bytes <= context_.limits.unread_bytes) return true;
  fail(ErrorCode::Limit, over_limit("reply too long", context_.limits.unread_bytes));
  return false;
}

// ---- sessions ----

bool ControlHandler::may_open() {
  if (session_ == kNoSession && !peer_.is_waiting()) return true;
  fail(ErrorCode::HasSession, "session open already");
  return false;
}

void ControlHandler::operator()(const control::OpenSession& request) {
  if (!may_open()) return;
  if (!context_.succession.is_serving())
    return peer_.wait(request_, {request.ttl_ms, request.grace_ms, 0, {}, {}}, now_);
  const JobScope* scope = peer_.scope();
  const std::string_view job = scope ? std::string_view(scope->job()) : std::string_view();
  session_ = open_session(context_, peer_, request, job, request_, now_, out_);
}

void ControlHandler::operator()(const control::OpenSuccessor& request) {
  if (!may_open() || !check_key(request.job)) return;
  StoreSuccession& succession = context_.succession;
  if (succession.is_older_than(request.generation))
    return fail(ErrorCode::WrongStore, "the job has a newer store");
  if (!succession.serves(request.job)) return fail(ErrorCode::WrongStore, kOtherJob);
  if (!is_right_store(request.job)) return;
  if (!succession.is_serving() || !succession.lets_in(request, now_))
    return peer_.wait(request_, request, now_);
  std::string session;
  session_ = open_session(context_, peer_, {request.ttl_ms, request.grace_ms}, job_of(request.job),
                          request_, now_, session);
  if (session_ != kNoSession) {
    succession.vote(session_, request.job, request.vote, now_);
    reply(succession.pulsed(request.job, now_));
  }
  out_ += session;
}

void ControlHandler::operator()(const control::ResumeSession& request) {
  if (session_ != kNoSession && session_ != request.session)
    return fail(ErrorCode::HasSession, "session open already");
  if (!context_.sessions.resume(peer_, request.session, request.token, now_))
    return reply(control::SessionEnded{control::EndReason::Unknown});
  session_ = request.session;
  reply(control::Done{});
}

void ControlHandler::operator()(const control::Heartbeat&) {
  if (session_ == kNoSession) return fail(ErrorCode::NoSession, "no session");
  reply(control::Done{});
}

void ControlHandler::operator()(const control::Goodbye&) {
  if (session_ == kNoSession) return fail(ErrorCode::NoSession, "no session");
  context_.succession.goodbye(session_, now_);
  context_.sessions.close(std::exchange(session_, kNoSession));
  reply(control::Done{});
}

// ---- votes ----

void ControlHandler::operator()(const control::Pulse& request) {
  if (session_ == kNoSession) return fail(ErrorCode::NoSession, "no session");
  if (!check_key(request.job)) return;
  if (peer_.version() >= kMovedVersion && !is_right_store(request.job)) return;
  context_.succession.vote(session_, request.job, request.vote, now_);
  reply(context_.succession.pulsed(request.job, now_));
}

void ControlHandler::operator()(const control::Confirm& request) {
  if (session_ != kNoSession)
    context_.succession.confirm(session_, request.stamp, now_);
  else if (peer_.is_waiting())
    peer_.confirm(request.stamp, now_);
}

void ControlHandler::operator()(const control::Gone& request) {
  if (!check_key(request.job)) return;
  context_.succession.gone(request, now_ - peer_.idle(), now_);
  reply(control::Done{});
}

bool ControlHandler::is_right_store(std::string_view job) {
  const control::Moved moved = context_.succession.elsewhere(job, now_);
  if (moved.generation == 0) return true;
  encode_moved(out_, request_, moved, peer_.version());
  return false;
}

void ControlHandler::operator()(const control::Find& request) {
  if (!check_key(request.job)) return;
  StoreSuccession& succession = context_.succession;
  if (request.job.empty()) return reply(succession.signpost(now_));
  if (!succession.serves(request.job)) return fail(ErrorCode::WrongStore, kOtherJob);
  succession.hear(request, now_);
  if (succession.elsewhere(request.job, now_).generation == 0 && succession.disagrees(request))
    return fail(ErrorCode::WrongStore, control::kOtherEndpoints);
  reply(succession.find(request.job, now_));
}

// ---- transactions ----

bool ControlHandler::check_limits(const control::Transaction& request) {
  for (const control::Guard& guard : request.guards)
    if (!check_key(guard.key)) return false;
  for (const control::Write& write : request.writes) {
    if (!check_key(write.key)) return false;
    if (write.value && write.value->size() > context_.limits.value_bytes) {
      fail(ErrorCode::Limit, over_limit("value too long", context_.limits.value_bytes));
      return false;
    }
    if (write.ephemeral && session_ == kNoSession) {
      fail(ErrorCode::NoSession, "an ephemeral key needs a session");
      return false;
    }
  }
  return true;
}

bool ControlHandler::guards_hold(const control::Transaction& request) const {
  return std::all_of(request.guards.begin(), request.guards.end(),
                     [this](const control::Guard& guard) {
                       const std::string* present = context_.control_table.find(guard.key);
                       if (present == nullptr || !guard.expected)
                         return present == nullptr && !guard.expected;
                       return *present == *guard.expected;
                     });
}

void ControlHandler::refuse(const control::Transaction& request) {
  control::Refused refused;
  refused.revision = context_.control_table.revision();
  std::size_t bytes = 0;
  for (const control::Guard& guard : request.guards) {
    const std::string* present = context_.control_table.find(guard.key);
    bytes += present ? present->size() : 0;
    refused.values.push_back(present ? control::OptionalBytes(*present) : std::nullopt);
  }
  if (check_reply(bytes)) reply(refused);
}

void ControlHandler::operator()(const control::Transaction& request) {
  if (!check_limits(request)) return;
  if (!guards_hold(request)) return refuse(request);
  KeyTable& table = context_.control_table;
  const std::vector<const control::Write*> writes = effective_writes(request.writes);
  if (!has_room(context_.budget, writes)) return fail(ErrorCode::Limit, table.refusal());
  for (const control::Write* write : writes) {
    if (write->value)
      (void)table.put(write->key, *write->value, write->ephemeral ? session_ : kNoSession);
    else
      table.erase(write->key);
  }
  table.publish();
  reply(control::Committed{table.revision()});
}

// ---- watches ----

bool ControlHandler::reply_snapshot(const control::Watch& request) {
  constexpr std::size_t kEntryBytes = 9;  // two lengths, and that there is a value
  KeyTable& table = context_.control_table;
  control::Snapshot snapshot;
  snapshot.revision = table.revision();
  std::size_t bytes = 0;
  const auto take = [&](const Change& entry) {
    bytes += kEntryBytes + entry.key.size() + entry.value->size();
    if (bytes > context_.limits.unread_bytes) return false;
    snapshot.entries.push_back({entry.key, entry.value});
    return true;
  };
  if (request.prefix)
    table.list(request.key, take);
  else if (const std::string* value = table.find(request.key))
    (void)take({request.key, *value});
  if (!check_reply(bytes)) {
    context_.turn.note(bytes);
    return false;
  }
  reply(std::move(snapshot));
  return true;
}

void ControlHandler::operator()(const control::Watch& request) {
  if (!check_key(request.key)) return;
  const std::size_t most = context_.limits.watches_per_connection;
  if (KeyTable::watch_count(peer_) >= most)
    return fail(ErrorCode::Limit, over_limit("too many watches", most));
  KeyTable& table = context_.control_table;
  if (!table.watch(peer_, request_, request.key, request.prefix))
    return fail(ErrorCode::Limit, table.refusal());
  if (!reply_snapshot(request)) table.unwatch(peer_, request_);
}

void ControlHandler::operator()(const control::Unwatch& request) {
  context_.control_table.unwatch(peer_, request.watch);
  reply(control::Done{});
}

void ControlHandler::operator()(const control::LastWords& request) {
  constexpr std::size_t kEntryBytes = 12;  // a length and two numbers
  if (!check_key(request.prefix)) return;
  const auto milliseconds = [](auto duration) {
    return static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(std::chrono::duration_cast<Milliseconds>(duration).count(), 0,
                                 std::numeric_limits<std::uint32_t>::max()));
  };
  KeyTable& table = context_.control_table;
  control::Heard heard;
  std::size_t bytes = 0;
  table.list(request.prefix, [&](const Change& entry) {
    const auto word = context_.sessions.last_word(table.owner_of(entry.key));
    if (!word) return true;
    bytes += kEntryBytes + entry.key.size();
    if (bytes > context_.limits.unread_bytes) return false;
    heard.entries.push_back({entry.key, milliseconds(now_ - word->heard), milliseconds(word->ttl)});
    return true;
  });
  context_.turn.note(bytes);
  if (check_reply(bytes)) reply(std::move(heard));
}

// ---- the server itself ----

void ControlHandler::operator()(const control::Stats&) {
  const KeyTable& job = context_.control_table;
  const KeyTable& workers = context_.tcpstore_table;
  const KeyTable::Counts counts = job.counts();
  control::Counters reply_message;
  reply_message.counters = {{"keys", job.size()},
                            {"queues", counts.queues},
                            {"waits", counts.waits},
                            {"watches", counts.watches},
                            {"revision", job.revision()},
                            {"sessions", context_.sessions.size()},
                            {"connections", context_.counters.connections},
                            {"accepted", context_.counters.accepted},
                            {"dropped", context_.counters.dropped},
                            {"requests", context_.counters.requests},
                            {"bytes", context_.budget.used()}};
  if (&workers != &job) reply_message.counters.emplace_back("worker_keys", workers.size());
  reply(std::move(reply_message));
}

}  // namespace drun::store
