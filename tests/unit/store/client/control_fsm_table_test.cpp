// The control client's machine as a table: every state, every event.
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

#include "store/client/control_fsm.hpp"
#include "support/event_table.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using Time = ControlFsm::Time;

enum class State { Idle, Connecting, Handshake, Up, Pausing, Stranded, Closing, Over };
constexpr const char* kStateNames[] = {"Idle",    "Connecting", "Handshake", "Up",
                                       "Pausing", "Stranded",   "Closing",   "Over"};

// What the client is: one of a job without a vote, one that votes, or one that founds, too.
enum class Part { Plain, Votes, Founds };

ControlOptions options_of(Part part) {
  ControlOptions result;
  result.endpoint = {"10.0.0.1", 29500};
  result.tell_refusal = true;
  result.heartbeat_interval = 1s;
  if (part == Part::Plain) return result;
  result.job = "drun/a/";
  result.founding = part == Part::Founds;
  if (result.founding) result.founder = {{0, 77}, 1, 3, kNoRank};
  return result;
}

// In the order of control::Request.
constexpr const char* kRequestNames[] = {"OpenSession", "ResumeSession", "Heartbeat",     "Goodbye",
                                         "Transaction", "Watch",         "Unwatch",       "Stats",
                                         "Pulse",       "Confirm",       "OpenSuccessor", "Gone",
                                         "Find",        "LastWords"};
static_assert(std::size(kRequestNames) == std::variant_size_v<control::Request>);

// A machine, its clock, what the network makes of its wishes, and what has become of it.
class Machine {
 public:
  explicit Machine(Part part = Part::Plain) : fsm(options_of(part), 1), told_(state_text()) {}

  ControlFsm fsm;
  Time now{1h};

  [[nodiscard]] State state() const {
    const auto wanted = fsm.wanted_connection();
    if (wanted) {
      if (goodbye_on_ == wanted) return State::Closing;
      if (up_on_ == wanted) return State::Up;
      return met_ == wanted ? State::Handshake : State::Connecting;
    }
    if (fsm.next_deadline()) return State::Pausing;
    return !link_ ? State::Idle : *link_ == ControlState::Down ? State::Stranded : State::Over;
  }

  void meet() {
    met_ = fsm.wanted_connection();
    fsm.on_connected(now);
  }
  // Pauses are spread at random, by less than what this is rounded up by.
  void at(std::chrono::milliseconds before_due) {
    const auto due = fsm.next_deadline();
    if (due) now = std::max(now, before_due > 0ms ? *due - before_due : ceil_of(*due));
    if (!due) now += 1h;
    fsm.on_time(now);
  }
  // To the last request of one of these kinds on this connection, else to none that there was.
  void reply(const std::vector<std::string>& to, const control::Reply& message) {
    std::uint64_t id = to.empty() ? 0 : 99;
    for (const auto& kind : to) {
      const auto found = requests_.find(kind);
      if (found == requests_.end()) continue;
      id = found->second;
      break;
    }
    std::string bytes;
    control::encode(bytes, id, message);
    fsm.on_received(bytes, now);
  }

  std::string news() {
    std::string more;
    if (fsm.wanted_connection() != requests_on_) requests_.clear();
    requests_on_ = fsm.wanted_connection();
    for (const auto& name : sent())
      more += ", sends " + name;
    for (const auto& event : fsm.take_events())
      more += ", " + std::visit([this](const auto& each) { return this->describe(each); }, event);
    std::string text = state_text();
    const auto due = fsm.next_deadline();
    const bool same =
        text == told_ && due == told_due_ && fsm.last_error() == told_error_ && more.empty();
    told_ = text;
    told_due_ = due;
    if (due && state() == State::Pausing) {
      EXPECT_GT(*due, now);
      EXPECT_LE(*due, now + 100ms);
      text += ", due soon";
    } else if (due && *due > now + 24h) {
      text += ", due some day";
    } else if (due) {
      text += ", due in " + std::to_string((*due - now) / 1ms);
    }
    text += more;
    if (told_error_ != fsm.last_error()) {
      told_error_ = fsm.last_error();
      // Without the bytes that came.
      text += told_error_.empty() ? ", all is well"
                                  : ": " + told_error_.substr(0, told_error_.find(" 0x"));
    }
    return same ? "" : text;
  }

 private:
  static Time ceil_of(Time time) {
    return std::chrono::ceil<std::chrono::duration<int, std::deci>>(time);
  }

  std::string state_text() const {
    std::string text = kStateNames[static_cast<int>(state())];
    if (const auto wanted = fsm.wanted_connection()) text += " #" + std::to_string(*wanted);
    if (fsm.endpoint().host != "10.0.0.1") text += " at " + fsm.endpoint().host;
    if (fsm.is_reconnecting()) text += " again";
    if (!fsm.farewell().empty()) text += ", session";
    if (!fsm.proof_of_death().empty()) text += ", proof";
    return text;
  }
  std::vector<std::string> sent() {
    bytes_ = fsm.take_output(now);
    std::string_view rest = bytes_;
    std::vector<std::string> result;
    if (control::may_be_opening(rest) && rest.size() >= control::kOpeningBytes) {
      rest.remove_prefix(control::kOpeningBytes);
      result.emplace_back("opening");
    }
    while (!rest.empty()) {
      const auto frame = control::next_frame(rest, 1 << 20);
      control::Request request;
      EXPECT_EQ(frame.status, control::FrameStatus::Complete);
      if (frame.status != control::FrameStatus::Complete) break;
      EXPECT_EQ(control::decode_request(frame.frame, 1000, request), control::DecodeStatus::Ok);
      result.emplace_back(kRequestNames[request.index()]);
      requests_[result.back()] = frame.frame.request;
      if (std::holds_alternative<control::Goodbye>(request)) goodbye_on_ = fsm.wanted_connection();
      if (const auto* opened = std::get_if<control::OpenSuccessor>(&request))
        result.back() += " after " + std::to_string(opened->generation) + votes_of(opened->vote);
      if (const auto* pulse = std::get_if<control::Pulse>(&request))
        result.back() += votes_of(pulse->vote);
      rest.remove_prefix(frame.size);
    }
    return result;
  }
  static std::string votes_of(const Vote& vote) {
    return (vote.settled.nodes > 0 ? " settled" : "") +
           (vote.later.empty() ? std::string() : " vote");
  }

  std::string describe(const ControlLink& link) {
    constexpr const char* kNames[] = {"Up", "Down", "NewSession", "Failed", "Closed"};
    link_ = link.state;
    const bool is_up = link.state == ControlState::Up || link.state == ControlState::NewSession;
    if (is_up) up_on_ = fsm.wanted_connection();
    std::string text = kNames[static_cast<int>(link.state)];
    if (link.silent > 0ms) text += " silent " + std::to_string(link.silent.count());
    if (link.refused) text += " refused";
    if (link.deserted) text += " deserted";
    if (link.early) text += " early";
    if (link.moved) text += " to " + link.moved->host;
    if (is_up && link.generation != 1) text += " generation " + std::to_string(link.generation);
    return text;
  }
  std::string describe(const ControlRenewal& renewal) const {
    return "renewed " + std::to_string((now - renewal.sent) / 1ms) + " ago";
  }
  static std::string describe(const ControlCall& call) {
    return "called by " + std::to_string(call.generation);
  }
  static std::string describe(const ControlSnapshot& snapshot) {
    return "snapshot " + std::to_string(snapshot.watch);
  }
  static std::string describe(const ControlChanges& changes) {
    return "changes " + std::to_string(changes.watch);
  }
  static std::string describe(const ControlWatchRejected& rejected) {
    return "watch " + std::to_string(rejected.watch) + " rejected";
  }
  static std::string describe(const ControlCommit& commit) {
    constexpr const char* kNames[] = {"committed", "refused", "rejected", "unknown"};
    return "commit " + std::to_string(commit.request) + " " +
           kNames[static_cast<int>(commit.outcome)];
  }

  std::optional<std::uint64_t> met_, up_on_, goodbye_on_, requests_on_;  // connections
  std::optional<ControlState> link_;                                     // the last word of it
  std::map<std::string, std::uint64_t> requests_;
  std::string bytes_;
  std::string told_;
  std::optional<Time> told_due_;
  std::string told_error_;
};

struct ReplyRow {
  const char* name;
  std::vector<std::string> to;
  control::Reply message;
};

// At the front one of each kind, in the order of control::Reply.
std::vector<ReplyRow> all_replies() {
  using control::ErrorCode;
  const std::vector<std::string> session = {"ResumeSession", "OpenSession", "OpenSuccessor"};
  const std::vector<std::string> pulse = {"Pulse", "OpenSuccessor"};
  return {
      {"Welcome", {}, control::Welcome{3, 1000, 100, 500, 100}},
      {"VersionRefused", {}, control::VersionRefused{7, 8, ""}},
      {"Done", {"Goodbye", "Heartbeat", "ResumeSession"}, control::Done{}},
      {"Session", session, control::Session{7, {1, 2, 3}, 6000, 1000}},
      {"SessionEnded", session, control::SessionEnded{}},
      {"Committed", {"Transaction"}, control::Committed{1}},
      {"Refused", {"Transaction"}, control::Refused{}},
      {"Snapshot", {"Watch"}, control::Snapshot{}},
      {"Changes", {"Watch"}, control::Changes{}},
      {"Counters", {"Watch"}, control::Counters{}},
      {"Pulsed", pulse, control::Pulsed{1, 10, {}, 99}},
      {"Moved", pulse, control::Moved{}},
      {"Heard", {"Watch"}, control::Heard{}},
      {"Error malformed", {"Watch"}, control::Error{ErrorCode::Malformed, "what?"}},
      {"Error no session", session, control::Error{ErrorCode::NoSession, "none"}},
      {"Error limit of the watch", {"Watch"}, control::Error{ErrorCode::Limit, "too much"}},
      {"Error limit of the commit", {"Transaction"}, control::Error{ErrorCode::Limit, "too much"}},
      {"Welcome of version 1", {}, control::Welcome{1, 1000, 100, 500, 100}},
      {"Pulsed settled", pulse, control::Pulsed{1, 10, {{1, 1}, kNoRank, 3, 0}, 99}},
      {"Pulsed of 2", pulse, control::Pulsed{2, 10, {}, 99}},
      {"Pulsed of 0", pulse, control::Pulsed{0, 10, {}, 99}},
      {"Pulsed too old", pulse, control::Pulsed{1, 6'001, {}, 99}},
      {"Moved to 2", pulse, control::Moved{2, "10.0.0.9", 7}}};
}

test::TableEvents<Machine> all_events() {
  test::TableEvents<Machine> events = {
      {"open", [](Machine& m) { m.fsm.open(m.now); }},
      {"watch", [](Machine& m) { m.fsm.watch(3, "a/", true); }},
      {"unwatch", [](Machine& m) { m.fsm.unwatch(3); }},
      {"commit",
       [](Machine& m) {
         m.fsm.commit(9, {{}, {{"k", "v", false}}});
       }},
      {"commit too long",
       [](Machine& m) {
         m.fsm.commit(9, {{}, {{"k", std::string(2'000, 'x'), false}}});
       }},
      {"vote",
       [](Machine& m) {
         m.fsm.vote({{1, 1}, 1, 3, 0}, m.now);
       }},
      {"go_to",
       [](Machine& m) {
         m.fsm.go_to({"10.0.0.2", 7}, m.now);
       }},
      {"go_to without founding",
       [](Machine& m) {
         m.fsm.go_to({"10.0.0.3", 7}, m.now, false);
       }},
      {"close", [](Machine& m) { m.fsm.close(m.now); }},
      {"connected", [](Machine& m) { m.meet(); }},
      {"connect failed", [](Machine& m) { m.fsm.on_connect_failed("no route", m.now); }},
      {"connect refused", [](Machine& m) { m.fsm.on_connect_failed("refused", m.now, true); }},
      {"disconnected", [](Machine& m) { m.fsm.on_disconnected("reset", m.now); }}};
  for (const ReplyRow& row : all_replies())
    events.emplace_back(row.name, [row](Machine& m) { m.reply(row.to, row.message); });
  const auto bytes = [&events](const char* name, std::string_view text) {
    events.emplace_back(name, [text](Machine& m) { m.fsm.on_received(text, m.now); });
  };
  bytes("half a frame", {"\x09\0\0\0\0", 5});
  bytes("a later reply", {"\x09\0\0\0\1\0\0\0\0\0\0\0\xEE", 13});
  bytes("a broken reply", {"\x0a\0\0\0\0\0\0\0\0\0\0\0\x80\1", 14});
  bytes("HTTP", "HTTP/1.1 400 Bad Request\r\n");
  events.emplace_back("early", [](Machine& m) { m.at(1ms); });
  events.emplace_back("due", [](Machine& m) { m.at(0ms); });
  return events;
}

struct StateRow {
  State state;
  const char* what;
  Part part;
  test::Way way;
  const char* does;
};

// With `more` behind it.
test::Way way_up(const test::Way& more = {}) {
  test::Way way = {"open", "connected", "Welcome", "Session"};
  way.insert(way.end(), more.begin(), more.end());
  return way;
}

const std::vector<StateRow> kTable = {
    {State::Idle, "", Part::Plain, {}, R"(
  open -> Connecting #1, due in 60000
  go_to -> Connecting #1 at 10.0.0.2, due some day
  go_to without founding -> Connecting #1 at 10.0.0.3, due some day
  close -> Over, Closed
  watch; unwatch; commit; commit too long; vote; connected; connect failed; connect refused;
      disconnected; Welcome; VersionRefused; Done; Session; SessionEnded; Committed; Refused;
      Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error malformed; Error no session;
      Error limit of the watch; Error limit of the commit; Welcome of version 1; Pulsed settled;
      Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; half a frame; a later reply; a
      broken reply; HTTP; early; due -> nothing
)"},
    {State::Idle, "much is asked for", Part::Plain, {"watch", "commit"}, R"(
  open -> Connecting #1, due in 60000
  go_to -> Connecting #1 at 10.0.0.2, due some day
  go_to without founding -> Connecting #1 at 10.0.0.3, due some day
  close -> Over, commit 9 unknown, Closed
  watch; unwatch; commit; commit too long; vote; connected; connect failed; connect refused;
      disconnected; Welcome; VersionRefused; Done; Session; SessionEnded; Committed; Refused;
      Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error malformed; Error no session;
      Error limit of the watch; Error limit of the commit; Welcome of version 1; Pulsed settled;
      Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; half a frame; a later reply; a
      broken reply; HTTP; early; due -> nothing
)"},
    {State::Connecting, "", Part::Plain, {"open"}, R"(
  go_to -> Connecting #2 at 10.0.0.2, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day
  close -> Over, Closed
  connected -> Handshake #1, due in 5000, sends opening, sends OpenSession
  connect failed -> Pausing, due soon: no route
  connect refused -> Pausing, due soon: refused
  disconnected -> Pausing, due soon: reset
  due -> Over, Failed: could not reach the store at 10.0.0.1:29500 within 60 s: no answer
  open; watch; unwatch; commit; commit too long; vote; Welcome; VersionRefused; Done; Session;
      SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error
      malformed; Error no session; Error limit of the watch; Error limit of the commit; Welcome
      of version 1; Pulsed settled; Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; half a
      frame; a later reply; a broken reply; HTTP; early -> nothing
)"},
    {State::Connecting, "after an attempt", Part::Plain, {"open", "connect failed", "due"}, R"(
  go_to -> Connecting #3 at 10.0.0.2, due some day
  go_to without founding -> Connecting #3 at 10.0.0.3, due some day
  close -> Over, Closed
  connected -> Handshake #2, due in 5000, sends opening, sends OpenSession
  connect failed -> Pausing, due soon
  connect refused -> Pausing, due soon: refused
  disconnected -> Pausing, due soon: reset
  due -> Over, Failed: could not reach the store at 10.0.0.1:29500 within 60 s: no route
  open; watch; unwatch; commit; commit too long; vote; Welcome; VersionRefused; Done; Session;
      SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error
      malformed; Error no session; Error limit of the watch; Error limit of the commit; Welcome
      of version 1; Pulsed settled; Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; half a
      frame; a later reply; a broken reply; HTTP; early -> nothing
)"},
    {State::Connecting, "after a break", Part::Plain, way_up({"disconnected"}), R"(
  go_to -> Connecting #3 at 10.0.0.2, due some day
  go_to without founding -> Connecting #3 at 10.0.0.3, due some day
  close -> Over, session, Closed
  connected -> Handshake #2 again, session, due in 5000, sends opening, sends ResumeSession
  connect failed -> Pausing again, session, due soon: no route
  connect refused -> Pausing again, session, due soon, Down refused: refused
  disconnected -> Pausing again, session, due soon
  due -> Connecting #3 again, session, due in 500
  open; watch; unwatch; commit; commit too long; vote; Welcome; VersionRefused; Done; Session;
      SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error
      malformed; Error no session; Error limit of the watch; Error limit of the commit; Welcome
      of version 1; Pulsed settled; Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; half a
      frame; a later reply; a broken reply; HTTP; early -> nothing
)"},
    {State::Connecting, "to another store", Part::Plain, way_up({"go_to"}), R"(
  go_to -> Connecting #3 at 10.0.0.2, due some day
  go_to without founding -> Connecting #3 at 10.0.0.3, due some day
  close -> Over at 10.0.0.2, Closed
  connected -> Handshake #2 at 10.0.0.2, due some day, sends opening, sends OpenSession
  connect failed -> Stranded at 10.0.0.2, Down: no route
  connect refused -> Stranded at 10.0.0.2, Down refused: refused
  disconnected -> Stranded at 10.0.0.2, Down: reset
  due -> Stranded at 10.0.0.2, Down: no answer
  open; watch; unwatch; commit; commit too long; vote; Welcome; VersionRefused; Done; Session;
      SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error
      malformed; Error no session; Error limit of the watch; Error limit of the commit; Welcome
      of version 1; Pulsed settled; Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; half a
      frame; a later reply; a broken reply; HTTP; early -> nothing
)"},
    {State::Handshake, "", Part::Plain, {"open", "connected"}, R"(
  go_to -> Connecting #2 at 10.0.0.2, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day
  close -> Over, Closed
  disconnected -> Pausing, due soon: it closes the connection when it is greeted
  VersionRefused -> Over, Failed: the store at 10.0.0.1:29500 speaks the control protocol's
      versions 7 to 8, this program 1 to 3
  Done; Session; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved;
      Heard; Error malformed; Error no session; Error limit of the watch; Error limit of the
      commit; Pulsed settled; Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; a later
      reply -> Over, Failed: 10.0.0.1:29500 is not a drun store: it answered
  a broken reply -> Pausing, due soon: it sent a malformed message
  HTTP -> Over, Failed: 10.0.0.1:29500 is not a drun store: it answered 'HTTP/1.1 400 Bad
      Request'...
  due -> Pausing, due soon: it accepts the connection but does not answer
  open; watch; unwatch; commit; commit too long; vote; connected; connect failed; connect
      refused; Welcome; Welcome of version 1; half a frame; early -> nothing
)"},
    {State::Handshake, "welcomed", Part::Plain, {"open", "connected", "Welcome"}, R"(
  go_to -> Connecting #2 at 10.0.0.2, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day
  close -> Over, Closed
  disconnected -> Pausing, due soon: reset
  VersionRefused -> Over, Failed: the store at 10.0.0.1:29500 speaks the control protocol's
      versions 7 to 8, this program 1 to 3
  Done; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Heard -> Pausing, due
      soon: it sent an unexpected message
  Session -> Up #1, session, due in 1000, Up, renewed 0 ago
  Pulsed; Pulsed settled; Pulsed too old -> Handshake #1, due in 5000, sends Confirm
  Moved -> Pausing, due soon: it is not the job's store
  Error malformed -> Pausing, due soon: it refuses a session: what?
  Error no session -> Pausing, due soon: it refuses a session: none
  Error limit of the watch; Error limit of the commit -> Pausing, due soon: it refuses a
      session: too much
  Pulsed of 2 -> Handshake #1, due in 5000, sends Confirm, called by 2
  Pulsed of 0 -> Pausing, due soon: it is older than a store that this agent has been at
  Moved to 2 -> Stranded, Down deserted to 10.0.0.9: the job's store is not at 10.0.0.1:29500
  a broken reply; HTTP -> Pausing, due soon: it sent a malformed message
  due -> Pausing, due soon: it accepts the connection but does not answer
  open; watch; unwatch; commit; commit too long; vote; connected; connect failed; connect
      refused; Welcome; Welcome of version 1; half a frame; a later reply; early -> nothing
)"},
    {State::Handshake, "resumes", Part::Plain, way_up({"disconnected", "connected"}), R"(
  go_to -> Connecting #3 at 10.0.0.2, due some day
  go_to without founding -> Connecting #3 at 10.0.0.3, due some day
  close -> Over, session, Closed
  disconnected -> Pausing again, session, due soon: it closes the connection when it is greeted
  VersionRefused -> Over, session, Failed: the store at 10.0.0.1:29500 speaks the control
      protocol's versions 7 to 8, this program 1 to 3
  Done; Session; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved;
      Heard; Error malformed; Error no session; Error limit of the watch; Error limit of the
      commit; Pulsed settled; Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; a later
      reply -> Pausing again, session, due soon: 10.0.0.1:29500 is not a drun store: it answered
  a broken reply -> Pausing again, session, due soon: it sent a malformed message
  HTTP -> Pausing again, session, due soon: 10.0.0.1:29500 is not a drun store: it answered
      'HTTP/1.1 400 Bad Request'...
  due -> Pausing again, session, due soon: it accepts the connection but does not answer
  open; watch; unwatch; commit; commit too long; vote; connected; connect failed; connect
      refused; Welcome; Welcome of version 1; half a frame; early -> nothing
)"},
    {State::Handshake, "resumes, welcomed", Part::Plain,
     way_up({"disconnected", "connected", "Welcome"}), R"(
  go_to -> Connecting #3 at 10.0.0.2, due some day
  go_to without founding -> Connecting #3 at 10.0.0.3, due some day
  close -> Over, session, Closed
  disconnected -> Pausing again, session, due soon
  VersionRefused -> Over, session, Failed: the store at 10.0.0.1:29500 speaks the control
      protocol's versions 7 to 8, this program 1 to 3
  Done -> Up #2, session, due in 1000, Up, renewed 0 ago, all is well
  Session -> Up #2, session, due in 1000, NewSession, renewed 0 ago, all is well
  SessionEnded -> Handshake #2 again, due in 5000, sends OpenSession
  Committed; Refused; Snapshot; Changes; Counters; Heard -> Pausing again, session, due soon: it
      sent an unexpected message
  Pulsed; Pulsed settled; Pulsed too old -> Handshake #2 again, session, due in 5000, sends
      Confirm
  Moved -> Pausing again, session, due soon: it is not the job's store
  Error malformed -> Pausing again, session, due soon: it refuses a session: what?
  Error no session -> Pausing again, session, due soon: it refuses a session: none
  Error limit of the watch; Error limit of the commit -> Pausing again, session, due soon: it
      refuses a session: too much
  Pulsed of 2 -> Handshake #2 again, session, due in 5000, sends Confirm, called by 2
  Pulsed of 0 -> Pausing again, session, due soon: it is older than a store that this agent has
      been at
  Moved to 2 -> Stranded, session, Down deserted to 10.0.0.9: the job's store is not at
      10.0.0.1:29500
  a broken reply; HTTP -> Pausing again, session, due soon: it sent a malformed message
  due -> Pausing again, session, due soon: it accepts the connection but does not answer
  open; watch; unwatch; commit; commit too long; vote; connected; connect failed; connect
      refused; Welcome; Welcome of version 1; half a frame; a later reply; early -> nothing
)"},
    {State::Handshake, "at another store", Part::Plain, way_up({"go_to", "connected"}), R"(
  go_to -> Connecting #3 at 10.0.0.2, due some day
  go_to without founding -> Connecting #3 at 10.0.0.3, due some day
  close -> Over at 10.0.0.2, Closed
  disconnected -> Stranded at 10.0.0.2, Down: it closes the connection when it is greeted
  VersionRefused -> Stranded at 10.0.0.2, Down: it speaks the control protocol's versions 7 to
      8, this program 1 to 3
  Done; Session; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved;
      Heard; Error malformed; Error no session; Error limit of the watch; Error limit of the
      commit; Pulsed settled; Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; a later
      reply -> Stranded at 10.0.0.2, Down: 10.0.0.2:7 is not a drun store: it answered
  a broken reply -> Stranded at 10.0.0.2, Down: it sent a malformed message
  HTTP -> Stranded at 10.0.0.2, Down: 10.0.0.2:7 is not a drun store: it answered 'HTTP/1.1 400
      Bad Request'...
  due -> Stranded at 10.0.0.2, Down: it accepts the connection but does not answer
  open; watch; unwatch; commit; commit too long; vote; connected; connect failed; connect
      refused; Welcome; Welcome of version 1; half a frame; early -> nothing
)"},
    {State::Up, "", Part::Plain, way_up(), R"(
  watch -> Up #1, session, due in 1000, sends Watch
  commit -> Up #1, session, due in 1000, sends Transaction
  commit too long -> Up #1, session, due in 1000, commit 9 rejected
  go_to -> Connecting #2 at 10.0.0.2, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day
  close -> Closing #1, session, due in 1000, sends Goodbye
  disconnected -> Connecting #2 again, session, due in 500, Down: reset
  SessionEnded; Error no session -> Connecting #2 again, due in 500, Down: it ended the session
  Moved -> Connecting #2 again, session, due in 500, Down: it is not the job's store
  Error malformed -> Connecting #2 again, session, due in 500, Down: it refuses a message: what?
  Moved to 2 -> Stranded, session, Down deserted to 10.0.0.9: the job's store is not at
      10.0.0.1:29500
  a broken reply; HTTP -> Connecting #2 again, session, due in 500, Down: it sent a malformed
      message
  due -> Up #1, session, due in 1000, sends Heartbeat
  open; unwatch; vote; connected; connect failed; connect refused; Welcome; VersionRefused;
      Done; Session; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Heard; Error limit
      of the watch; Error limit of the commit; Welcome of version 1; Pulsed settled; Pulsed of
      2; Pulsed of 0; Pulsed too old; half a frame; a later reply; early -> nothing
)"},
    {State::Up, "much is asked for", Part::Plain, way_up({"watch", "commit"}), R"(
  watch -> Up #1, session, due in 1000, sends Unwatch, sends Watch
  unwatch -> Up #1, session, due in 1000, sends Unwatch
  commit -> Up #1, session, due in 1000, sends Transaction
  commit too long; Error limit of the commit -> Up #1, session, due in 1000, commit 9 rejected
  go_to -> Connecting #2 at 10.0.0.2, due some day, commit 9 unknown
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day, commit 9 unknown
  close -> Closing #1, session, due in 1000, sends Goodbye
  disconnected -> Connecting #2 again, session, due in 500, Down, commit 9 unknown: reset
  SessionEnded; Error no session -> Connecting #2 again, due in 500, Down, commit 9 unknown: it
      ended the session
  Committed -> Up #1, session, due in 1000, commit 9 committed
  Refused -> Up #1, session, due in 1000, commit 9 refused
  Snapshot -> Up #1, session, due in 1000, snapshot 3
  Changes -> Up #1, session, due in 1000, changes 3
  Moved -> Connecting #2 again, session, due in 500, Down, commit 9 unknown: it is not the job's
      store
  Error malformed -> Connecting #2 again, session, due in 500, Down, commit 9 unknown: it
      refuses a message: what?
  Error limit of the watch -> Up #1, session, due in 1000, watch 3 rejected
  Moved to 2 -> Stranded, session, commit 9 unknown, Down deserted to 10.0.0.9: the job's store
      is not at 10.0.0.1:29500
  a broken reply; HTTP -> Connecting #2 again, session, due in 500, Down, commit 9 unknown: it
      sent a malformed message
  due -> Up #1, session, due in 1000, sends Heartbeat
  open; vote; connected; connect failed; connect refused; Welcome; VersionRefused; Done;
      Session; Counters; Pulsed; Heard; Welcome of version 1; Pulsed settled; Pulsed of 2;
      Pulsed of 0; Pulsed too old; half a frame; a later reply; early -> nothing
)"},
    {State::Up, "a heartbeat is out", Part::Plain, way_up({"due"}), R"(
  watch -> Up #1, session, due in 1000, sends Watch
  commit -> Up #1, session, due in 1000, sends Transaction
  commit too long -> Up #1, session, due in 1000, commit 9 rejected
  go_to -> Connecting #2 at 10.0.0.2, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day
  close -> Closing #1, session, due in 1000, sends Goodbye
  disconnected -> Connecting #2 again, session, due in 500, Down: reset
  Done; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Heard; Error limit of the
      watch; Error limit of the commit; Pulsed settled; Pulsed of 2; Pulsed of 0; Pulsed too old
      -> Up #1, session, due in 1000, renewed 0 ago
  SessionEnded; Error no session -> Connecting #2 again, due in 500, Down: it ended the session
  Moved -> Connecting #2 again, session, due in 500, renewed 0 ago, Down: it is not the job's
      store
  Error malformed -> Connecting #2 again, session, due in 500, renewed 0 ago, Down: it refuses a
      message: what?
  Moved to 2 -> Stranded, session, renewed 0 ago, Down deserted to 10.0.0.9: the job's store is
      not at 10.0.0.1:29500
  a broken reply; HTTP -> Connecting #2 again, session, due in 500, Down: it sent a malformed
      message
  due -> Up #1, session, due in 1000, sends Heartbeat
  open; unwatch; vote; connected; connect failed; connect refused; Welcome; VersionRefused;
      Session; Welcome of version 1; half a frame; a later reply; early -> nothing
)"},
    {State::Pausing, "", Part::Plain, {"open", "connect failed"}, R"(
  go_to -> Connecting #2 at 10.0.0.2, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day
  close -> Over, Closed
  due -> Connecting #2, due in 59900
  open; watch; unwatch; commit; commit too long; vote; connected; connect failed; connect
      refused; disconnected; Welcome; VersionRefused; Done; Session; SessionEnded; Committed;
      Refused; Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error malformed; Error no
      session; Error limit of the watch; Error limit of the commit; Welcome of version 1; Pulsed
      settled; Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; half a frame; a later
      reply; a broken reply; HTTP; early -> nothing
)"},
    {State::Pausing, "after a break", Part::Plain, way_up({"disconnected", "connect failed"}),
     R"(
  go_to -> Connecting #3 at 10.0.0.2, due some day
  go_to without founding -> Connecting #3 at 10.0.0.3, due some day
  close -> Over, session, Closed
  due -> Connecting #3 again, session, due in 500
  open; watch; unwatch; commit; commit too long; vote; connected; connect failed; connect
      refused; disconnected; Welcome; VersionRefused; Done; Session; SessionEnded; Committed;
      Refused; Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error malformed; Error no
      session; Error limit of the watch; Error limit of the commit; Welcome of version 1; Pulsed
      settled; Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; half a frame; a later
      reply; a broken reply; HTTP; early -> nothing
)"},
    {State::Stranded, "another store was not there", Part::Plain,
     way_up({"go_to", "connect failed"}), R"(
  go_to -> Connecting #3 at 10.0.0.2, due some day
  go_to without founding -> Connecting #3 at 10.0.0.3, due some day
  close -> Over at 10.0.0.2, Closed
  open; watch; unwatch; commit; commit too long; vote; connected; connect failed; connect
      refused; disconnected; Welcome; VersionRefused; Done; Session; SessionEnded; Committed;
      Refused; Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error malformed; Error no
      session; Error limit of the watch; Error limit of the commit; Welcome of version 1; Pulsed
      settled; Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; half a frame; a later
      reply; a broken reply; HTTP; early; due -> nothing
)"},
    {State::Closing, "", Part::Plain, way_up({"close"}), R"(
  commit; commit too long -> Closing #1, session, due in 1000, commit 9 unknown
  disconnected; Done; Moved; Error malformed; Error no session; Moved to 2; a broken reply;
      HTTP; due -> Over, session, Closed
  SessionEnded -> Over, Closed
  open; watch; unwatch; vote; go_to; go_to without founding; close; connected; connect failed;
      connect refused; Welcome; VersionRefused; Session; Committed; Refused; Snapshot; Changes;
      Counters; Pulsed; Heard; Error limit of the watch; Error limit of the commit; Welcome of
      version 1; Pulsed settled; Pulsed of 2; Pulsed of 0; Pulsed too old; half a frame; a later
      reply; early -> nothing
)"},
    {State::Closing, "much is asked for", Part::Plain, way_up({"watch", "commit", "close"}), R"(
  commit; commit too long -> Closing #1, session, due in 1000, commit 9 unknown
  disconnected; Done; Moved; Error malformed; Error no session; Moved to 2; a broken reply;
      HTTP; due -> Over, session, commit 9 unknown, Closed
  SessionEnded -> Over, commit 9 unknown, Closed
  Committed -> Closing #1, session, due in 1000, commit 9 committed
  Refused -> Closing #1, session, due in 1000, commit 9 refused
  Snapshot -> Closing #1, session, due in 1000, snapshot 3
  Changes -> Closing #1, session, due in 1000, changes 3
  Error limit of the watch -> Closing #1, session, due in 1000, watch 3 rejected
  Error limit of the commit -> Closing #1, session, due in 1000, commit 9 rejected
  open; watch; unwatch; vote; go_to; go_to without founding; close; connected; connect failed;
      connect refused; Welcome; VersionRefused; Session; Counters; Pulsed; Heard; Welcome of
      version 1; Pulsed settled; Pulsed of 2; Pulsed of 0; Pulsed too old; half a frame; a later
      reply; early -> nothing
)"},
    {State::Over, "closed", Part::Plain, way_up({"close", "Done"}), R"(
  commit; commit too long -> Over, session, commit 9 unknown
  open; watch; unwatch; vote; go_to; go_to without founding; close; connected; connect failed;
      connect refused; disconnected; Welcome; VersionRefused; Done; Session; SessionEnded;
      Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error malformed;
      Error no session; Error limit of the watch; Error limit of the commit; Welcome of version
      1; Pulsed settled; Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; half a frame; a
      later reply; a broken reply; HTTP; early; due -> nothing
)"},
    {State::Over, "failed", Part::Plain, {"open", "connected", "HTTP"}, R"(
  commit; commit too long -> Over, commit 9 unknown
  open; watch; unwatch; vote; go_to; go_to without founding; close; connected; connect failed;
      connect refused; disconnected; Welcome; VersionRefused; Done; Session; SessionEnded;
      Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error malformed;
      Error no session; Error limit of the watch; Error limit of the commit; Welcome of version
      1; Pulsed settled; Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; half a frame; a
      later reply; a broken reply; HTTP; early; due -> nothing
)"},
    {State::Handshake, "of one that votes", Part::Votes, {"open", "connected"}, R"(
  vote -> Handshake #1, proof, due in 5000
  go_to -> Connecting #2 at 10.0.0.2, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day
  close -> Over, Closed
  disconnected -> Pausing, due soon: it closes the connection when it is greeted
  Welcome -> Handshake #1, due in 5000, sends OpenSuccessor after 1
  VersionRefused -> Over, Failed: the store at 10.0.0.1:29500 speaks the control protocol's
      versions 7 to 8, this program 1 to 3
  Done; Session; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved;
      Heard; Error malformed; Error no session; Error limit of the watch; Error limit of the
      commit; Pulsed settled; Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; a later
      reply -> Over, Failed: 10.0.0.1:29500 is not a drun store: it answered
  Welcome of version 1 -> Handshake #1, due in 5000, sends OpenSession
  a broken reply -> Pausing, due soon: it sent a malformed message
  HTTP -> Over, Failed: 10.0.0.1:29500 is not a drun store: it answered 'HTTP/1.1 400 Bad
      Request'...
  due -> Pausing, due soon: it accepts the connection but does not answer
  open; watch; unwatch; commit; commit too long; connected; connect failed; connect refused;
      half a frame; early -> nothing
)"},
    {State::Handshake,
     "of one that votes, welcomed",
     Part::Votes,
     {"vote", "open", "connected", "Welcome"},
     R"(
  go_to -> Connecting #2 at 10.0.0.2, proof, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, proof, due some day
  close -> Over, proof, Closed
  disconnected -> Pausing, proof, due soon: reset
  Welcome -> Handshake #1, proof, due in 5000, sends OpenSuccessor after 1 vote
  VersionRefused -> Over, proof, Failed: the store at 10.0.0.1:29500 speaks the control
      protocol's versions 7 to 8, this program 1 to 3
  Done; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Heard -> Pausing, proof,
      due soon: it sent an unexpected message
  Session -> Up #1, session, proof, due in 10, sends Pulse vote, Up
  Pulsed; Pulsed settled; Pulsed too old -> Handshake #1, proof, due in 5000, sends Confirm
  Moved -> Pausing, proof, due soon: it is not the job's store
  Error malformed -> Pausing, proof, due soon: it refuses a session: what?
  Error no session -> Pausing, proof, due soon: it refuses a session: none
  Error limit of the watch; Error limit of the commit -> Pausing, proof, due soon: it refuses a
      session: too much
  Welcome of version 1 -> Handshake #1, proof, due in 5000, sends OpenSession
  Pulsed of 2 -> Handshake #1, proof, due in 5000, sends Confirm, called by 2
  Pulsed of 0 -> Pausing, proof, due soon: it is older than a store that this agent has been at
  Moved to 2 -> Stranded, proof, Down deserted to 10.0.0.9: the job's store is not at
      10.0.0.1:29500
  a broken reply; HTTP -> Pausing, proof, due soon: it sent a malformed message
  due -> Pausing, proof, due soon: it accepts the connection but does not answer
  open; watch; unwatch; commit; commit too long; vote; connected; connect failed; connect
      refused; half a frame; a later reply; early -> nothing
)"},
    {State::Up, "votes", Part::Votes, way_up(), R"(
  watch -> Up #1, session, due in 500, sends Watch
  commit -> Up #1, session, due in 500, sends Transaction
  commit too long -> Up #1, session, due in 500, commit 9 rejected
  vote -> Up #1, session, proof, due in 10, sends Pulse vote
  go_to -> Connecting #2 at 10.0.0.2, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day
  close -> Closing #1, session, due in 1000, sends Goodbye
  disconnected -> Connecting #2 again, session, due in 250, Down: reset
  SessionEnded; Error no session -> Connecting #2 again, due in 250, Down: it ended the session
  Pulsed -> Up #1, session, due in 500, sends Confirm, renewed 10 ago
  Moved -> Connecting #2 again, session, due in 250, Down: it is not the job's store
  Error malformed -> Connecting #2 again, session, due in 250, Down: it refuses a message: what?
  Pulsed settled -> Up #1, session, proof, due in 500, sends Confirm, renewed 10 ago
  Pulsed of 2 -> Up #1, session, due in 500, sends Confirm, called by 2, renewed 10 ago
  Pulsed of 0 -> Connecting #2 again, session, due in 250, Down: it is older than a store that
      this agent has been at
  Pulsed too old -> Up #1, session, due in 100, sends Confirm
  Moved to 2 -> Stranded, session, Down deserted to 10.0.0.9: the job's store is not at
      10.0.0.1:29500
  a broken reply; HTTP -> Connecting #2 again, session, due in 250, Down: it sent a malformed
      message
  due -> Up #1, session, due in 500, sends Pulse
  open; unwatch; connected; connect failed; connect refused; Welcome; VersionRefused; Done;
      Session; Committed; Refused; Snapshot; Changes; Counters; Heard; Error limit of the watch;
      Error limit of the commit; Welcome of version 1; half a frame; a later reply; early ->
      nothing
)"},
    {State::Up, "has voted", Part::Votes, way_up({"Pulsed", "vote"}), R"(
  watch -> Up #1, session, proof, due in 10, sends Watch
  commit -> Up #1, session, proof, due in 10, sends Transaction
  commit too long -> Up #1, session, proof, due in 10, commit 9 rejected
  go_to -> Connecting #2 at 10.0.0.2, proof, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, proof, due some day
  close -> Closing #1, session, proof, due in 1000, sends Goodbye
  disconnected -> Connecting #2 again, session, proof, due in 250, Down: reset
  SessionEnded; Error no session -> Connecting #2 again, proof, due in 250, Down: it ended the
      session
  Pulsed; Pulsed too old -> Up #1, session, proof, due in 10, sends Confirm
  Moved -> Connecting #2 again, session, proof, due in 250, Down: it is not the job's store
  Error malformed -> Connecting #2 again, session, proof, due in 250, Down: it refuses a
      message: what?
  Pulsed settled -> Up #1, session, proof, due in 500, sends Confirm, renewed 10 ago
  Pulsed of 2 -> Up #1, session, proof, due in 10, sends Confirm, called by 2
  Pulsed of 0 -> Connecting #2 again, session, proof, due in 250, Down: it is older than a store
      that this agent has been at
  Moved to 2 -> Stranded, session, proof, Down deserted to 10.0.0.9: the job's store is not at
      10.0.0.1:29500
  a broken reply; HTTP -> Connecting #2 again, session, proof, due in 250, Down: it sent a
      malformed message
  due -> Up #1, session, proof, due in 20, sends Pulse vote
  open; unwatch; vote; connected; connect failed; connect refused; Welcome; VersionRefused;
      Done; Session; Committed; Refused; Snapshot; Changes; Counters; Heard; Error limit of the
      watch; Error limit of the commit; Welcome of version 1; half a frame; a later reply; early
      -> nothing
)"},
    {State::Up, "its vote is settled", Part::Votes, way_up({"Pulsed", "vote", "Pulsed settled"}),
     R"(
  watch -> Up #1, session, proof, due in 500, sends Watch
  commit -> Up #1, session, proof, due in 500, sends Transaction
  commit too long -> Up #1, session, proof, due in 500, commit 9 rejected
  go_to -> Connecting #2 at 10.0.0.2, proof, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, proof, due some day
  close -> Closing #1, session, proof, due in 1000, sends Goodbye
  disconnected -> Connecting #2 again, session, proof, due in 250, Down: reset
  SessionEnded; Error no session -> Connecting #2 again, proof, due in 250, Down: it ended the
      session
  Moved -> Connecting #2 again, session, proof, due in 250, Down: it is not the job's store
  Error malformed -> Connecting #2 again, session, proof, due in 250, Down: it refuses a
      message: what?
  Moved to 2 -> Stranded, session, proof, Down deserted to 10.0.0.9: the job's store is not at
      10.0.0.1:29500
  a broken reply; HTTP -> Connecting #2 again, session, proof, due in 250, Down: it sent a
      malformed message
  due -> Up #1, session, proof, due in 500, sends Pulse settled
  open; unwatch; vote; connected; connect failed; connect refused; Welcome; VersionRefused;
      Done; Session; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Heard; Error limit
      of the watch; Error limit of the commit; Welcome of version 1; Pulsed settled; Pulsed of
      2; Pulsed of 0; Pulsed too old; half a frame; a later reply; early -> nothing
)"},
    {State::Up,
     "votes, of version 1",
     Part::Votes,
     {"open", "connected", "Welcome of version 1", "Session"},
     R"(
  watch -> Up #1, session, due in 1000, sends Watch
  commit -> Up #1, session, due in 1000, sends Transaction
  commit too long -> Up #1, session, due in 1000, commit 9 rejected
  vote -> Up #1, session, proof, due in 1000
  go_to -> Connecting #2 at 10.0.0.2, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day
  close -> Closing #1, session, due in 1000, sends Goodbye
  disconnected -> Connecting #2 again, session, due in 500, Down: reset
  SessionEnded; Error no session -> Connecting #2 again, due in 500, Down: it ended the session
  Moved -> Connecting #2 again, session, due in 500, Down: it is not the job's store
  Error malformed -> Connecting #2 again, session, due in 500, Down: it refuses a message: what?
  Moved to 2 -> Stranded, session, Down deserted to 10.0.0.9: the job's store is not at
      10.0.0.1:29500
  a broken reply; HTTP -> Connecting #2 again, session, due in 500, Down: it sent a malformed
      message
  due -> Up #1, session, due in 1000, sends Heartbeat
  open; unwatch; connected; connect failed; connect refused; Welcome; VersionRefused; Done;
      Session; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Heard; Error limit of
      the watch; Error limit of the commit; Welcome of version 1; Pulsed settled; Pulsed of 2;
      Pulsed of 0; Pulsed too old; half a frame; a later reply; early -> nothing
)"},
    {State::Closing, "votes", Part::Votes, way_up({"close"}), R"(
  commit; commit too long -> Closing #1, session, due in 1000, commit 9 unknown
  vote -> Closing #1, session, proof, due in 1000
  disconnected; Done; Moved; Error malformed; Error no session; Pulsed of 0; Pulsed too old;
      Moved to 2; a broken reply; HTTP; due -> Over, session, Closed
  SessionEnded -> Over, Closed
  Pulsed -> Closing #1, session, due in 1000, sends Confirm, renewed 10 ago
  Pulsed settled -> Closing #1, session, proof, due in 1000, sends Confirm, renewed 10 ago
  Pulsed of 2 -> Closing #1, session, due in 1000, sends Confirm, called by 2, renewed 10 ago
  open; watch; unwatch; go_to; go_to without founding; close; connected; connect failed; connect
      refused; Welcome; VersionRefused; Session; Committed; Refused; Snapshot; Changes;
      Counters; Heard; Error limit of the watch; Error limit of the commit; Welcome of version
      1; half a frame; a later reply; early -> nothing
)"},
    {State::Handshake, "at a successor", Part::Votes,
     way_up({"Pulsed", "vote", "go_to", "connected", "Welcome"}), R"(
  go_to -> Connecting #3 at 10.0.0.2, proof, due some day
  go_to without founding -> Connecting #3 at 10.0.0.3, proof, due some day
  close -> Over at 10.0.0.2, proof, Closed
  disconnected -> Stranded at 10.0.0.2, proof, Down: reset
  VersionRefused -> Stranded at 10.0.0.2, proof, Down: it speaks the control protocol's versions
      7 to 8, this program 1 to 3
  Done; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Heard -> Stranded at
      10.0.0.2, proof, Down: it sent an unexpected message
  Session -> Up #2 at 10.0.0.2, session, proof, due in 20, sends Pulse vote, NewSession
  Pulsed; Pulsed settled; Pulsed too old -> Handshake #2 at 10.0.0.2, proof, due some day, sends
      Confirm
  Moved -> Stranded at 10.0.0.2, proof, Down: could not reach the store at 10.0.0.2:7: it is not
      the job's store
  Error malformed -> Stranded at 10.0.0.2, proof, Down: it refuses a session: what?
  Error no session -> Stranded at 10.0.0.2, proof, Down: it refuses a session: none
  Error limit of the watch; Error limit of the commit -> Stranded at 10.0.0.2, proof, Down: it
      refuses a session: too much
  Pulsed of 2 -> Handshake #2 at 10.0.0.2, proof, due some day, sends Confirm, called by 2
  Pulsed of 0 -> Stranded at 10.0.0.2, proof, Down: it is older than a store that this agent has
      been at
  Moved to 2 -> Stranded at 10.0.0.2, proof, Down deserted to 10.0.0.9: the job's store is not
      at 10.0.0.2:7
  a broken reply; HTTP -> Stranded at 10.0.0.2, proof, Down: it sent a malformed message
  due -> Stranded at 10.0.0.2, proof, Down: it accepts the connection but does not answer
  open; watch; unwatch; commit; commit too long; vote; connected; connect failed; connect
      refused; Welcome; Welcome of version 1; half a frame; a later reply; early -> nothing
)"},
    {State::Handshake, "called by a successor", Part::Votes,
     way_up({"go_to", "connected", "Welcome", "Pulsed of 2"}), R"(
  vote -> Handshake #2 at 10.0.0.2, proof, due some day
  go_to -> Connecting #3 at 10.0.0.2, due some day
  go_to without founding -> Connecting #3 at 10.0.0.3, due some day
  close -> Over at 10.0.0.2, Closed
  disconnected -> Stranded at 10.0.0.2, Down: reset
  VersionRefused -> Stranded at 10.0.0.2, Down: it speaks the control protocol's versions 7 to
      8, this program 1 to 3
  Done; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Heard -> Stranded at
      10.0.0.2, Down: it sent an unexpected message
  Session -> Up #2 at 10.0.0.2, session, due in 500, sends Pulse, NewSession generation 2
  Pulsed; Pulsed settled; Pulsed of 0; Pulsed too old -> Stranded at 10.0.0.2, Down: it is older
      than a store that this agent has been at
  Moved -> Stranded at 10.0.0.2, Down: could not reach the store at 10.0.0.2:7: it is not the
      job's store
  Error malformed -> Stranded at 10.0.0.2, Down: it refuses a session: what?
  Error no session -> Stranded at 10.0.0.2, Down: it refuses a session: none
  Error limit of the watch; Error limit of the commit -> Stranded at 10.0.0.2, Down: it refuses
      a session: too much
  Pulsed of 2 -> Handshake #2 at 10.0.0.2, due some day, sends Confirm
  Moved to 2 -> Stranded at 10.0.0.2, Down early: could not reach the store at 10.0.0.2:7: it is
      not the job's store
  a broken reply; HTTP -> Stranded at 10.0.0.2, Down: it sent a malformed message
  due -> Stranded at 10.0.0.2, Down: it accepts the connection but does not answer
  open; watch; unwatch; commit; commit too long; connected; connect failed; connect refused;
      Welcome; Welcome of version 1; half a frame; a later reply; early -> nothing
)"},
    {State::Stranded, "its store is elsewhere", Part::Votes, way_up({"Moved to 2"}), R"(
  vote -> Stranded, session, proof
  go_to -> Connecting #2 at 10.0.0.2, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day
  close -> Over, session, Closed
  open; watch; unwatch; commit; commit too long; connected; connect failed; connect refused;
      disconnected; Welcome; VersionRefused; Done; Session; SessionEnded; Committed; Refused;
      Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error malformed; Error no session;
      Error limit of the watch; Error limit of the commit; Welcome of version 1; Pulsed settled;
      Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; half a frame; a later reply; a
      broken reply; HTTP; early; due -> nothing
)"},
    {State::Idle, "founds", Part::Founds, {}, R"(
  open -> Connecting #1, due in 60000
  vote -> Idle, proof
  go_to -> Connecting #1 at 10.0.0.2, due some day
  go_to without founding -> Connecting #1 at 10.0.0.3, due some day
  close -> Over, Closed
  watch; unwatch; commit; commit too long; connected; connect failed; connect refused;
      disconnected; Welcome; VersionRefused; Done; Session; SessionEnded; Committed; Refused;
      Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error malformed; Error no session;
      Error limit of the watch; Error limit of the commit; Welcome of version 1; Pulsed settled;
      Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; half a frame; a later reply; a
      broken reply; HTTP; early; due -> nothing
)"},
    {State::Connecting, "founds", Part::Founds, {"go_to"}, R"(
  vote -> Connecting #1 at 10.0.0.2, proof, due some day
  go_to -> Connecting #2 at 10.0.0.2, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day
  close -> Over at 10.0.0.2, Closed
  connected -> Handshake #1 at 10.0.0.2, due some day, sends opening, sends OpenSuccessor after
      0 settled
  connect failed -> Stranded at 10.0.0.2, Down: no route
  connect refused -> Stranded at 10.0.0.2, Down refused: refused
  disconnected -> Stranded at 10.0.0.2, Down: reset
  due -> Stranded at 10.0.0.2, Down: no answer
  open; watch; unwatch; commit; commit too long; Welcome; VersionRefused; Done; Session;
      SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error
      malformed; Error no session; Error limit of the watch; Error limit of the commit; Welcome
      of version 1; Pulsed settled; Pulsed of 2; Pulsed of 0; Pulsed too old; Moved to 2; half a
      frame; a later reply; a broken reply; HTTP; early -> nothing
)"},
    {State::Handshake, "founds", Part::Founds, {"go_to", "connected", "Welcome"}, R"(
  vote -> Handshake #1 at 10.0.0.2, proof, due some day
  go_to -> Connecting #2 at 10.0.0.2, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day
  close -> Over at 10.0.0.2, Closed
  disconnected -> Stranded at 10.0.0.2, Down: reset
  VersionRefused -> Stranded at 10.0.0.2, Down: it speaks the control protocol's versions 7 to
      8, this program 1 to 3
  Done; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Heard -> Stranded at
      10.0.0.2, Down: it sent an unexpected message
  Session -> Up #1 at 10.0.0.2, session, due in 500, sends Pulse settled, Up generation 0
  Pulsed; Pulsed too old -> Handshake #1 at 10.0.0.2, due some day, sends Confirm, called by 1
  Moved -> Stranded at 10.0.0.2, Down: could not reach the store at 10.0.0.2:7: it is not the
      job's store
  Error malformed -> Stranded at 10.0.0.2, Down: it refuses a session: what?
  Error no session -> Stranded at 10.0.0.2, Down: it refuses a session: none
  Error limit of the watch; Error limit of the commit -> Stranded at 10.0.0.2, Down: it refuses
      a session: too much
  Pulsed settled -> Handshake #1 at 10.0.0.2, proof, due some day, sends Confirm, called by 1
  Pulsed of 2 -> Handshake #1 at 10.0.0.2, due some day, sends Confirm, called by 2
  Pulsed of 0 -> Handshake #1 at 10.0.0.2, due some day, sends Confirm
  Moved to 2 -> Stranded at 10.0.0.2, Down deserted to 10.0.0.9: the job's store is not at
      10.0.0.2:7
  a broken reply; HTTP -> Stranded at 10.0.0.2, Down: it sent a malformed message
  due -> Stranded at 10.0.0.2, Down: it accepts the connection but does not answer
  open; watch; unwatch; commit; commit too long; connected; connect failed; connect refused;
      Welcome; Welcome of version 1; half a frame; a later reply; early -> nothing
)"},
    {State::Handshake,
     "founds, called",
     Part::Founds,
     {"go_to", "connected", "Welcome", "Pulsed"},
     R"(
  vote -> Handshake #1 at 10.0.0.2, proof, due some day
  go_to -> Connecting #2 at 10.0.0.2, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day
  close -> Over at 10.0.0.2, Closed
  disconnected -> Stranded at 10.0.0.2, Down: reset
  VersionRefused -> Stranded at 10.0.0.2, Down: it speaks the control protocol's versions 7 to
      8, this program 1 to 3
  Done; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Heard -> Stranded at
      10.0.0.2, Down: it sent an unexpected message
  Session -> Up #1 at 10.0.0.2, session, due in 500, sends Pulse settled, Up
  Pulsed; Pulsed too old -> Handshake #1 at 10.0.0.2, due some day, sends Confirm
  Moved -> Stranded at 10.0.0.2, Down: could not reach the store at 10.0.0.2:7: it is not the
      job's store
  Error malformed -> Stranded at 10.0.0.2, Down: it refuses a session: what?
  Error no session -> Stranded at 10.0.0.2, Down: it refuses a session: none
  Error limit of the watch; Error limit of the commit -> Stranded at 10.0.0.2, Down: it refuses
      a session: too much
  Pulsed settled -> Handshake #1 at 10.0.0.2, proof, due some day, sends Confirm
  Pulsed of 2 -> Handshake #1 at 10.0.0.2, due some day, sends Confirm, called by 2
  Pulsed of 0 -> Stranded at 10.0.0.2, Down: it is older than a store that this agent has been
      at
  Moved to 2 -> Stranded at 10.0.0.2, Down deserted to 10.0.0.9: the job's store is not at
      10.0.0.2:7
  a broken reply; HTTP -> Stranded at 10.0.0.2, Down: it sent a malformed message
  due -> Stranded at 10.0.0.2, Down: it accepts the connection but does not answer
  open; watch; unwatch; commit; commit too long; connected; connect failed; connect refused;
      Welcome; Welcome of version 1; half a frame; a later reply; early -> nothing
)"},
    {State::Handshake,
     "a newcomer",
     Part::Founds,
     {"go_to without founding", "connected", "Welcome"},
     R"(
  vote -> Handshake #1 at 10.0.0.3, proof, due some day
  go_to -> Connecting #2 at 10.0.0.2, due some day
  go_to without founding -> Connecting #2 at 10.0.0.3, due some day
  close -> Over at 10.0.0.3, Closed
  disconnected -> Stranded at 10.0.0.3, Down: reset
  VersionRefused -> Stranded at 10.0.0.3, Down: it speaks the control protocol's versions 7 to
      8, this program 1 to 3
  Done; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Heard -> Stranded at
      10.0.0.3, Down: it sent an unexpected message
  Session -> Up #1 at 10.0.0.3, session, due in 500, sends Pulse settled, Up generation 0
  Pulsed; Pulsed too old -> Handshake #1 at 10.0.0.3, due some day, sends Confirm, called by 1
  Moved -> Stranded at 10.0.0.3, Down: could not reach the store at 10.0.0.3:7: it is not the
      job's store
  Error malformed -> Stranded at 10.0.0.3, Down: it refuses a session: what?
  Error no session -> Stranded at 10.0.0.3, Down: it refuses a session: none
  Error limit of the watch; Error limit of the commit -> Stranded at 10.0.0.3, Down: it refuses
      a session: too much
  Pulsed settled -> Handshake #1 at 10.0.0.3, proof, due some day, sends Confirm, called by 1
  Pulsed of 2 -> Handshake #1 at 10.0.0.3, due some day, sends Confirm, called by 2
  Pulsed of 0 -> Handshake #1 at 10.0.0.3, due some day, sends Confirm
  Moved to 2 -> Stranded at 10.0.0.3, Down deserted to 10.0.0.9: the job's store is not at
      10.0.0.3:7
  a broken reply; HTTP -> Stranded at 10.0.0.3, Down: it sent a malformed message
  due -> Stranded at 10.0.0.3, Down: it accepts the connection but does not answer
  open; watch; unwatch; commit; commit too long; connected; connect failed; connect refused;
      Welcome; Welcome of version 1; half a frame; a later reply; early -> nothing
)"},
};

TEST(ControlFsmTableTest, EveryEventInEveryState) {
  const auto events = all_events();
  for (const StateRow& row : kTable) {
    SCOPED_TRACE("row " + std::to_string(&row - kTable.data()) + ": " +
                 kStateNames[static_cast<int>(row.state)] + " " + row.what);
    Machine machine(row.part);
    test::go(machine, events, row.way);
    EXPECT_EQ(machine.state(), row.state);
    EXPECT_EQ(test::what_each_does<Machine>(events, row.way,
                                            [&row] { return std::make_unique<Machine>(row.part); }),
              row.does);
  }
}

TEST(ControlFsmTableTest, HasEveryStateAndEveryReply) {
  for (std::size_t i = 0; i < std::size(kStateNames); ++i) {
    EXPECT_TRUE(std::any_of(kTable.begin(), kTable.end(), [i](const StateRow& row) {
      return static_cast<std::size_t>(row.state) == i;
    })) << kStateNames[i];
  }
  const auto replies = all_replies();
  ASSERT_GE(replies.size(), std::variant_size_v<control::Reply>);
  for (std::size_t i = 0; i < std::variant_size_v<control::Reply>; ++i)
    EXPECT_EQ(replies[i].message.index(), i) << replies[i].name;
}

}  // namespace
}  // namespace drun::store
