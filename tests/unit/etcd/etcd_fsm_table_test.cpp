// The machine of an agent's connection to etcd as a table: every state, every event.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/base64.hpp"
#include "etcd/etcd_fsm.hpp"
#include "support/event_table.hpp"

namespace drun::etcd {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using Time = EtcdFsm::Time;

enum class State { Idle, Connecting, Pausing, Up, Over };
constexpr const char* kStateNames[] = {"Idle", "Connecting", "Pausing", "Up", "Over"};

enum class Cluster { OfOne, OfTwo, WithUsers };

EtcdOptions options_of(Cluster cluster) {
  EtcdOptions result;
  result.cluster.endpoints.push_back({"e1", 2379});
  if (cluster == Cluster::OfTwo) result.cluster.endpoints.push_back({"e2", 2379});
  if (cluster == Cluster::WithUsers) result.cluster.user = "ada";
  result.job = "drun/j/";
  return result;
}

// What a call is for.
std::string name_of(const EtcdCall& call) {
  const auto body = json::parse(call.body);
  const std::string path = call.path.substr(std::string_view("/v3/").size());
  if (path == "kv/txn") {
    if (call.once) return "commit";
    return body["compare"][0].contains("version") ? "create fence" : "raise fence";
  }
  if (path == "kv/range") return body.contains("count_only") ? "look for fence" : "look";
  if (path == "watch") return "watch";
  if (path == "lease/grant") return body["TTL"] == "7200" ? "grant job" : "grant";
  if (path == "lease/keepalive") return body["ID"] == "5" ? "keep alive" : "keep job alive";
  return path == "lease/revoke" ? "end session" : path;
}

// A machine, its clock, and what has become of it.
class Machine {
 public:
  explicit Machine(Cluster cluster = Cluster::OfOne) : fsm(options_of(cluster), 0) {}

  EtcdFsm fsm;
  Time now{1h};

  [[nodiscard]] State state() const {
    if (const auto member = fsm.member())
      return up_on_ == member->number ? State::Up : State::Connecting;
    if (fsm.next_deadline()) return State::Pausing;
    return is_over_ ? State::Over : State::Idle;
  }
  // Of the call that was made last.
  void reply(const EtcdReply& reply) { fsm.on_reply(last_call_, reply, now); }
  void stream(const std::string& bytes) { fsm.on_stream(stream_, bytes, now); }
  // Pauses are spread at random, by less than what this is rounded up by.
  void at(std::chrono::milliseconds before_due) {
    const auto due = fsm.next_deadline();
    const auto tenth = std::chrono::ceil<std::chrono::duration<int, std::deci>>(due.value_or(now));
    if (due) now = std::max(now, before_due > 0ms ? *due - before_due : Time(tenth));
    if (!due) now += 1h;
    fsm.on_time(now);
  }

  std::string news() {
    std::string more;
    for (const EtcdCall& call : fsm.take_calls()) {
      last_call_ = call.id;
      if (call.streams) stream_ = call.id;
      more += ", " + name_of(call);
    }
    for (const auto call : fsm.take_canceled())
      more += call == stream_ ? ", cancels the watch" : ", cancels " + std::to_string(call);
    for (const auto& event : fsm.take_events())
      more += ", " + std::visit([this](const auto& each) { return this->describe(each); }, event);
    std::string text = kStateNames[static_cast<int>(state())];
    if (const auto member = fsm.member())
      text += " #" + std::to_string(member->number) + (member->endpoint > 0 ? " at e2" : "");
    if (!fsm.farewell().empty()) text += ", session";
    if (!fsm.token().empty()) text += ", token";
    const auto due = fsm.next_deadline();
    const bool same =
        text == told_ && due == told_due_ && fsm.last_error() == told_error_ && more.empty();
    told_ = text;
    told_due_ = due;
    if (due && state() == State::Pausing) {
      EXPECT_GE(*due, now);
      EXPECT_LE(*due, now + 100ms);
      text += *due == now ? ", due now" : ", due soon";
    } else if (due) {
      text += ", due in " + std::to_string((*due - now) / 1ms);
    }
    text += more;
    if (told_error_ != fsm.last_error()) {
      told_error_ = fsm.last_error();
      text += told_error_.empty() ? ", all is well" : ": " + told_error_;
    }
    return same ? "" : text;
  }

 private:
  std::string describe(const rendezvous::LinkEvent& event) {
    constexpr const char* kNames[] = {"Up", "Down", "NewSession", "Failed", "Closed"};
    using enum rendezvous::Link;
    if (event.link == Up || event.link == NewSession) up_on_ = fsm.member()->number;
    is_over_ = event.link == Failed || event.link == Closed;
    return kNames[static_cast<int>(event.link)] +
           (event.silent > 0ms ? " silent " + std::to_string(event.silent.count()) : "");
  }
  std::string describe(const rendezvous::Renewed& renewed) const {
    return "renewed " + std::to_string((now - renewed.sent) / 1ms) + " ago";
  }
  static std::string describe(const rendezvous::WatchSnapshot& snapshot) {
    return "snapshot " + std::to_string(snapshot.watch);
  }
  static std::string describe(const rendezvous::WatchChanges& changes) {
    return "changes " + std::to_string(changes.watch);
  }
  static std::string describe(const rendezvous::WatchRejected& rejected) {
    return "watch " + std::to_string(rejected.watch) + " rejected";
  }
  static std::string describe(const rendezvous::CommitResult& result) {
    constexpr const char* kNames[] = {"committed", "refused", "rejected", "unknown"};
    return "commit " + std::to_string(result.request) + " " +
           kNames[static_cast<int>(result.outcome)];
  }

  std::optional<std::uint64_t> up_on_;
  bool is_over_ = false;
  std::uint64_t last_call_ = 999, stream_ = 999;
  std::string told_ = "Idle";
  std::optional<Time> told_due_;
  std::string told_error_;
};

// ---- answers ----

EtcdReply answer(int status, const json& body) {
  EtcdReply reply;
  reply.status = status;
  reply.body = body.dump();
  return reply;
}

json header(int term) {
  return {{"revision", "8"}, {"raft_term", std::to_string(term)}};
}

EtcdReply alive(const char* seconds, int term = 2) {
  return answer(200, {{"result", {{"header", header(term)}, {"ID", "5"}, {"TTL", seconds}}}});
}

EtcdReply applied(int term = 2) {
  return answer(200, {{"header", header(term)}, {"succeeded", true}});
}

// The guards did not hold, and the fence is this; empty: it is not there.
EtcdReply fenced(const std::string& fence) {
  json range = json::object();
  if (!fence.empty()) range["kvs"] = json::array({{{"key", ""}, {"value", base64(fence)}}});
  return answer(200,
                {{"header", header(2)}, {"responses", json::array({{{"response_range", range}}})}});
}

EtcdReply counted(const char* count, int term = 2) {
  return answer(200, {{"header", header(term)}, {"count", count}});
}

EtcdReply refused(GrpcCode code, const char* text) {
  return answer(400, {{"message", text}, {"code", static_cast<int>(code)}});
}

EtcdReply silence(bool final, bool closed) {
  EtcdReply reply;
  reply.error = "no route";
  reply.final = final;
  reply.closed = closed;
  return reply;
}

test::TableEvents<Machine> all_events() {
  const auto commit = [](Machine& m) {
    rendezvous::Transaction transaction;
    transaction.writes.push_back({"a", "1", true});
    m.fsm.commit(9, std::move(transaction), m.now);
  };
  test::TableEvents<Machine> events = {
      {"open", [](Machine& m) { m.fsm.open(m.now); }},
      {"watch", [](Machine& m) { m.fsm.watch(3, "a/", true, m.now); }},
      {"unwatch", [](Machine& m) { m.fsm.unwatch(3); }},
      {"commit", commit},
      {"close", [](Machine& m) { m.fsm.close(m.now); }},
      {"unusable", [](Machine& m) { m.fsm.on_unusable("no curl"); }},
      {"unreachable", [](Machine& m) { m.fsm.on_unreachable("no name", false, m.now); }},
      {"unreachable for good", [](Machine& m) { m.fsm.on_unreachable("no key", true, m.now); }}};
  const std::vector<std::pair<const char*, EtcdReply>> replies = {
      {"token", answer(200, {{"header", header(2)}, {"token", "abc.7"}})},
      {"lease", answer(200, {{"header", header(2)}, {"ID", "5"}, {"TTL", "10"}})},
      {"alive", alive("10")},
      {"alive in term 3", alive("10", 3)},
      {"not alive", alive("0")},
      {"applied", applied()},
      {"applied in term 3", applied(3)},
      {"no fence", fenced("")},
      {"fence 1", fenced("00000000000000000001")},
      {"fence 7", fenced("00000000000000000007")},
      {"fence x", fenced("x")},
      {"there", counted("1")},
      {"there in term 3", counted("1", 3)},
      {"not there", counted("0")},
      {"NotFound", refused(GrpcCode::NotFound, "no lease")},
      {"FailedPrecondition", refused(GrpcCode::FailedPrecondition, "lease exists")},
      {"Unauthenticated", refused(GrpcCode::Unauthenticated, "old token")},
      {"PermissionDenied", refused(GrpcCode::PermissionDenied, "not allowed")},
      {"InvalidArgument", refused(GrpcCode::InvalidArgument, "too many")},
      {"ResourceExhausted", refused(GrpcCode::ResourceExhausted, "no space")},
      {"Unavailable", refused(static_cast<GrpcCode>(14), "no leader")},
      {"HTTP 404", answer(404, "no page")},
      {"HTTP 502", answer(502, "no member")},
      {"HTTP 200", answer(200, "hello")},
      {"no answer", silence(false, false)},
      {"no answer for good", silence(true, false)},
      {"closed", silence(false, true)}};
  for (const auto& [name, reply] : replies)
    events.emplace_back(name, [reply = reply](Machine& m) { m.reply(reply); });
  const std::vector<std::pair<const char*, std::string>> lines = {
      {"line: begun", R"({"result":{"header":{},"created":true}})"},
      {"line: changes",
       R"({"result":{"header":{},"events":[{"kv":{"key":"YQ==","value":"MQ==","mod_revision":"9"}}]}})"},
      {"line: canceled", R"({"result":{"header":{},"canceled":true,"cancel_reason":"why"}})"},
      {"line: compacted", R"({"result":{"header":{},"canceled":true,"compact_revision":"9"}})"},
      {"line: not allowed",
       R"({"result":{"header":{},"canceled":true,"cancel_reason":"permission denied"}})"},
      {"line: other", "hello"}};
  for (const auto& [name, line] : lines)
    events.emplace_back(name, [bytes = line + "\n"](Machine& m) { m.stream(bytes); });
  events.emplace_back("half a line", [](Machine& m) { m.stream("{\"result\":"); });
  events.emplace_back("early", [](Machine& m) { m.at(1ms); });
  events.emplace_back("due", [](Machine& m) { m.at(0ms); });
  return events;
}

// ---- the table ----

struct StateRow {
  State state;
  const char* what;  // the call that is answered, or what it is that is not there
  Cluster cluster;
  test::Way way;
  const char* does;
};

test::Way way_up(const test::Way& more = {}) {
  test::Way way = {"open", "lease", "lease", "applied"};
  way.insert(way.end(), more.begin(), more.end());
  return way;
}
// To a connection that has followed another.
test::Way way_again(const test::Way& more = {}) {
  test::Way way = way_up({"unreachable"});
  way.insert(way.end(), more.begin(), more.end());
  return way;
}

const std::vector<StateRow> kTable = {
    {State::Idle, "", Cluster::OfOne, {}, R"(
  open -> Connecting #1, due in 5000, grant
  close -> Over, Closed
  unusable -> Over, Failed: no curl
  watch; unwatch; commit; unreachable; unreachable for good; token; lease; alive; alive in term
      3; not alive; applied; applied in term 3; no fence; fence 1; fence 7; fence x; there;
      there in term 3; not there; NotFound; FailedPrecondition; Unauthenticated;
      PermissionDenied; InvalidArgument; ResourceExhausted; Unavailable; HTTP 404; HTTP 502;
      HTTP 200; no answer; no answer for good; closed; line: begun; line: changes; line:
      canceled; line: compacted; line: not allowed; line: other; half a line; early; due ->
      nothing
)"},
    {State::Idle, "much is asked for", Cluster::OfOne, {"watch", "commit"}, R"(
  open -> Connecting #1, due in 5000, grant
  close -> Over, commit 9 unknown, Closed
  unusable -> Over, commit 9 unknown, Failed: no curl
  watch; unwatch; commit; unreachable; unreachable for good; token; lease; alive; alive in term
      3; not alive; applied; applied in term 3; no fence; fence 1; fence 7; fence x; there;
      there in term 3; not there; NotFound; FailedPrecondition; Unauthenticated;
      PermissionDenied; InvalidArgument; ResourceExhausted; Unavailable; HTTP 404; HTTP 502;
      HTTP 200; no answer; no answer for good; closed; line: begun; line: changes; line:
      canceled; line: compacted; line: not allowed; line: other; half a line; early; due ->
      nothing
)"},
    {State::Connecting, "authenticate", Cluster::WithUsers, {"open"}, R"(
  close -> Over, Closed
  unusable -> Over, Failed: no curl
  unreachable -> Pausing, due soon: no name
  unreachable for good -> Over, Failed: etcd at e1:2379: no key
  token -> Connecting #1, token, due in 5000, grant
  lease; alive; alive in term 3; not alive; applied; applied in term 3; no fence; fence 1; fence
      7; fence x; there; there in term 3; not there; HTTP 200 -> Pausing, due soon: it sent a
      malformed answer to a user's name
  NotFound -> Pausing, due soon: it says: no lease
  FailedPrecondition -> Pausing, due soon: it says: lease exists
  Unauthenticated -> Over, Failed: etcd at e1:2379: old token; check username and password in
      --rdzv-conf
  PermissionDenied -> Over, Failed: etcd at e1:2379: not allowed; the user must be allowed to
      read and write the keys that begin with 'drun/'
  InvalidArgument -> Pausing, due soon: it says: too many
  ResourceExhausted -> Pausing, due soon: it says: no space
  Unavailable -> Pausing, due soon: it says: no leader
  HTTP 404 -> Over, Failed: etcd at e1:2379: this is no etcd 3.4 or later with its JSON gateway:
      it answers with HTTP status 404: "no page"
  HTTP 502 -> Pausing, due soon: it answers with HTTP status 502: "no member"
  no answer; closed -> Pausing, due soon: no route
  no answer for good -> Over, Failed: etcd at e1:2379: no route
  due -> Pausing, due soon: no answer
  open; watch; unwatch; commit; line: begun; line: changes; line: canceled; line: compacted;
      line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Connecting, "grant, as a user", Cluster::WithUsers, {"open", "token"}, R"(
  close -> Over, token, Closed
  unusable -> Over, token, Failed: no curl
  unreachable -> Pausing, token, due soon: no name
  unreachable for good -> Over, token, Failed: etcd at e1:2379: no key
  token; alive; alive in term 3; not alive; applied; applied in term 3; no fence; fence 1; fence
      7; fence x; there; there in term 3; not there; HTTP 200 -> Pausing, token, due soon: it
      sent a malformed lease
  lease -> Connecting #1, session, token, due in 5000, grant job
  NotFound -> Pausing, token, due soon: it says: no lease
  FailedPrecondition -> Pausing, token, due soon: it says: lease exists
  Unauthenticated -> Over, Failed: etcd at e1:2379: old token; check username and password in
      --rdzv-conf
  PermissionDenied -> Over, token, Failed: etcd at e1:2379: not allowed; the user must be
      allowed to read and write the keys that begin with 'drun/'
  InvalidArgument -> Pausing, token, due soon: it says: too many
  ResourceExhausted -> Pausing, token, due soon: it says: no space
  Unavailable -> Pausing, token, due soon: it says: no leader
  HTTP 404 -> Over, token, Failed: etcd at e1:2379: this is no etcd 3.4 or later with its JSON
      gateway: it answers with HTTP status 404: "no page"
  HTTP 502 -> Pausing, token, due soon: it answers with HTTP status 502: "no member"
  no answer; closed -> Pausing, token, due soon: no route
  no answer for good -> Over, token, Failed: etcd at e1:2379: no route
  due -> Pausing, token, due soon: it does not answer; perhaps no majority of its members can be
      reached
  open; watch; unwatch; commit; line: begun; line: changes; line: canceled; line: compacted;
      line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Connecting, "grant", Cluster::OfOne, {"open"}, R"(
  close -> Over, Closed
  unusable -> Over, Failed: no curl
  unreachable -> Pausing, due soon: no name
  unreachable for good -> Over, Failed: etcd at e1:2379: no key
  token; alive; alive in term 3; not alive; applied; applied in term 3; no fence; fence 1; fence
      7; fence x; there; there in term 3; not there; HTTP 200 -> Pausing, due soon: it sent a
      malformed lease
  lease -> Connecting #1, session, due in 5000, grant job
  NotFound -> Pausing, due soon: it says: no lease
  FailedPrecondition -> Pausing, due soon: it says: lease exists
  Unauthenticated -> Over, Failed: etcd at e1:2379: old token; check username and password in
      --rdzv-conf
  PermissionDenied -> Over, Failed: etcd at e1:2379: not allowed; the user must be allowed to
      read and write the keys that begin with 'drun/'
  InvalidArgument -> Pausing, due soon: it says: too many
  ResourceExhausted -> Pausing, due soon: it says: no space
  Unavailable -> Pausing, due soon: it says: no leader
  HTTP 404 -> Over, Failed: etcd at e1:2379: this is no etcd 3.4 or later with its JSON gateway:
      it answers with HTTP status 404: "no page"
  HTTP 502 -> Pausing, due soon: it answers with HTTP status 502: "no member"
  no answer; closed -> Pausing, due soon: no route
  no answer for good -> Over, Failed: etcd at e1:2379: no route
  due -> Pausing, due soon: it does not answer; perhaps no majority of its members can be
      reached
  open; watch; unwatch; commit; line: begun; line: changes; line: canceled; line: compacted;
      line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Connecting, "grant, one of two", Cluster::OfTwo, {"open"}, R"(
  close -> Over, Closed
  unusable -> Over, Failed: no curl
  unreachable -> Pausing, due now: e1:2379: no name
  unreachable for good -> Pausing, due now: e1:2379: no key
  token; alive; alive in term 3; not alive; applied; applied in term 3; no fence; fence 1; fence
      7; fence x; there; there in term 3; not there; HTTP 200 -> Pausing, due now: e1:2379: it
      sent a malformed lease
  lease -> Connecting #1, session, due in 5000, grant job
  NotFound -> Pausing, due now: e1:2379: it says: no lease
  FailedPrecondition -> Pausing, due now: e1:2379: it says: lease exists
  Unauthenticated -> Over, Failed: etcd at e1:2379: old token; check username and password in
      --rdzv-conf
  PermissionDenied -> Over, Failed: etcd at e1:2379: not allowed; the user must be allowed to
      read and write the keys that begin with 'drun/'
  InvalidArgument -> Pausing, due now: e1:2379: it says: too many
  ResourceExhausted -> Pausing, due now: e1:2379: it says: no space
  Unavailable -> Pausing, due now: e1:2379: it says: no leader
  HTTP 404 -> Pausing, due now: e1:2379: this is no etcd 3.4 or later with its JSON gateway: it
      answers with HTTP status 404: "no page"
  HTTP 502 -> Pausing, due now: e1:2379: it answers with HTTP status 502: "no member"
  no answer; no answer for good; closed -> Pausing, due now: e1:2379: no route
  due -> Pausing, due now: e1:2379: it does not answer; perhaps no majority of its members can
      be reached
  open; watch; unwatch; commit; line: begun; line: changes; line: canceled; line: compacted;
      line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Connecting, "grant job", Cluster::OfOne, {"open", "lease"}, R"(
  close -> Over, Closed
  unusable -> Over, Failed: no curl
  unreachable -> Pausing, session, due soon: no name
  unreachable for good -> Over, Failed: etcd at e1:2379: no key
  token; lease; alive; alive in term 3; not alive; applied; applied in term 3; no fence; fence
      1; fence 7; fence x; there; there in term 3; not there; FailedPrecondition; HTTP 200 ->
      Connecting #1, session, due in 5000, create fence
  NotFound -> Connecting #1, session, due in 5000, end session
  Unauthenticated -> Over, Failed: etcd at e1:2379: old token; check username and password in
      --rdzv-conf
  PermissionDenied -> Over, Failed: etcd at e1:2379: not allowed; the user must be allowed to
      read and write the keys that begin with 'drun/'
  InvalidArgument -> Pausing, session, due soon: it says: too many
  ResourceExhausted -> Pausing, session, due soon: it says: no space
  Unavailable -> Pausing, session, due soon: it says: no leader
  HTTP 404 -> Over, Failed: etcd at e1:2379: this is no etcd 3.4 or later with its JSON gateway:
      it answers with HTTP status 404: "no page"
  HTTP 502 -> Pausing, session, due soon: it answers with HTTP status 502: "no member"
  no answer; closed -> Pausing, session, due soon: no route
  no answer for good -> Over, Failed: etcd at e1:2379: no route
  due -> Pausing, session, due soon: it does not answer; perhaps no majority of its members can
      be reached
  open; watch; unwatch; commit; line: begun; line: changes; line: canceled; line: compacted;
      line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Connecting, "create fence", Cluster::OfOne, {"open", "lease", "lease"}, R"(
  close -> Over, Closed
  unusable -> Over, Failed: no curl
  unreachable -> Pausing, session, due soon: no name
  unreachable for good -> Over, Failed: etcd at e1:2379: no key
  token; lease; alive; alive in term 3; not alive; there; there in term 3; not there; HTTP 200
      -> Pausing, session, due soon: it sent a malformed answer to a transaction
  applied; applied in term 3 -> Up #1, session, due in 1000, Up, renewed 0 ago
  no fence; NotFound -> Connecting #1, session, due in 5000, end session
  fence 1; fence 7 -> Connecting #1, session, due in 5000, raise fence
  fence x -> Pausing, session, due soon: another has changed the key of this session
  FailedPrecondition -> Pausing, session, due soon: it says: lease exists
  Unauthenticated -> Over, Failed: etcd at e1:2379: old token; check username and password in
      --rdzv-conf
  PermissionDenied -> Over, Failed: etcd at e1:2379: not allowed; the user must be allowed to
      read and write the keys that begin with 'drun/'
  InvalidArgument -> Pausing, session, due soon: it says: too many
  ResourceExhausted -> Pausing, session, due soon: it says: no space
  Unavailable -> Pausing, session, due soon: it says: no leader
  HTTP 404 -> Over, Failed: etcd at e1:2379: this is no etcd 3.4 or later with its JSON gateway:
      it answers with HTTP status 404: "no page"
  HTTP 502 -> Pausing, session, due soon: it answers with HTTP status 502: "no member"
  no answer; closed -> Pausing, session, due soon: no route
  no answer for good -> Over, Failed: etcd at e1:2379: no route
  due -> Pausing, session, due soon: it does not answer; perhaps no majority of its members can
      be reached
  open; watch; unwatch; commit; line: begun; line: changes; line: canceled; line: compacted;
      line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Connecting, "keep alive", Cluster::OfOne, way_again(), R"(
  close -> Over, Closed
  unusable -> Over, Failed: no curl
  unreachable -> Pausing, session, due soon
  unreachable for good -> Pausing, session, due soon: no key
  token; lease; applied; applied in term 3; no fence; fence 1; fence 7; fence x; there; there in
      term 3; not there; HTTP 200 -> Pausing, session, due soon: it sent a malformed answer
      about a lease
  alive; alive in term 3 -> Connecting #2, session, due in 1500, grant job
  not alive; NotFound -> Connecting #2, session, due in 1500, end session
  FailedPrecondition -> Pausing, session, due soon: it says: lease exists
  Unauthenticated -> Pausing, session, due soon: old token; check username and password in
      --rdzv-conf
  PermissionDenied -> Pausing, session, due soon: not allowed; the user must be allowed to read
      and write the keys that begin with 'drun/'
  InvalidArgument -> Pausing, session, due soon: it says: too many
  ResourceExhausted -> Pausing, session, due soon: it says: no space
  Unavailable -> Pausing, session, due soon: it says: no leader
  HTTP 404 -> Pausing, session, due soon: this is no etcd 3.4 or later with its JSON gateway: it
      answers with HTTP status 404: "no page"
  HTTP 502 -> Pausing, session, due soon: it answers with HTTP status 502: "no member"
  no answer; no answer for good; closed -> Pausing, session, due soon: no route
  due -> Pausing, session, due soon: no answer
  open; watch; unwatch; commit; line: begun; line: changes; line: canceled; line: compacted;
      line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Connecting,
     "keep alive, with an old token",
     Cluster::WithUsers,
     {"open", "token", "lease", "lease", "applied", "unreachable"},
     R"(
  close -> Over, token, Closed
  unusable -> Over, token, Failed: no curl
  unreachable -> Pausing, session, token, due soon
  unreachable for good -> Pausing, session, token, due soon: no key
  token; lease; applied; applied in term 3; no fence; fence 1; fence 7; fence x; there; there in
      term 3; not there; HTTP 200 -> Pausing, session, due soon: it sent a malformed answer
      about a lease
  alive; alive in term 3 -> Connecting #2, session, token, due in 1500, grant job
  not alive; NotFound -> Connecting #2, session, token, due in 1500, end session
  FailedPrecondition -> Pausing, session, token, due soon: it says: lease exists
  Unauthenticated -> Pausing, session, due soon: it says: old token
  PermissionDenied -> Pausing, session, token, due soon: not allowed; the user must be allowed
      to read and write the keys that begin with 'drun/'
  InvalidArgument -> Pausing, session, token, due soon: it says: too many
  ResourceExhausted -> Pausing, session, token, due soon: it says: no space
  Unavailable -> Pausing, session, token, due soon: it says: no leader
  HTTP 404 -> Pausing, session, token, due soon: this is no etcd 3.4 or later with its JSON
      gateway: it answers with HTTP status 404: "no page"
  HTTP 502 -> Pausing, session, token, due soon: it answers with HTTP status 502: "no member"
  no answer; no answer for good; closed -> Pausing, session, token, due soon: no route
  due -> Pausing, session, token, due soon: no answer
  open; watch; unwatch; commit; line: begun; line: changes; line: canceled; line: compacted;
      line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Connecting, "end session", Cluster::OfOne, way_again({"not alive"}), R"(
  close -> Over, Closed
  unusable -> Over, Failed: no curl
  unreachable -> Pausing, session, due soon
  unreachable for good -> Pausing, session, due soon: no key
  token; lease; alive; alive in term 3; not alive; applied; applied in term 3; no fence; fence
      1; fence 7; fence x; there; there in term 3; not there; NotFound; HTTP 200 -> Connecting
      #2, due in 1500, grant
  FailedPrecondition -> Pausing, session, due soon: it says: lease exists
  Unauthenticated -> Pausing, session, due soon: old token; check username and password in
      --rdzv-conf
  PermissionDenied -> Pausing, session, due soon: not allowed; the user must be allowed to read
      and write the keys that begin with 'drun/'
  InvalidArgument -> Pausing, session, due soon: it says: too many
  ResourceExhausted -> Pausing, session, due soon: it says: no space
  Unavailable -> Pausing, session, due soon: it says: no leader
  HTTP 404 -> Pausing, session, due soon: this is no etcd 3.4 or later with its JSON gateway: it
      answers with HTTP status 404: "no page"
  HTTP 502 -> Pausing, session, due soon: it answers with HTTP status 502: "no member"
  no answer; no answer for good; closed -> Pausing, session, due soon: no route
  due -> Pausing, session, due soon: it does not answer; perhaps no majority of its members can
      be reached
  open; watch; unwatch; commit; line: begun; line: changes; line: canceled; line: compacted;
      line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Connecting, "raise fence", Cluster::OfOne, way_again({"alive", "FailedPrecondition"}),
     R"(
  close -> Over, Closed
  unusable -> Over, Failed: no curl
  unreachable -> Pausing, session, due soon
  unreachable for good -> Pausing, session, due soon: no key
  token; lease; alive; alive in term 3; not alive; there; there in term 3; not there; HTTP 200
      -> Pausing, session, due soon: it sent a malformed answer to a transaction
  applied -> Up #2, session, due in 0, Up, renewed 0 ago, all is well
  applied in term 3 -> Connecting #2, session, due in 1500, keep alive
  no fence; NotFound -> Connecting #2, session, due in 1500, end session
  fence 1; fence 7 -> Connecting #2, session, due in 1500, raise fence
  fence x -> Pausing, session, due soon: another has changed the key of this session
  FailedPrecondition -> Pausing, session, due soon: it says: lease exists
  Unauthenticated -> Pausing, session, due soon: old token; check username and password in
      --rdzv-conf
  PermissionDenied -> Pausing, session, due soon: not allowed; the user must be allowed to read
      and write the keys that begin with 'drun/'
  InvalidArgument -> Pausing, session, due soon: it says: too many
  ResourceExhausted -> Pausing, session, due soon: it says: no space
  Unavailable -> Pausing, session, due soon: it says: no leader
  HTTP 404 -> Pausing, session, due soon: this is no etcd 3.4 or later with its JSON gateway: it
      answers with HTTP status 404: "no page"
  HTTP 502 -> Pausing, session, due soon: it answers with HTTP status 502: "no member"
  no answer; no answer for good; closed -> Pausing, session, due soon: no route
  due -> Pausing, session, due soon: it does not answer; perhaps no majority of its members can
      be reached
  open; watch; unwatch; commit; line: begun; line: changes; line: canceled; line: compacted;
      line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Pausing, "", Cluster::OfOne, {"open", "no answer"}, R"(
  close -> Over, Closed
  unusable -> Over, Failed: no curl
  due -> Connecting #2, due in 5000, grant
  open; watch; unwatch; commit; unreachable; unreachable for good; token; lease; alive; alive in
      term 3; not alive; applied; applied in term 3; no fence; fence 1; fence 7; fence x; there;
      there in term 3; not there; NotFound; FailedPrecondition; Unauthenticated;
      PermissionDenied; InvalidArgument; ResourceExhausted; Unavailable; HTTP 404; HTTP 502;
      HTTP 200; no answer; no answer for good; closed; line: begun; line: changes; line:
      canceled; line: compacted; line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Pausing, "after a break", Cluster::OfOne, way_again({"no answer"}), R"(
  close -> Over, Closed
  unusable -> Over, Failed: no curl
  due -> Connecting #3, session, due in 1500, keep alive
  open; watch; unwatch; commit; unreachable; unreachable for good; token; lease; alive; alive in
      term 3; not alive; applied; applied in term 3; no fence; fence 1; fence 7; fence x; there;
      there in term 3; not there; NotFound; FailedPrecondition; Unauthenticated;
      PermissionDenied; InvalidArgument; ResourceExhausted; Unavailable; HTTP 404; HTTP 502;
      HTTP 200; no answer; no answer for good; closed; line: begun; line: changes; line:
      canceled; line: compacted; line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Up, "", Cluster::OfOne, way_up(), R"(
  watch -> Up #1, session, due in 1000, look
  commit -> Up #1, session, due in 1000, commit
  close -> Up #1, session, due in 1000, end session
  unusable -> Over, Failed: no curl
  unreachable -> Connecting #2, session, due in 1500, keep alive, Down: no name
  unreachable for good -> Connecting #2, session, due in 1500, keep alive, Down: no key
  due -> Up #1, session, due in 3000, keep alive
  open; unwatch; token; lease; alive; alive in term 3; not alive; applied; applied in term 3; no
      fence; fence 1; fence 7; fence x; there; there in term 3; not there; NotFound;
      FailedPrecondition; Unauthenticated; PermissionDenied; InvalidArgument; ResourceExhausted;
      Unavailable; HTTP 404; HTTP 502; HTTP 200; no answer; no answer for good; closed; line:
      begun; line: changes; line: canceled; line: compacted; line: not allowed; line: other;
      half a line; early -> nothing
)"},
    {State::Up, "a connection after another", Cluster::OfOne,
     way_again({"alive", "FailedPrecondition", "applied"}), R"(
  watch -> Up #2, session, due in 0, look
  commit -> Up #2, session, due in 0, commit
  close -> Up #2, session, due in 0, end session
  unusable -> Over, Failed: no curl
  unreachable -> Pausing, session, due soon, Down: no name
  unreachable for good -> Pausing, session, due soon, Down: no key
  early; due -> Up #2, session, due in 500, keep job alive
  open; unwatch; token; lease; alive; alive in term 3; not alive; applied; applied in term 3; no
      fence; fence 1; fence 7; fence x; there; there in term 3; not there; NotFound;
      FailedPrecondition; Unauthenticated; PermissionDenied; InvalidArgument; ResourceExhausted;
      Unavailable; HTTP 404; HTTP 502; HTTP 200; no answer; no answer for good; closed; line:
      begun; line: changes; line: canceled; line: compacted; line: not allowed; line: other;
      half a line -> nothing
)"},
    {State::Up, "commit", Cluster::OfOne, way_up({"commit"}), R"(
  unusable -> Over, commit 9 unknown, Failed: no curl
  unreachable -> Connecting #2, session, due in 1500, keep alive, Down, commit 9 unknown: no
      name
  unreachable for good -> Connecting #2, session, due in 1500, keep alive, Down, commit 9
      unknown: no key
  token; lease; alive; alive in term 3; not alive; there; there in term 3; not there; HTTP 200
      -> Connecting #2, session, due in 1500, keep alive, Down, commit 9 unknown: it sent a
      malformed answer to a transaction
  applied; applied in term 3 -> Up #1, session, due in 1000, commit 9 committed
  no fence; fence 7; fence x; NotFound -> Connecting #2, session, due in 1500, keep alive, Down,
      commit 9 unknown: the session has ended
  fence 1 -> Up #1, session, due in 1000, commit 9 refused
  FailedPrecondition -> Connecting #2, session, due in 1500, keep alive, Down, commit 9 unknown:
      it says: lease exists
  Unauthenticated -> Connecting #2, session, due in 1500, keep alive, Down, commit 9 unknown: it
      says: old token
  PermissionDenied; InvalidArgument; ResourceExhausted -> Up #1, session, due in 1000, commit 9
      rejected
  Unavailable -> Connecting #2, session, due in 1500, keep alive, Down, commit 9 unknown: it
      says: no leader
  HTTP 404 -> Connecting #2, session, due in 1500, keep alive, Down, commit 9 unknown: it
      answers with HTTP status 404: "no page"
  HTTP 502 -> Connecting #2, session, due in 1500, keep alive, Down, commit 9 unknown: it
      answers with HTTP status 502: "no member"
  no answer; no answer for good; closed -> Connecting #2, session, due in 1500, keep alive,
      Down, commit 9 unknown: no route
  due -> Up #1, session, due in 3000, keep alive
  open; watch; unwatch; commit; close; line: begun; line: changes; line: canceled; line:
      compacted; line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Up, "look", Cluster::OfOne, way_up({"watch"}), R"(
  unusable -> Over, Failed: no curl
  unreachable -> Connecting #2, session, due in 1500, keep alive, Down: no name
  unreachable for good -> Connecting #2, session, due in 1500, keep alive, Down: no key
  token; lease; applied; applied in term 3; no fence; fence 1; fence 7; fence x; there; there in
      term 3; not there -> Up #1, session, due in 1000, watch, snapshot 3
  alive; alive in term 3; not alive; HTTP 200 -> Connecting #2, session, due in 1500, keep
      alive, Down: it sent a malformed list of keys
  NotFound -> Connecting #2, session, due in 1500, keep alive, Down: the session has ended
  FailedPrecondition -> Connecting #2, session, due in 1500, keep alive, Down: it says: lease
      exists
  Unauthenticated -> Connecting #2, session, due in 1500, keep alive, Down: it says: old token
  PermissionDenied; InvalidArgument; ResourceExhausted -> Up #1, session, due in 1000, watch 3
      rejected
  Unavailable -> Connecting #2, session, due in 1500, keep alive, Down: it says: no leader
  HTTP 404 -> Connecting #2, session, due in 1500, keep alive, Down: it answers with HTTP status
      404: "no page"
  HTTP 502 -> Connecting #2, session, due in 1500, keep alive, Down: it answers with HTTP status
      502: "no member"
  no answer; no answer for good; closed -> Connecting #2, session, due in 1500, keep alive,
      Down: no route
  due -> Up #1, session, due in 3000, keep alive
  open; watch; unwatch; commit; close; line: begun; line: changes; line: canceled; line:
      compacted; line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Up, "watch", Cluster::OfOne, way_up({"watch", "there"}), R"(
  watch -> Up #1, session, due in 1000, look, cancels the watch
  unwatch -> Up #1, session, due in 1000, cancels the watch
  commit -> Up #1, session, due in 1000, commit
  close -> Up #1, session, due in 1000, end session
  unusable -> Over, Failed: no curl
  unreachable -> Connecting #2, session, due in 1500, keep alive, Down: no name
  unreachable for good -> Connecting #2, session, due in 1500, keep alive, Down: no key
  token; lease; alive; alive in term 3; not alive; applied; applied in term 3; no fence; fence
      1; fence 7; fence x; there; there in term 3; not there; HTTP 200 -> Connecting #2,
      session, due in 1500, keep alive, Down: it ended a watch
  NotFound -> Connecting #2, session, due in 1500, keep alive, Down: it says: no lease
  FailedPrecondition -> Connecting #2, session, due in 1500, keep alive, Down: it says: lease
      exists
  Unauthenticated -> Connecting #2, session, due in 1500, keep alive, Down: it says: old token
  PermissionDenied -> Connecting #2, session, due in 1500, keep alive, Down: it says: not
      allowed
  InvalidArgument -> Connecting #2, session, due in 1500, keep alive, Down: it says: too many
  ResourceExhausted -> Connecting #2, session, due in 1500, keep alive, Down: it says: no space
  Unavailable -> Connecting #2, session, due in 1500, keep alive, Down: it says: no leader
  HTTP 404 -> Connecting #2, session, due in 1500, keep alive, Down: it answers with HTTP status
      404: "no page"
  HTTP 502 -> Connecting #2, session, due in 1500, keep alive, Down: it answers with HTTP status
      502: "no member"
  no answer; no answer for good; closed -> Connecting #2, session, due in 1500, keep alive,
      Down: no route
  line: changes -> Up #1, session, due in 1000, changes 3
  line: canceled -> Connecting #2, session, due in 1500, keep alive, Down: it ended a watch: why
  line: compacted -> Connecting #2, session, due in 1500, keep alive, Down: it has compacted
      what was to be watched
  line: not allowed -> Up #1, session, due in 1000, cancels the watch, watch 3 rejected
  line: other -> Connecting #2, session, due in 1500, keep alive, Down: it sent a malformed
      event
  due -> Up #1, session, due in 2000, keep alive
  open; line: begun; half a line; early -> nothing
)"},
    {State::Up, "watch, which has begun", Cluster::OfOne, way_up({"watch", "there", "line: begun"}),
     R"(
  watch -> Up #1, session, due in 1000, look, cancels the watch
  unwatch -> Up #1, session, due in 1000, cancels the watch
  commit -> Up #1, session, due in 1000, commit
  close -> Up #1, session, due in 1000, end session
  unusable -> Over, Failed: no curl
  unreachable -> Connecting #2, session, due in 1500, keep alive, Down: no name
  unreachable for good -> Connecting #2, session, due in 1500, keep alive, Down: no key
  token; lease; alive; alive in term 3; not alive; applied; applied in term 3; no fence; fence
      1; fence 7; fence x; there; there in term 3; not there; HTTP 200 -> Connecting #2,
      session, due in 1500, keep alive, Down: it ended a watch
  NotFound -> Connecting #2, session, due in 1500, keep alive, Down: it says: no lease
  FailedPrecondition -> Connecting #2, session, due in 1500, keep alive, Down: it says: lease
      exists
  Unauthenticated -> Connecting #2, session, due in 1500, keep alive, Down: it says: old token
  PermissionDenied -> Connecting #2, session, due in 1500, keep alive, Down: it says: not
      allowed
  InvalidArgument -> Connecting #2, session, due in 1500, keep alive, Down: it says: too many
  ResourceExhausted -> Connecting #2, session, due in 1500, keep alive, Down: it says: no space
  Unavailable -> Connecting #2, session, due in 1500, keep alive, Down: it says: no leader
  HTTP 404 -> Connecting #2, session, due in 1500, keep alive, Down: it answers with HTTP status
      404: "no page"
  HTTP 502 -> Connecting #2, session, due in 1500, keep alive, Down: it answers with HTTP status
      502: "no member"
  no answer; no answer for good; closed -> Connecting #2, session, due in 1500, keep alive,
      Down: no route
  line: changes -> Up #1, session, due in 1000, changes 3
  line: canceled -> Connecting #2, session, due in 1500, keep alive, Down: it ended a watch: why
  line: compacted -> Connecting #2, session, due in 1500, keep alive, Down: it has compacted
      what was to be watched
  line: not allowed -> Up #1, session, due in 1000, cancels the watch, watch 3 rejected
  line: other -> Connecting #2, session, due in 1500, keep alive, Down: it sent a malformed
      event
  due -> Up #1, session, due in 3000, keep alive
  open; line: begun; half a line; early -> nothing
)"},
    {State::Up, "keep alive", Cluster::OfOne, way_up({"due"}), R"(
  watch -> Up #1, session, due in 3000, look
  commit -> Up #1, session, due in 3000, commit
  close -> Up #1, session, due in 1000, end session
  unusable -> Over, Failed: no curl
  unreachable -> Connecting #2, session, due in 1500, keep alive, Down: no name
  unreachable for good -> Connecting #2, session, due in 1500, keep alive, Down: no key
  token; lease; applied; applied in term 3; no fence; fence 1; fence 7; fence x; there; there in
      term 3; not there; HTTP 200 -> Connecting #2, session, due in 1500, keep alive, Down: it
      sent a malformed answer about a lease
  alive; alive in term 3 -> Up #1, session, due in 3000, look for fence
  not alive -> Connecting #2, session, due in 1500, keep alive, Down: the session has ended
  NotFound -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it says: no
      lease
  FailedPrecondition -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it
      says: lease exists
  Unauthenticated -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it says:
      old token
  PermissionDenied -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it
      says: not allowed
  InvalidArgument -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it says:
      too many
  ResourceExhausted -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it
      says: no space
  Unavailable -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it says: no
      leader
  HTTP 404 -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it answers with
      HTTP status 404: "no page"
  HTTP 502 -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it answers with
      HTTP status 502: "no member"
  no answer; no answer for good; closed -> Connecting #2, session, due in 1500, keep alive,
      Down: no route
  due -> Connecting #2, session, due in 1500, keep alive, Down silent 4000: no answer for 4.0 s
  open; unwatch; line: begun; line: changes; line: canceled; line: compacted; line: not allowed;
      line: other; half a line; early -> nothing
)"},
    {State::Up, "look for fence", Cluster::OfOne, way_up({"due", "alive"}), R"(
  watch -> Up #1, session, due in 3000, look
  commit -> Up #1, session, due in 3000, commit
  close -> Up #1, session, due in 1000, end session
  unusable -> Over, Failed: no curl
  unreachable -> Connecting #2, session, due in 1500, keep alive, Down: no name
  unreachable for good -> Connecting #2, session, due in 1500, keep alive, Down: no key
  token; lease; applied; applied in term 3; no fence; fence 1; fence 7; fence x; not there ->
      Connecting #2, session, due in 1500, keep alive, Down: the session has ended
  alive; alive in term 3; not alive; HTTP 200 -> Connecting #2, session, due in 1500, keep
      alive, Down: it sent a malformed list of keys
  there -> Up #1, session, due in 1000, renewed 0 ago
  there in term 3 -> Up #1, session, due in 50
  NotFound -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it says: no
      lease
  FailedPrecondition -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it
      says: lease exists
  Unauthenticated -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it says:
      old token
  PermissionDenied -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it
      says: not allowed
  InvalidArgument -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it says:
      too many
  ResourceExhausted -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it
      says: no space
  Unavailable -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it says: no
      leader
  HTTP 404 -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it answers with
      HTTP status 404: "no page"
  HTTP 502 -> Connecting #2, session, due in 1500, keep alive, Down silent 1000: it answers with
      HTTP status 502: "no member"
  no answer; no answer for good; closed -> Connecting #2, session, due in 1500, keep alive,
      Down: no route
  due -> Connecting #2, session, due in 1500, keep alive, Down silent 4000: no answer for 4.0 s
  open; unwatch; line: begun; line: changes; line: canceled; line: compacted; line: not allowed;
      line: other; half a line; early -> nothing
)"},
    {State::Up, "keep job alive", Cluster::OfOne,
     way_again({"alive", "FailedPrecondition", "applied", "due"}), R"(
  watch -> Up #2, session, due in 500, look
  commit -> Up #2, session, due in 500, commit
  close -> Up #2, session, due in 500, end session
  unusable -> Over, Failed: no curl
  unreachable -> Pausing, session, due soon, Down: no name
  unreachable for good -> Pausing, session, due soon, Down: no key
  due -> Up #2, session, due in 3000, keep alive
  open; unwatch; token; lease; alive; alive in term 3; not alive; applied; applied in term 3; no
      fence; fence 1; fence 7; fence x; there; there in term 3; not there; NotFound;
      FailedPrecondition; Unauthenticated; PermissionDenied; InvalidArgument; ResourceExhausted;
      Unavailable; HTTP 404; HTTP 502; HTTP 200; no answer; no answer for good; closed; line:
      begun; line: changes; line: canceled; line: compacted; line: not allowed; line: other;
      half a line; early -> nothing
)"},
    {State::Up, "end session", Cluster::OfOne, way_up({"close"}), R"(
  commit -> Up #1, session, due in 1000, commit 9 unknown
  unusable -> Over, Failed: no curl
  unreachable; unreachable for good; token; lease; alive; alive in term 3; not alive; applied;
      applied in term 3; no fence; fence 1; fence 7; fence x; there; there in term 3; not there;
      NotFound; FailedPrecondition; Unauthenticated; PermissionDenied; InvalidArgument;
      ResourceExhausted; Unavailable; HTTP 404; HTTP 502; HTTP 200; no answer; no answer for
      good; closed; due -> Over, Closed
  open; watch; unwatch; close; line: begun; line: changes; line: canceled; line: compacted;
      line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Up, "commit, then it leaves", Cluster::OfOne, way_up({"commit", "close"}), R"(
  commit -> Up #1, session, due in 1000, commit 9 unknown
  unusable -> Over, commit 9 unknown, Failed: no curl
  unreachable; unreachable for good; token; lease; alive; alive in term 3; not alive; no fence;
      fence 7; fence x; there; there in term 3; not there; NotFound; FailedPrecondition;
      Unauthenticated; Unavailable; HTTP 404; HTTP 502; HTTP 200; no answer; no answer for good;
      closed; due -> Over, commit 9 unknown, Closed
  applied; applied in term 3 -> Up #1, session, due in 1000, end session, commit 9 committed
  fence 1 -> Up #1, session, due in 1000, end session, commit 9 refused
  PermissionDenied; InvalidArgument; ResourceExhausted -> Up #1, session, due in 1000, end
      session, commit 9 rejected
  open; watch; unwatch; close; line: begun; line: changes; line: canceled; line: compacted;
      line: not allowed; line: other; half a line; early -> nothing
)"},
    {State::Over, "closed", Cluster::OfOne, way_up({"close", "there"}), R"(
  commit -> Over, commit 9 unknown
  open; watch; unwatch; close; unusable; unreachable; unreachable for good; token; lease; alive;
      alive in term 3; not alive; applied; applied in term 3; no fence; fence 1; fence 7; fence
      x; there; there in term 3; not there; NotFound; FailedPrecondition; Unauthenticated;
      PermissionDenied; InvalidArgument; ResourceExhausted; Unavailable; HTTP 404; HTTP 502;
      HTTP 200; no answer; no answer for good; closed; line: begun; line: changes; line:
      canceled; line: compacted; line: not allowed; line: other; half a line; early; due ->
      nothing
)"},
    {State::Over, "failed", Cluster::OfOne, {"open", "HTTP 404"}, R"(
  commit -> Over, commit 9 unknown
  open; watch; unwatch; close; unusable; unreachable; unreachable for good; token; lease; alive;
      alive in term 3; not alive; applied; applied in term 3; no fence; fence 1; fence 7; fence
      x; there; there in term 3; not there; NotFound; FailedPrecondition; Unauthenticated;
      PermissionDenied; InvalidArgument; ResourceExhausted; Unavailable; HTTP 404; HTTP 502;
      HTTP 200; no answer; no answer for good; closed; line: begun; line: changes; line:
      canceled; line: compacted; line: not allowed; line: other; half a line; early; due ->
      nothing
)"},
};

TEST(EtcdFsmTableTest, EveryEventInEveryState) {
  const auto events = all_events();
  for (const StateRow& row : kTable) {
    SCOPED_TRACE("row " + std::to_string(&row - kTable.data()) + ": " +
                 kStateNames[static_cast<int>(row.state)] + " " + row.what);
    Machine machine(row.cluster);
    test::go(machine, events, row.way);
    EXPECT_EQ(machine.state(), row.state);
    EXPECT_EQ(test::what_each_does<Machine>(
                  events, row.way, [&row] { return std::make_unique<Machine>(row.cluster); }),
              row.does);
  }
}

TEST(EtcdFsmTableTest, HasEveryStateAndAnAnswerToEveryCall) {
  const auto rows = [](const auto& condition) {
    return std::any_of(kTable.begin(), kTable.end(), condition);
  };
  for (std::size_t i = 0; i < std::size(kStateNames); ++i)
    EXPECT_TRUE(rows([i](const StateRow& row) { return static_cast<std::size_t>(row.state) == i; }))
        << kStateNames[i];
  for (const std::string call :
       {"auth/authenticate", "grant", "grant job", "create fence", "raise fence", "keep alive",
        "end session", "commit", "look", "watch", "look for fence", "keep job alive"})
    EXPECT_TRUE(rows([&call](const StateRow& row) {
      return call.ends_with(row.what) && *row.what;
    })) << call;
}

}  // namespace
}  // namespace drun::etcd
