#include "store/client/inquiry_fsm.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "support/event_table.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using Kind = Whereabouts::Kind;
using Time = InquiryFsm::Time;

// A machine, its clock, and the server's end of its connection.
struct Fixture {
  InquiryFsm fsm{{"drun/a/", 77}};
  Time now{1h};
  std::string bytes;

  void connect(std::string_view peer = "10.0.0.1") { fsm.on_connected("10.0.0.9", peer, now); }
  // The questions that it has sent.
  std::vector<control::Find> sent() {
    bytes = fsm.take_output();
    std::string_view rest = bytes;
    if (control::may_be_opening(rest) && rest.size() >= control::kOpeningBytes)
      rest.remove_prefix(control::kOpeningBytes);
    std::vector<control::Find> result;
    while (!rest.empty()) {
      const auto frame = control::next_frame(rest, 1000);
      control::Request request;
      EXPECT_EQ(control::decode_request(frame.frame, 10, request), control::DecodeStatus::Ok);
      if (const auto* find = std::get_if<control::Find>(&request)) result.push_back(*find);
      rest.remove_prefix(frame.size);
    }
    return result;
  }
  void reply(const control::Reply& message) {
    std::string answer;
    control::encode(answer, 1, message);
    fsm.on_received(answer, now);
  }
  void welcome(std::uint16_t version = 3) { reply(control::Welcome{version, 1000, 100, 500, 100}); }
  void due() {
    now = *fsm.next_deadline();
    fsm.on_time(now);
  }
  void open() {
    fsm.start(now);
    connect();
    (void)sent();
    welcome();
  }
};

TEST(InquiryFsmTest, AsksAgainAndAgain) {
  Fixture f;
  EXPECT_EQ(f.fsm.wanted_connection(), std::nullopt);
  f.fsm.start(f.now);
  EXPECT_EQ(f.fsm.answer().kind, Kind::Unknown);
  ASSERT_TRUE(f.fsm.wanted_connection());
  f.connect();
  auto questions = f.sent();
  ASSERT_EQ(questions.size(), 1U);
  EXPECT_EQ(questions[0].generation, 0U);
  EXPECT_EQ(questions[0].job, "drun/a/");
  EXPECT_EQ(questions[0].founders, 77U);
  f.welcome();
  f.reply(control::Moved{});
  EXPECT_EQ(f.fsm.answer().kind, Kind::Waits);
  const Time asked = f.now;
  f.due();
  EXPECT_EQ(f.now - asked, 1s);
  EXPECT_EQ(f.sent().size(), 1U);
}

struct Row {
  const char* what;
  control::Reply reply;
  Whereabouts expected;
  const char* peer = "10.0.0.1";
};

TEST(InquiryFsmTest, UnderstandsWhatItIsTold) {
  const std::vector<Row> rows = {
      {"it waits", control::Moved{}, {Kind::Waits, "", 0, {}}},
      {"here", control::Moved{3, "", 0}, {Kind::Here, "", 3, {}}},
      {"there", control::Moved{3, "10.0.0.7", 8}, {Kind::There, "", 3, {"10.0.0.7", 8}}},
      {"a store is looked for", control::Moved{3, "", 1}, {Kind::Sought, "", 3, {}}},
      {"a name is no place",
       control::Moved{3, "example.org", 8},
       {Kind::NoAnswer, "it names no place of use here", 0, {}}},
      {"nor is no port",
       control::Moved{3, "10.0.0.7", 0},
       {Kind::NoAnswer, "it names no place of use here", 0, {}}},
      {"its own machine",
       control::Moved{3, "127.0.0.1", 8},
       {Kind::NoAnswer, "it names no place of use here", 0, {}}},
      {"which is this one",
       control::Moved{3, "127.0.0.1", 8},
       {Kind::There, "", 3, {"127.0.0.1", 8}},
       "127.0.0.1"},
      {"an error",
       control::Error{control::ErrorCode::WrongStore, "it serves another job"},
       {Kind::NoAnswer, "it serves another job", 0, {}}},
      {"an older drun",
       control::Welcome{2, 1000, 100, 500, 100},
       {Kind::NoAnswer, "an older version of drun is there", 0, {}}},
      {"something else", control::Done{}, {Kind::NoAnswer, "no drun agent answers there", 0, {}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Fixture f;
    f.fsm.start(f.now);
    f.connect(row.peer);
    f.reply(row.reply);
    EXPECT_EQ(f.fsm.answer(), row.expected);
  }
}

TEST(InquiryFsmTest, WhatIsNoDrunIsLeftAlone) {
  Fixture f;
  f.open();
  f.fsm.on_received("HTTP/1.1 400 Bad Request\r\n", f.now);
  EXPECT_EQ(f.fsm.answer().cause, "no drun agent answers there");
  EXPECT_EQ(f.fsm.wanted_connection(), std::nullopt);
}

TEST(InquiryFsmTest, TellsWhatItKnowsAtOnce) {
  Fixture f;
  f.open();
  f.fsm.tell({2, 400, ""}, f.now);
  EXPECT_TRUE(f.sent().empty()) << "one question at a time";
  f.reply(control::Moved{});
  auto questions = f.sent();
  ASSERT_EQ(questions.size(), 1U);
  EXPECT_EQ(questions[0].generation, 2U);
  EXPECT_EQ(questions[0].host, "10.0.0.9") << "as the other end sees this one";
  EXPECT_EQ(questions[0].port, 400);
  f.reply(control::Moved{2, "10.0.0.9", 400});
  f.fsm.tell({2, 400, ""}, f.now);
  EXPECT_TRUE(f.sent().empty()) << "it has been told";
  f.fsm.tell({3, 400, "10.1.1.1"}, f.now);
  questions = f.sent();
  ASSERT_EQ(questions.size(), 1U);
  EXPECT_EQ(questions[0].host, "10.1.1.1");
}

TEST(InquiryFsmTest, WhatDoesNotAnswerIsTriedAnew) {
  Fixture f;
  f.fsm.start(f.now);
  const auto first = f.fsm.wanted_connection();
  f.fsm.on_connect_failed("refused", f.now);
  EXPECT_EQ(f.fsm.answer().cause, "refused");
  EXPECT_EQ(f.fsm.wanted_connection(), std::nullopt);
  const Time begin = f.now;
  f.due();
  EXPECT_EQ(f.now - begin, 250ms);
  EXPECT_NE(f.fsm.wanted_connection(), first);
  f.due();
  EXPECT_EQ(f.now - begin, 1250ms) << "no connection comes about";
  EXPECT_EQ(f.fsm.answer().cause, "no answer");
  f.connect();
  f.welcome();
  f.reply(control::Moved{});
  EXPECT_EQ(f.fsm.answer().kind, Kind::Waits);
  f.due();
  const auto before = f.fsm.wanted_connection();
  f.due();  // and no answer
  EXPECT_EQ(f.now - begin, 4250ms);
  EXPECT_EQ(f.fsm.answer().cause, "no answer");
  EXPECT_NE(f.fsm.wanted_connection(), before);
  f.connect();
  f.fsm.on_disconnected("it closed the connection", f.now);
  EXPECT_EQ(f.fsm.answer().cause, "it closed the connection");
}

// ---- every state, every event ----

enum class State { Idle, Connecting, Connected, Resting };
constexpr const char* kStateNames[] = {"Idle", "Connecting", "Connected", "Resting"};

// What the network makes of its wishes, and what has become of it.
struct Machine : Fixture {
  std::uint64_t connected = 0;  // the last connection that came about

  [[nodiscard]] State state() const {
    const auto wanted = fsm.wanted_connection();
    if (wanted) return *wanted == connected ? State::Connected : State::Connecting;
    return fsm.next_deadline() ? State::Resting : State::Idle;
  }
  void meet(std::string_view peer = "10.0.0.1") {
    connect(peer);
    connected = fsm.wanted_connection().value_or(connected);
  }
  void at(std::chrono::milliseconds before_due) {
    now = std::max(now, fsm.next_deadline().value_or(now + 1h) - before_due);
    fsm.on_time(now);
  }

  std::string news() {
    std::string text = kStateNames[static_cast<int>(state())];
    if (const auto wanted = fsm.wanted_connection()) text += " #" + std::to_string(*wanted);
    const auto due = fsm.next_deadline();
    const bool same = text == told && due == told_due && fsm.answer() == told_answer;
    told = text;
    if (due) text += ", due in " + std::to_string((*due - now) / 1ms);
    for (const auto& find : sent()) {
      text += ", asks";
      if (find.generation != 0)
        text += " and tells of " + std::to_string(find.generation) + " at " +
                std::string(find.host) + ":" + std::to_string(find.port);
    }
    if (fsm.answer() != told_answer) text += ", hears: " + describe(fsm.answer());
    const bool quiet = same && bytes.empty();
    told_due = due;
    told_answer = fsm.answer();
    return quiet ? "" : text;
  }
  static std::string describe(const Whereabouts& answer) {
    const std::string generation = std::to_string(answer.generation);
    switch (answer.kind) {
      case Kind::Unknown:
        return "unknown";
      case Kind::NoAnswer:
        return answer.cause;
      case Kind::Waits:
        return "it waits";
      case Kind::Here:
        return generation + " is here";
      case Kind::Sought:
        return generation + " is sought";
      case Kind::There:
        return generation + " is at " + to_string(answer.place);
    }
    return "";
  }

  std::string told = "Idle";
  std::optional<Time> told_due;
  Whereabouts told_answer;
};

// One of each kind.
const std::vector<std::pair<std::string, control::Reply>> kReplies = {
    {"Welcome", control::Welcome{3, 1000, 100, 500, 100}},
    {"VersionRefused", control::VersionRefused{7, 8, "too old"}},
    {"Done", control::Done{}},
    {"Session", control::Session{}},
    {"SessionEnded", control::SessionEnded{}},
    {"Committed", control::Committed{}},
    {"Refused", control::Refused{}},
    {"Snapshot", control::Snapshot{}},
    {"Changes", control::Changes{}},
    {"Counters", control::Counters{}},
    {"Pulsed", control::Pulsed{}},
    {"Moved", control::Moved{}},
    {"Heard", control::Heard{}},
    {"Error", control::Error{control::ErrorCode::WrongStore, "it serves another job"}}};

test::TableEvents<Machine> all_events() {
  test::TableEvents<Machine> events = {
      {"start", [](Machine& m) { m.fsm.start(m.now); }},
      {"tell",
       [](Machine& m) {
         m.fsm.tell({2, 400, "10.0.0.5"}, m.now);
       }},
      {"tell nothing", [](Machine& m) { m.fsm.tell({}, m.now); }},
      {"connected", [](Machine& m) { m.meet(); }},
      {"connect failed", [](Machine& m) { m.fsm.on_connect_failed("refused", m.now); }},
      {"disconnected", [](Machine& m) { m.fsm.on_disconnected("reset", m.now); }}};
  for (const auto& [name, reply] : kReplies)
    events.emplace_back(name, [&message = reply](Machine& m) { m.reply(message); });
  const auto also = [&events](const char* name, const control::Reply& reply) {
    events.emplace_back(name, [reply](Machine& m) { m.reply(reply); });
  };
  also("Welcome of version 2", control::Welcome{2, 1000, 100, 500, 100});
  also("Moved: here", control::Moved{3, "", 0});
  also("Moved: sought", control::Moved{3, "", 1});
  also("Moved: there", control::Moved{3, "10.0.0.7", 8});
  also("Moved: loopback", control::Moved{3, "127.0.0.1", 8});
  std::string moved;
  control::encode(moved, 1, control::Reply(control::Moved{}));
  const auto half = moved.size() / 2;
  events.emplace_back("first half of Moved", [bytes = moved.substr(0, half)](Machine& m) {
    m.fsm.on_received(bytes, m.now);
  });
  events.emplace_back("second half of Moved", [bytes = moved.substr(half)](Machine& m) {
    m.fsm.on_received(bytes, m.now);
  });
  events.emplace_back("a later reply", [](Machine& m) {
    m.fsm.on_received({"\x09\0\0\0\1\0\0\0\0\0\0\0\xEE", 13}, m.now);
  });
  events.emplace_back("HTTP", [](Machine& m) { m.fsm.on_received("HTTP/1.1 400 Bad", m.now); });
  events.emplace_back("early", [](Machine& m) { m.at(1ms); });
  events.emplace_back("due", [](Machine& m) { m.at(0ms); });
  return events;
}

struct StateRow {
  State state;
  const char* what;
  test::Way way;
  const char* does;
};

const std::vector<StateRow> kTable = {
    {State::Idle, "", {}, R"(
  start -> Connecting #1, due in 1000
  tell; tell nothing; connected; connect failed; disconnected; Welcome; VersionRefused; Done;
      Session; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved;
      Heard; Error; Welcome of version 2; Moved: here; Moved: sought; Moved: there; Moved:
      loopback; first half of Moved; second half of Moved; a later reply; HTTP; early; due ->
      nothing
)"},
    {State::Idle, "knows something", {"tell"}, R"(
  start -> Connecting #1, due in 1000
  tell; tell nothing; connected; connect failed; disconnected; Welcome; VersionRefused; Done;
      Session; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved;
      Heard; Error; Welcome of version 2; Moved: here; Moved: sought; Moved: there; Moved:
      loopback; first half of Moved; second half of Moved; a later reply; HTTP; early; due ->
      nothing
)"},
    {State::Connecting, "", {"start"}, R"(
  connected -> Connected #1, due in 2000, asks
  connect failed -> Resting, due in 250, hears: refused
  due -> Connecting #2, due in 1000, hears: no answer
  start; tell; tell nothing; disconnected; Welcome; VersionRefused; Done; Session; SessionEnded;
      Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error; Welcome of
      version 2; Moved: here; Moved: sought; Moved: there; Moved: loopback; first half of Moved;
      second half of Moved; a later reply; HTTP; early -> nothing
)"},
    {State::Connecting, "knows something", {"tell", "start"}, R"(
  connected -> Connected #1, due in 2000, asks and tells of 2 at 10.0.0.5:400
  connect failed -> Resting, due in 250, hears: refused
  due -> Connecting #2, due in 1000, hears: no answer
  start; tell; tell nothing; disconnected; Welcome; VersionRefused; Done; Session; SessionEnded;
      Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error; Welcome of
      version 2; Moved: here; Moved: sought; Moved: there; Moved: loopback; first half of Moved;
      second half of Moved; a later reply; HTTP; early -> nothing
)"},
    {State::Connecting,
     "a connection was silent",
     {"start", "connected", "Moved", "due", "due"},
     R"(
  connected -> Connected #2, due in 2000, asks
  connect failed -> Resting, due in 250, hears: refused
  due -> Connecting #3, due in 1000
  start; tell; tell nothing; disconnected; Welcome; VersionRefused; Done; Session; SessionEnded;
      Committed; Refused; Snapshot; Changes; Counters; Pulsed; Moved; Heard; Error; Welcome of
      version 2; Moved: here; Moved: sought; Moved: there; Moved: loopback; first half of Moved;
      second half of Moved; a later reply; HTTP; early -> nothing
)"},
    {State::Connected, "has asked", {"start", "connected"}, R"(
  disconnected -> Resting, due in 250, hears: reset
  VersionRefused -> Resting, due in 250, hears: it refuses this version of drun: too old
  Done; Session; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Heard;
      second half of Moved; a later reply; HTTP -> Resting, due in 250, hears: no drun agent
      answers there
  Moved -> Connected #1, due in 1000, hears: it waits
  Error -> Connected #1, due in 1000, hears: it serves another job
  Welcome of version 2 -> Resting, due in 250, hears: an older version of drun is there
  Moved: here -> Connected #1, due in 1000, hears: 3 is here
  Moved: sought -> Connected #1, due in 1000, hears: 3 is sought
  Moved: there -> Connected #1, due in 1000, hears: 3 is at 10.0.0.7:8
  Moved: loopback -> Connected #1, due in 1000, hears: it names no place of use here
  due -> Connecting #2, due in 1000, hears: no answer
  start; tell; tell nothing; connected; connect failed; Welcome; first half of Moved; early ->
      nothing
)"},
    {State::Connected, "has asked and knows more", {"start", "connected", "tell"}, R"(
  disconnected -> Resting, due in 250, hears: reset
  VersionRefused -> Resting, due in 250, hears: it refuses this version of drun: too old
  Done; Session; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Heard;
      second half of Moved; a later reply; HTTP -> Resting, due in 250, hears: no drun agent
      answers there
  Moved -> Connected #1, due in 2000, asks and tells of 2 at 10.0.0.5:400, hears: it waits
  Error -> Connected #1, due in 2000, asks and tells of 2 at 10.0.0.5:400, hears: it serves
      another job
  Welcome of version 2 -> Resting, due in 250, hears: an older version of drun is there
  Moved: here -> Connected #1, due in 2000, asks and tells of 2 at 10.0.0.5:400, hears: 3 is
      here
  Moved: sought -> Connected #1, due in 2000, asks and tells of 2 at 10.0.0.5:400, hears: 3 is
      sought
  Moved: there -> Connected #1, due in 2000, asks and tells of 2 at 10.0.0.5:400, hears: 3 is at
      10.0.0.7:8
  Moved: loopback -> Connected #1, due in 2000, asks and tells of 2 at 10.0.0.5:400, hears: it
      names no place of use here
  due -> Connecting #2, due in 1000, hears: no answer
  start; tell; tell nothing; connected; connect failed; Welcome; first half of Moved; early ->
      nothing
)"},
    {State::Connected, "half an answer", {"start", "connected", "first half of Moved"}, R"(
  disconnected -> Resting, due in 250, hears: reset
  Welcome; VersionRefused; Session; SessionEnded; Committed; Refused; Snapshot; Changes;
      Counters; Pulsed; Moved; Heard; Error; Welcome of version 2; Moved: here; Moved: sought;
      Moved: there; Moved: loopback; HTTP -> Resting, due in 250, hears: no drun agent answers
      there
  second half of Moved -> Connected #1, due in 1000, hears: it waits
  due -> Connecting #2, due in 1000, hears: no answer
  start; tell; tell nothing; connected; connect failed; Done; first half of Moved; a later
      reply; early -> nothing
)"},
    {State::Connected, "was answered", {"start", "connected", "Moved"}, R"(
  tell -> Connected #1, due in 2000, asks and tells of 2 at 10.0.0.5:400
  disconnected -> Resting, due in 250, hears: reset
  VersionRefused -> Resting, due in 250, hears: it refuses this version of drun: too old
  Done; Session; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed; Heard;
      second half of Moved; a later reply; HTTP -> Resting, due in 250, hears: no drun agent
      answers there
  Error -> Connected #1, due in 1000, hears: it serves another job
  Welcome of version 2 -> Resting, due in 250, hears: an older version of drun is there
  Moved: here -> Connected #1, due in 1000, hears: 3 is here
  Moved: sought -> Connected #1, due in 1000, hears: 3 is sought
  Moved: there -> Connected #1, due in 1000, hears: 3 is at 10.0.0.7:8
  Moved: loopback -> Connected #1, due in 1000, hears: it names no place of use here
  due -> Connected #1, due in 2000, asks
  start; tell nothing; connected; connect failed; Welcome; Moved; first half of Moved; early ->
      nothing
)"},
    {State::Resting, "", {"start", "connect failed"}, R"(
  due -> Connecting #2, due in 1000
  start; tell; tell nothing; connected; connect failed; disconnected; Welcome; VersionRefused;
      Done; Session; SessionEnded; Committed; Refused; Snapshot; Changes; Counters; Pulsed;
      Moved; Heard; Error; Welcome of version 2; Moved: here; Moved: sought; Moved: there;
      Moved: loopback; first half of Moved; second half of Moved; a later reply; HTTP; early ->
      nothing
)"},
};

TEST(InquiryFsmTest, EveryEventInEveryState) {
  const auto events = all_events();
  for (const StateRow& row : kTable) {
    SCOPED_TRACE("row " + std::to_string(&row - kTable.data()) + ": " +
                 kStateNames[static_cast<int>(row.state)] + " " + row.what);
    Machine machine;
    test::go(machine, events, row.way);
    EXPECT_EQ(machine.state(), row.state);
    EXPECT_EQ(
        test::what_each_does<Machine>(events, row.way, [] { return std::make_unique<Machine>(); }),
        row.does);
  }
}

TEST(InquiryFsmTest, TheTableHasEveryStateAndEveryReply) {
  for (std::size_t i = 0; i < std::size(kStateNames); ++i) {
    EXPECT_TRUE(std::any_of(kTable.begin(), kTable.end(), [i](const StateRow& row) {
      return static_cast<std::size_t>(row.state) == i;
    })) << kStateNames[i];
  }
  ASSERT_EQ(kReplies.size(), std::variant_size_v<control::Reply>);
  for (std::size_t i = 0; i < kReplies.size(); ++i)
    EXPECT_EQ(kReplies[i].second.index(), i) << kReplies[i].first;
}

}  // namespace
}  // namespace drun::store
