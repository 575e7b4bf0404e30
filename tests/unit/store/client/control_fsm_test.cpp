#include "store/client/control_fsm.hpp"

#include <map>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using Time = ControlFsm::Time;

ControlOptions options() {
  ControlOptions result;
  result.endpoint = {"10.0.0.1", 29500};
  result.connect_timeout = 60s;
  result.time_to_live = 6s;
  result.grace = 1s;
  result.keep_alive = 6s;
  return result;
}

// A machine, its clock, and the store's end of its connection.
class Fixture {
 public:
  explicit Fixture(ControlOptions chosen = options()) : fsm_(std::move(chosen), 1) {}

  ControlFsm& fsm() { return fsm_; }
  Time now() const { return now_; }
  void advance(std::chrono::milliseconds time) { now_ += time; }

  // Lets time pass until the machine has nothing to do before then.
  void run_for(std::chrono::milliseconds time) {
    const Time end = now_ + time;
    while (fsm_.next_deadline() && *fsm_.next_deadline() <= end) {
      now_ = std::max(now_, *fsm_.next_deadline());
      fsm_.on_time(now_);
    }
    now_ = end;
  }

  // What the machine has sent: request id and message. The opening is checked and left out.
  struct Sent {
    std::uint64_t id;
    control::Request message;
  };
  std::vector<Sent> sent() {
    bytes_ = fsm_.take_output(now_);
    std::string_view rest = bytes_;
    if (control::may_be_opening(rest) && rest.size() >= control::kOpeningBytes) {
      rest.remove_prefix(control::kOpeningBytes);
    }
    std::vector<Sent> result;
    while (!rest.empty()) {
      const auto frame = control::next_frame(rest, 1 << 20);
      EXPECT_EQ(frame.status, control::FrameStatus::Complete);
      if (frame.status != control::FrameStatus::Complete) break;
      Sent one{frame.frame.request, {}};
      EXPECT_EQ(control::decode_request(frame.frame, 1000, one.message), control::DecodeStatus::Ok);
      result.push_back(std::move(one));
      rest.remove_prefix(frame.size);
    }
    return result;
  }

  void reply(std::uint64_t id, const control::Reply& message) {
    std::string bytes;
    control::encode(bytes, id, message);
    fsm_.on_received(bytes, now_);
  }

  void welcome() { reply(0, control::Welcome{1, 1000, 100, 500, 100}); }

  // From a fresh machine, or one that wants a connection, to an open session.
  void bring_up(std::uint64_t session = 7) {
    fsm_.on_connected(now_);
    const auto requests = sent();
    ASSERT_EQ(requests.size(), 1U);
    welcome();
    reply(requests[0].id, control::Session{session, control::Token{1, 2, 3}, 6000, 1000});
  }

  // Opened, and with a session.
  void open() {
    fsm_.open(now_);
    bring_up();
  }

  std::vector<ControlEvent> events() { return fsm_.take_events(); }

  // The links among the events, as "Up", "Down ..." with their details.
  std::vector<std::pair<ControlState, std::string>> links() {
    std::vector<std::pair<ControlState, std::string>> result;
    for (auto& event : events()) {
      if (auto* link = std::get_if<ControlLink>(&event)) {
        result.emplace_back(link->state, link->detail);
      }
    }
    return result;
  }

 private:
  ControlFsm fsm_;
  Time now_{1h};
  std::string bytes_;
};

template <typename Message>
const Message* only(const std::vector<Fixture::Sent>& requests) {
  return requests.size() == 1 ? std::get_if<Message>(&requests[0].message) : nullptr;
}

// Trying again does not help.
TEST(ControlFsmTest, WithoutTheRightTokenTheFirstAttemptIsTheLast) {
  Fixture other;
  other.fsm().open(other.now());
  other.fsm().on_connected(other.now());
  other.fsm().on_refused("does not know this token", other.now());
  EXPECT_THAT(other.links(),
              ElementsAre(Pair(ControlState::Failed,
                               "the store at 10.0.0.1:29500 does not know this token")));

  Fixture none;
  none.fsm().open(none.now());
  none.fsm().on_connected(none.now());
  none.reply(0, control::Error{control::ErrorCode::NeedsToken, "whatever it says"});
  const auto links = none.links();
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].first, ControlState::Failed);
  EXPECT_THAT(links[0].second, HasSubstr("the store at 10.0.0.1:29500 asks for a token: give"));
  EXPECT_THAT(links[0].second, Not(HasSubstr("whatever")));
}

// A stranger may have the port of a store that is gone.
TEST(ControlFsmTest, WhoWasInTheJobGoesOnWhenAStrangerAnswers) {
  Fixture fixture;
  fixture.open();
  (void)fixture.links();
  fixture.fsm().on_disconnected("it closed the connection", fixture.now());
  fixture.fsm().on_connected(fixture.now());
  fixture.fsm().on_refused("does not know this token", fixture.now());
  EXPECT_THAT(fixture.links(), ElementsAre(Pair(ControlState::Down, _)));
  fixture.run_for(1100ms);
  EXPECT_TRUE(fixture.fsm().wanted_connection());

  Fixture visitor;
  visitor.fsm().go_to({"10.0.0.2", 29500}, visitor.now());
  visitor.fsm().on_connected(visitor.now());
  visitor.fsm().on_refused("does not know this token", visitor.now());
  EXPECT_THAT(visitor.links(),
              ElementsAre(Pair(ControlState::Down, HasSubstr("it does not know this token"))));
}

// Whenever that is set.
TEST(ControlFsmTest, TheGraceIsAsLongAsTheTimeToLiveUnlessItIsGiven) {
  ControlOptions chosen;
  chosen.time_to_live = 30s;
  Fixture fixture(chosen);
  fixture.fsm().open(fixture.now());
  fixture.fsm().on_connected(fixture.now());
  const auto requests = fixture.sent();
  const auto* opened = only<control::OpenSession>(requests);
  ASSERT_NE(opened, nullptr);
  EXPECT_EQ(opened->ttl_ms, 30'000U);
  EXPECT_EQ(opened->grace_ms, 30'000U);
}

// They are 32 bits of milliseconds in a message: not the rest of a division.
TEST(ControlFsmTest, TimesBeyondWhatAMessageHoldsAreTheLongestThatItHolds) {
  ControlOptions chosen = options();
  chosen.time_to_live = 24h * 60;
  chosen.grace = 24h * 50;
  Fixture fixture(chosen);
  fixture.fsm().open(fixture.now());
  fixture.fsm().on_connected(fixture.now());
  const auto requests = fixture.sent();
  const auto* opened = only<control::OpenSession>(requests);
  ASSERT_NE(opened, nullptr);
  EXPECT_EQ(opened->ttl_ms, 0xFFFFFFFF);
  EXPECT_EQ(opened->grace_ms, 0xFFFFFFFF);
}

// ---- another store ----

TEST(ControlFsmTest, GoesToAnotherStoreWithoutAWord) {
  Fixture f;
  f.open();
  f.fsm().watch(3, "a/", true);
  f.fsm().commit(9, {{}, {{"k", "v", false}}});
  (void)f.sent();
  (void)f.events();
  const auto before = f.fsm().wanted_connection();
  f.fsm().go_to({"10.0.0.2", 7}, f.now());
  EXPECT_TRUE(f.sent().empty());
  EXPECT_NE(f.fsm().wanted_connection(), before);
  EXPECT_EQ(to_string(f.fsm().endpoint()), "10.0.0.2:7");
  EXPECT_FALSE(f.fsm().is_reconnecting());
  EXPECT_EQ(f.fsm().farewell(), "");
  const auto unknown = f.events();
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_EQ(std::get<ControlCommit>(unknown[0]).outcome, ControlOutcome::Unknown);

  f.fsm().commit(10, {{}, {{"k", "w", false}}});
  f.fsm().on_connected(f.now());
  const auto requests = f.sent();
  ASSERT_NE(only<control::OpenSession>(requests), nullptr);
  f.run_for(10min);  // it answers when enough others have come
  EXPECT_TRUE(f.events().empty());
  f.welcome();
  f.reply(requests[0].id, control::Session{8, {}, 6000, 1000});
  const auto links = f.links();
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].first, ControlState::NewSession);
  const auto again = f.sent();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<control::Watch>(again[0].message));
  EXPECT_TRUE(std::holds_alternative<control::Transaction>(again[1].message));
}

TEST(ControlFsmTest, AStoreThatCannotBeReachedIsTriedOnce) {
  Fixture f;
  f.open();
  (void)f.events();
  for (const bool refused : {true, false}) {
    f.fsm().go_to({"10.0.0.2", 7}, f.now());
    f.fsm().on_connect_failed("cause", f.now(), refused);
    const auto events = f.events();
    ASSERT_EQ(events.size(), 1U);
    const auto& link = std::get<ControlLink>(events[0]);
    EXPECT_EQ(link.state, ControlState::Down);
    EXPECT_EQ(link.detail, "could not reach the store at 10.0.0.2:7: cause");
    EXPECT_EQ(link.refused, refused);
    EXPECT_EQ(f.fsm().wanted_connection(), std::nullopt);
    EXPECT_EQ(f.fsm().next_deadline(), std::nullopt);
  }
  f.fsm().go_to({"10.0.0.3", 7}, f.now());
  f.bring_up(9);
  EXPECT_EQ(f.links().at(0).first, ControlState::NewSession);
}

TEST(ControlFsmTest, AStoreThatClosesTheConnectionOnTheWayIsTriedOnce) {
  Fixture f;
  f.open();
  (void)f.events();
  f.fsm().go_to({"10.0.0.2", 7}, f.now());
  f.fsm().on_connected(f.now());
  f.fsm().on_disconnected("it closed the connection", f.now());
  const auto links = f.links();
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].first, ControlState::Down);
  EXPECT_EQ(f.fsm().wanted_connection(), std::nullopt);
}

TEST(ControlFsmTest, SaysOnceThatNobodyListensAnyMore) {
  ControlOptions chosen = options();
  for (const bool tell : {false, true}) {
    chosen.tell_refusal = tell;
    Fixture f(chosen);
    f.open();
    for (int i = 0; i < 2; ++i) {
      (void)f.events();
      f.fsm().on_disconnected("it closed the connection", f.now());
      f.fsm().on_connect_failed("Connection refused", f.now(), true);
      f.run_for(500ms);
      f.fsm().on_connect_failed("Connection refused", f.now(), true);
      std::vector<bool> refused;
      for (const auto& event : f.events()) {
        if (const auto* link = std::get_if<ControlLink>(&event)) refused.push_back(link->refused);
      }
      EXPECT_EQ(refused, tell ? std::vector<bool>({false, true}) : std::vector<bool>({false}));
      f.run_for(1s);
      f.fsm().on_connected(f.now());
      const auto requests = f.sent();
      f.welcome();
      f.reply(requests.at(0).id, control::Done{});
    }
  }
}

// ---- sessions ----

TEST(ControlFsmTest, OpensASessionInOneRoundTrip) {
  Fixture f;
  EXPECT_EQ(f.fsm().wanted_connection(), std::nullopt);
  f.fsm().open(f.now());
  EXPECT_EQ(f.fsm().wanted_connection(), 1U);
  f.fsm().on_connected(f.now());
  const auto requests = f.sent();
  const auto* open = only<control::OpenSession>(requests);
  ASSERT_NE(open, nullptr) << "behind the opening, without waiting for the welcome";
  EXPECT_EQ(open->ttl_ms, 6000U);
  EXPECT_EQ(open->grace_ms, 1000U);
  f.welcome();
  EXPECT_TRUE(f.events().empty());
  f.reply(requests[0].id, control::Session{7, {}, 6000, 1000});
  const auto links = f.links();
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].first, ControlState::Up);
}

TEST(ControlFsmTest, TheFarewellResumesTheSessionAndEndsIt) {
  Fixture f;
  EXPECT_EQ(f.fsm().farewell(), "");
  f.fsm().open(f.now());
  f.fsm().on_connected(f.now());
  const auto requests = f.sent();
  f.welcome();
  EXPECT_EQ(f.fsm().farewell(), "");
  const control::Token token = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  f.reply(requests[0].id, control::Session{258, token, 6000, 1000});
  const std::string resume(
      "\x21\0\0\0\1\0\0\0\0\0\0\0\x02\2\1\0\0\0\0\0\0"
      "\1\2\3\4\5\6\7\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10",
      37);
  const std::string goodbye("\x09\0\0\0\2\0\0\0\0\0\0\0\x04", 13);
  EXPECT_EQ(f.fsm().farewell(),
            std::string(control::kMagic) + std::string("\1\0\3\0", 4) + resume + goodbye);
  // With a sign of it for those who watch: a key that goes with the session.
  std::string signed_words = std::string(control::kMagic) + std::string("\1\0\3\0", 4) + resume;
  control::encode(signed_words, 2, control::Request(control::Transaction{{}, {{"k", "", true}}}));
  control::encode(signed_words, 3, control::Request(control::Goodbye{}));
  EXPECT_EQ(f.fsm().farewell("k"), signed_words);
}

TEST(ControlFsmTest, SendsWhatWasAskedForBeforeTheSessionInOrder) {
  Fixture f;
  f.fsm().open(f.now());
  f.fsm().commit(11, {{}, {{"k", "v", true}}});
  f.fsm().watch(3, "p/", true);
  f.bring_up();
  const auto requests = f.sent();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<control::Watch>(requests[0].message));
  EXPECT_TRUE(std::holds_alternative<control::Transaction>(requests[1].message));
  f.events();
  f.reply(requests[0].id, control::Snapshot{1, {{"p/a", "1"}}});
  f.reply(requests[1].id, control::Committed{2});
  f.reply(requests[0].id, control::Changes{3, {{"p/a", std::nullopt}, {"p/b", "2"}}});
  const auto events = f.events();
  ASSERT_EQ(events.size(), 3U);
  const auto& snapshot = std::get<ControlSnapshot>(events[0]);
  EXPECT_EQ(snapshot.watch, 3U);
  EXPECT_EQ(snapshot.entries.at(0).key, "p/a");
  EXPECT_EQ(snapshot.entries.at(0).value, "1");
  const auto& commit = std::get<ControlCommit>(events[1]);
  EXPECT_EQ(commit.request, 11U);
  EXPECT_EQ(commit.outcome, ControlOutcome::Committed);
  const auto& changes = std::get<ControlChanges>(events[2]);
  EXPECT_EQ(changes.changes.at(0).value, std::nullopt);
  EXPECT_EQ(changes.changes.at(1).value, "2");
}

// Who leads must know whether a guard has failed, so that somebody else leads, or whether the store
// takes it from nobody.
TEST(ControlFsmTest, ARefusalForALimitIsNotOneByAGuard) {
  Fixture f;
  f.open();
  f.fsm().commit(1, {{{"k", std::nullopt}}, {{"k", "v", false}}});
  f.fsm().commit(2, {{}, {{"k", std::string(2000, 'x'), false}}});  // above the welcome's limit
  const auto requests = f.sent();
  ASSERT_EQ(requests.size(), 1U);
  f.fsm().commit(3, {{}, {{"k", "v", false}}});
  f.reply(requests[0].id, control::Refused{1, {std::nullopt}});
  f.reply(f.sent().at(0).id, control::Error{control::ErrorCode::Limit, "too much"});
  std::map<std::uint64_t, ControlCommit> answers;
  std::size_t keys_per_request = 0;
  for (const auto& event : f.events()) {
    if (const auto* commit = std::get_if<ControlCommit>(&event)) answers[commit->request] = *commit;
    if (const auto* link = std::get_if<ControlLink>(&event))
      keys_per_request = link->keys_per_request;
  }
  EXPECT_EQ(keys_per_request, 100U);
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[1].outcome, ControlOutcome::Refused);
  EXPECT_EQ(answers[2].outcome, ControlOutcome::Rejected);
  EXPECT_THAT(answers[2].detail, HasSubstr("bytes is more than the store at 10.0.0.1:29500 takes"));
  EXPECT_EQ(answers[3].outcome, ControlOutcome::Rejected);
  EXPECT_EQ(answers[3].detail, "too much");
}

TEST(ControlFsmTest, WhoeverWatchesHearsThatTheStoreDoesNotShowIt) {
  Fixture f;
  f.open();
  f.fsm().watch(3, "p/", true);
  f.events();
  f.reply(f.sent().at(0).id, control::Error{control::ErrorCode::Limit, "reply too long"});
  const auto events = f.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(std::get<ControlWatchRejected>(events[0]).watch, 3U);
  EXPECT_EQ(std::get<ControlWatchRejected>(events[0]).detail, "reply too long");
  f.fsm().unwatch(3);
  EXPECT_TRUE(f.sent().empty()) << "the store has no such watch";
}

TEST(ControlFsmTest, ABreakMakesOutstandingTransactionsUnknownAndResumesTheSession) {
  Fixture f;
  f.fsm().open(f.now());
  f.bring_up(42);
  f.fsm().watch(1, "a", false);
  f.fsm().commit(5, {{}, {{"k", "v", false}}});
  f.sent();
  f.events();
  f.fsm().on_disconnected("it closed the connection", f.now());
  auto events = f.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<ControlLink>(events[0]).state, ControlState::Down);
  EXPECT_THAT(std::get<ControlLink>(events[0]).detail,
              testing::AllOf(HasSubstr("10.0.0.1:29500"), HasSubstr("closed the connection")));
  EXPECT_EQ(std::get<ControlCommit>(events[1]).outcome, ControlOutcome::Unknown);
  EXPECT_EQ(f.fsm().wanted_connection(), 2U);

  f.fsm().commit(6, {{}, {{"k", "w", false}}});  // waits for the connection
  f.fsm().on_connected(f.now());
  auto requests = f.sent();
  const auto* resume = only<control::ResumeSession>(requests);
  ASSERT_NE(resume, nullptr);
  EXPECT_EQ(resume->session, 42U);
  EXPECT_EQ(resume->token, (control::Token{1, 2, 3}));
  f.welcome();
  f.reply(requests[0].id, control::Done{});
  EXPECT_EQ(f.links().at(0).first, ControlState::Up);
  requests = f.sent();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<control::Watch>(requests[0].message)) << "a new snapshot";
  EXPECT_TRUE(std::holds_alternative<control::Transaction>(requests[1].message));
}

TEST(ControlFsmTest, AnExpiredSessionIsReplacedAndSaidToBeNew) {
  Fixture f;
  f.open();
  f.events();
  f.fsm().on_disconnected("reset", f.now());
  f.fsm().on_connected(f.now());
  const auto resume = f.sent();
  f.welcome();
  f.reply(resume.at(0).id, control::SessionEnded{control::EndReason::Unknown});
  const auto open = f.sent();
  ASSERT_NE(only<control::OpenSession>(open), nullptr);
  f.events();
  f.reply(open[0].id, control::Session{8, {}, 6000, 1000});
  EXPECT_EQ(f.links().at(0).first, ControlState::NewSession);
}

TEST(ControlFsmTest, ASessionThatTheStoreEndsIsReplacedOnANewConnection) {
  const control::Reply known_to_be_over = control::SessionEnded{control::EndReason::Silent};
  const control::Reply not_known = control::Error{control::ErrorCode::NoSession, "no session"};
  for (const auto& answer : {known_to_be_over, not_known}) {
    Fixture f;
    f.open();
    f.fsm().commit(1, {});
    const auto asked = f.sent();
    f.events();
    f.reply(answer.index() == not_known.index() ? asked.at(0).id : 0, answer);
    EXPECT_EQ(f.links().at(0).first, ControlState::Down);
    ASSERT_EQ(f.fsm().wanted_connection(), 2U);
    f.fsm().on_connected(f.now());
    EXPECT_NE(only<control::OpenSession>(f.sent()), nullptr);
  }
}

TEST(ControlFsmTest, SendsThreeHeartbeatsInATimeToLive) {
  Fixture f;
  f.open();
  f.sent();
  for (int beat = 0; beat < 6; ++beat) {
    f.run_for(1999ms);
    EXPECT_TRUE(f.sent().empty());
    f.run_for(1ms);
    const auto requests = f.sent();
    ASSERT_NE(only<control::Heartbeat>(requests), nullptr) << beat;
    f.reply(requests[0].id, control::Done{});
  }
}

TEST(ControlFsmTest, TheTimeToLiveIsTheOneThatTheStoreGrants) {
  Fixture f;
  f.fsm().open(f.now());
  f.fsm().on_connected(f.now());
  const auto requests = f.sent();
  ASSERT_EQ(requests.size(), 1U);
  f.welcome();
  f.reply(requests[0].id, control::Session{7, control::Token{1, 2, 3}, 3000, 1000});
  f.sent();
  f.run_for(999ms);
  EXPECT_TRUE(f.sent().empty());
  f.run_for(1ms);
  EXPECT_NE(only<control::Heartbeat>(f.sent()), nullptr);
}

TEST(ControlFsmTest, HeartbeatsMayBeAskedForMoreOften) {
  auto chosen = options();
  chosen.heartbeat_interval = 500ms;
  Fixture f(chosen);
  f.open();
  f.sent();
  f.run_for(499ms);
  EXPECT_TRUE(f.sent().empty());
  f.run_for(1ms);
  EXPECT_NE(only<control::Heartbeat>(f.sent()), nullptr);
}

std::vector<Time> renewals(const std::vector<ControlEvent>& events) {
  std::vector<Time> result;
  for (const auto& event : events)
    if (const auto* renewal = std::get_if<ControlRenewal>(&event)) result.push_back(renewal->sent);
  return result;
}

// The answer's own time says nothing: it may have been long on its way.
TEST(ControlFsmTest, ARenewalCountsFromWhenTheStoreWasAsked) {
  Fixture f;
  f.fsm().open(f.now());
  f.fsm().on_connected(f.now());
  const auto open = f.sent();
  const Time asked = f.now();
  f.advance(300ms);
  f.welcome();
  f.reply(open[0].id, control::Session{7, control::Token{1, 2, 3}, 6000, 1000});
  const auto events = f.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<ControlLink>(events[0])) << "first that there is a session";
  EXPECT_EQ(renewals(events), std::vector<Time>{asked});

  f.run_for(2s);
  const auto beat = f.sent();
  ASSERT_NE(only<control::Heartbeat>(beat), nullptr);
  const Time beaten = f.now();
  f.advance(1s);
  EXPECT_TRUE(renewals(f.events()).empty());
  f.reply(beat[0].id, control::Done{});
  EXPECT_EQ(renewals(f.events()), std::vector<Time>{beaten});

  f.fsm().commit(1, {{}, {{"k", "v", false}}});
  const auto commit = f.sent();
  f.reply(commit[0].id, control::Committed{3});
  EXPECT_EQ(renewals(f.events()), std::vector<Time>{f.now()}) << "any answer will do";
  f.fsm().commit(2, {{}, {{"k", "v", false}}});
  const auto again = f.sent();
  f.reply(again[0].id, control::Committed{4});
  EXPECT_TRUE(renewals(f.events()).empty()) << "known already";
}

TEST(ControlFsmTest, WhatTheStoreSaysByItselfRenewsNothing) {
  Fixture f;
  f.open();
  f.fsm().watch(3, "p/", true);
  const auto watch = f.sent();
  f.reply(watch[0].id, control::Snapshot{});
  f.run_for(2s);
  (void)f.sent();
  (void)f.events();
  f.reply(watch[0].id, control::Changes{5, {{"p/a", "1"}}});
  EXPECT_TRUE(renewals(f.events()).empty());
}

TEST(ControlFsmTest, AResumedSessionIsRenewedFromItsResumption) {
  Fixture f;
  f.open();
  (void)f.events();
  f.run_for(1s);
  f.fsm().on_disconnected("reset", f.now());
  f.run_for(200ms);
  f.fsm().on_connected(f.now());
  const Time asked = f.now();
  const auto resume = f.sent();
  f.advance(100ms);
  f.welcome();
  f.reply(resume[0].id, control::Done{});
  EXPECT_EQ(renewals(f.events()), std::vector<Time>{asked});
}

// TCP itself asks again after 1, 3 and 7 seconds only.
TEST(ControlFsmTest, AfterABreakEachAttemptIsShort) {
  Fixture f;
  f.fsm().open(f.now());
  f.run_for(10s);
  EXPECT_EQ(f.fsm().wanted_connection(), 1U) << "not before there was a session";
  EXPECT_FALSE(f.fsm().is_reconnecting());
  f.bring_up();
  EXPECT_FALSE(f.fsm().is_reconnecting());
  f.fsm().on_disconnected("reset", f.now());
  for (std::uint64_t number = 2; number < 7; ++number) {
    EXPECT_EQ(f.fsm().wanted_connection(), number);
    EXPECT_TRUE(f.fsm().is_reconnecting());
    f.run_for(999ms);
    EXPECT_EQ(f.fsm().wanted_connection(), number);
    f.run_for(1ms);
  }
  f.run_for(1s);
  EXPECT_EQ(f.fsm().wanted_connection(), std::nullopt) << "the keep-alive limit is over";
  EXPECT_FALSE(f.fsm().is_reconnecting());
}

// As a link that is down refuses it, for all of an outage.
TEST(ControlFsmTest, AfterABreakNoPauseIsLongerThanAnAttempt) {
  auto chosen = options();
  chosen.keep_alive = 60s;
  Fixture f(chosen);
  f.open();
  f.fsm().on_disconnected("reset", f.now());
  for (int attempt = 0; attempt < 50; ++attempt) {
    f.fsm().on_connect_failed("Network is unreachable", f.now());
    EXPECT_EQ(f.fsm().wanted_connection(), std::nullopt);
    EXPECT_TRUE(f.fsm().is_reconnecting());
    EXPECT_LE(*f.fsm().next_deadline() - f.now(), 1s);
    f.run_for(std::chrono::ceil<std::chrono::milliseconds>(*f.fsm().next_deadline() - f.now()));
    EXPECT_TRUE(f.fsm().wanted_connection().has_value());
  }
}

struct SilenceCase {
  std::chrono::milliseconds heartbeat_timeout;
  std::chrono::milliseconds read_timeout;
  bool asks;  // more than a heartbeat
  std::chrono::milliseconds lost_after;
};

TEST(ControlFsmTest, AStoreThatDoesNotAnswerInTimeIsLost) {
  for (const auto& [heartbeat_timeout, read_timeout, asks, lost_after] :
       std::vector<SilenceCase>{{5s, 60s, false, 6s},  // the time to live, as granted
                                {5s, 60s, true, 6s},
                                {500ms, 60s, false, 2500ms},
                                {5s, 1s, false, 3s},  // a heartbeat is a request, too
                                {5s, 1s, true, 1s},
                                {5s, 2100ms, true, 2100ms}}) {
    auto chosen = options();
    chosen.time_to_live = 8s;
    chosen.heartbeat_timeout = heartbeat_timeout;
    chosen.read_timeout = read_timeout;
    Fixture f(chosen);
    f.fsm().open(f.now());
    f.bring_up();
    f.sent();
    f.events();
    if (asks) f.fsm().commit(1, {{}, {{"k", "v", false}}});
    f.sent();
    const Time lost = f.now() + lost_after;
    while (f.now() + 1ms < lost) {
      f.run_for(1ms);
      f.sent();
    }
    EXPECT_TRUE(f.events().empty()) << lost_after.count();
    f.run_for(1ms);
    const auto events = f.events();
    ASSERT_FALSE(events.empty()) << lost_after.count();
    const auto& link = std::get<ControlLink>(events[0]);
    EXPECT_EQ(link.state, ControlState::Down);
    EXPECT_EQ(link.silent, lost_after);
    EXPECT_THAT(link.detail, HasSubstr("no answer for "));
  }
}

TEST(ControlFsmTest, AnAnswerEndsItsRequestsTimeAndThatOfThoseBefore) {
  auto chosen = options();
  chosen.read_timeout = 1s;
  Fixture f(chosen);
  f.open();
  f.sent();
  f.events();
  f.fsm().commit(1, {{}, {{"k", "v", false}}});
  ASSERT_EQ(f.sent().size(), 1U);
  f.run_for(600ms);
  f.fsm().commit(2, {{}, {{"k", "w", false}}});
  const auto second = f.sent();
  ASSERT_EQ(second.size(), 1U);
  f.run_for(399ms);
  f.reply(second[0].id - 1, control::Committed{1});
  f.run_for(600ms);
  f.reply(second[0].id, control::Committed{2});
  f.events();
  f.run_for(1000ms);
  EXPECT_TRUE(f.events().empty());
}

TEST(ControlFsmTest, GivesUpTheFirstConnectionAtItsLimitWithTheLastCause) {
  Fixture f;
  const Time start = f.now();
  f.fsm().open(f.now());
  int attempts = 0;
  while (f.fsm().next_deadline() && attempts < 1000) {
    if (f.fsm().wanted_connection()) {
      ++attempts;
      f.fsm().on_connect_failed("Connection refused", f.now());
      EXPECT_EQ(f.fsm().last_error().find("Connection refused") != std::string::npos, true);
    } else {
      f.run_for(*f.fsm().next_deadline() - f.now() < 1ms ? 1ms : 10ms);
    }
  }
  const auto links = f.links();
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].first, ControlState::Failed);
  EXPECT_EQ(links[0].second,
            "could not reach the store at 10.0.0.1:29500 within 60 s: Connection refused");
  EXPECT_GE(f.now() - start, 60s);
  EXPECT_LE(f.now() - start, 61s);
  EXPECT_GT(attempts, 40) << "pauses of a second at most, half as long again";
  EXPECT_LT(attempts, 200);
}

TEST(ControlFsmTest, AZeroLimitIsOneAttempt) {
  auto chosen = options();
  chosen.connect_timeout = 0s;
  Fixture f(chosen);
  f.fsm().open(f.now());
  f.fsm().on_connect_failed("Connection refused", f.now());
  EXPECT_EQ(f.links().at(0).second,
            "could not reach the store at 10.0.0.1:29500: Connection refused");
  EXPECT_EQ(f.fsm().next_deadline(), std::nullopt);
}

TEST(ControlFsmTest, GivesUpReconnectingAfterTheKeepAliveLimit) {
  Fixture f;
  f.open();
  f.events();
  f.fsm().commit(9, {{}, {{"k", "v", false}}});
  f.fsm().on_disconnected("reset", f.now());
  const Time start = f.now();
  f.fsm().commit(10, {{}, {{"k", "v", false}}});
  while (f.fsm().next_deadline()) {
    if (f.fsm().wanted_connection()) f.fsm().on_connect_failed("No route", f.now());
    f.run_for(5ms);
  }
  EXPECT_NEAR(static_cast<double>((f.now() - start).count()), 6e9, 1e8);
  const auto events = f.events();
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(std::get<ControlLink>(events[0]).state, ControlState::Down);
  EXPECT_EQ(std::get<ControlCommit>(events[1]).request, 9U);
  EXPECT_EQ(std::get<ControlCommit>(events[2]).request, 10U);
  EXPECT_EQ(std::get<ControlLink>(events[3]).state, ControlState::Failed);
  EXPECT_EQ(std::get<ControlLink>(events[3]).detail,
            "lost the store at 10.0.0.1:29500 and could not reach it again within 6 s: No route");
  // Nothing more comes, except the answer that every transaction gets.
  f.fsm().commit(11, {});
  EXPECT_EQ(f.events().size(), 1U);
}

TEST(ControlFsmTest, APeerThatIsNoStoreIsNamedAtOnce) {
  for (const char* answer : {"HTTP/1.1 400 Bad Request\r\n", "SSH-2.0-OpenSSH_9.2p1\r\n"}) {
    Fixture f;
    f.fsm().open(f.now());
    f.fsm().on_connected(f.now());
    f.fsm().on_received(answer, f.now());
    const auto links = f.links();
    ASSERT_EQ(links.size(), 1U) << answer;
    EXPECT_EQ(links[0].first, ControlState::Failed);
    EXPECT_THAT(links[0].second, HasSubstr("10.0.0.1:29500 is not a drun store: it answered"));
  }
}

TEST(ControlFsmTest, APeerThatClosesEveryGreetingIsNoStore) {
  Fixture f;
  f.fsm().open(f.now());
  std::vector<std::pair<ControlState, std::string>> links;
  int greetings = 0;
  while (links.empty() && greetings < 100) {
    if (f.fsm().wanted_connection()) {
      f.fsm().on_connected(f.now());
      f.fsm().on_disconnected("it closed the connection", f.now());
      ++greetings;
    }
    links = f.links();
    f.run_for(5ms);
  }
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].first, ControlState::Failed);
  EXPECT_THAT(links[0].second, HasSubstr("is not a drun store"));
  EXPECT_GT(greetings, 3) << "a store that ends closes some too";
}

TEST(ControlFsmTest, APeerThatStaysSilentIsTriedAgain) {
  Fixture f;
  f.fsm().open(f.now());
  f.fsm().on_connected(f.now());
  f.run_for(5s);
  EXPECT_THAT(f.fsm().last_error(), HasSubstr("does not answer"));
  f.run_for(100ms);
  EXPECT_EQ(f.fsm().wanted_connection(), 2U);
}

TEST(ControlFsmTest, AnUnknownVersionIsRefusedByName) {
  Fixture f;
  f.fsm().open(f.now());
  f.fsm().on_connected(f.now());
  f.reply(0, control::VersionRefused{2, 3, "too old"});
  EXPECT_EQ(f.links().at(0).second,
            "the store at 10.0.0.1:29500 speaks the control protocol's versions 2 to 3, this "
            "program 1 to 3");
}

TEST(ControlFsmTest, CloseSaysGoodbyeAfterWhatWasCommitted) {
  Fixture f;
  f.open();
  f.sent();
  f.events();
  f.fsm().commit(1, {{}, {{"k", "v", false}}});
  f.fsm().close(f.now());
  const auto requests = f.sent();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<control::Transaction>(requests[0].message));
  EXPECT_TRUE(std::holds_alternative<control::Goodbye>(requests[1].message));
  f.reply(requests[0].id, control::Committed{1});
  f.reply(requests[1].id, control::Done{});
  const auto events = f.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<ControlCommit>(events[0]).outcome, ControlOutcome::Committed);
  EXPECT_EQ(std::get<ControlLink>(events[1]).state, ControlState::Closed);
  EXPECT_EQ(f.fsm().wanted_connection(), std::nullopt);
}

TEST(ControlFsmTest, CloseEndsWithinASecondWithoutAnAnswer) {
  Fixture f;
  f.open();
  f.events();
  f.fsm().commit(1, {});
  f.fsm().close(f.now());
  f.run_for(999ms);
  EXPECT_TRUE(f.events().empty());
  f.run_for(1ms);
  const auto events = f.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<ControlCommit>(events[0]).outcome, ControlOutcome::Unknown);
  EXPECT_EQ(std::get<ControlLink>(events[1]).state, ControlState::Closed);
}

TEST(ControlFsmTest, CloseWithoutAConnectionEndsAtOnce) {
  Fixture idle;
  idle.fsm().close(idle.now());
  EXPECT_EQ(idle.links().at(0).first, ControlState::Closed);
  Fixture down;
  down.fsm().open(down.now());
  down.fsm().close(down.now());
  EXPECT_EQ(down.links().at(0).first, ControlState::Closed);
  EXPECT_EQ(down.fsm().next_deadline(), std::nullopt);
}

TEST(ControlFsmTest, AnUnwatchedWatchIsNotHeardOfAgain) {
  Fixture f;
  f.open();
  f.fsm().watch(1, "a", false);
  const auto watch = f.sent();
  f.fsm().unwatch(1);
  f.fsm().watch(1, "b", false);  // the same name for another key
  const auto requests = f.sent();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(std::get<control::Unwatch>(requests[0].message).watch, watch.at(0).id);
  f.events();
  f.reply(watch[0].id, control::Snapshot{1, {{"a", "1"}}});
  EXPECT_TRUE(f.events().empty());
  f.reply(requests[0].id, control::Done{});
  f.reply(requests[1].id, control::Snapshot{1, {{"b", "2"}}});
  ASSERT_EQ(f.events().size(), 1U);
}

// ---- votes ----

Place place(std::uint32_t rank, std::uint64_t round = 1) {
  return {{1, round}, rank, 3, 0};
}

// A machine that votes, at a store of the protocol's version 2.
class VotingFixture : public Fixture {
 public:
  VotingFixture() : Fixture(voting_options()) {}

  static ControlOptions voting_options() {
    ControlOptions chosen = options();
    chosen.job = "drun/a/";
    chosen.heartbeat_interval = 1s;
    return chosen;
  }
  void welcome_2() { reply(0, control::Welcome{2, 1000, 100, 500, 100}); }
  void open_2() {
    fsm().open(now());
    fsm().on_connected(now());
    EXPECT_TRUE(sent().empty()) << "an older store could not be told of the job";
    welcome_2();
    const auto requests = sent();
    const auto* asked = only<control::OpenSuccessor>(requests);
    ASSERT_NE(asked, nullptr);
    EXPECT_EQ(asked->job, "drun/a/");
    reply(requests[0].id, control::Session{7, control::Token{1, 2, 3}, 6000, 1000});
  }
  // The number of the only request, a pulse.
  std::uint64_t pulse(const Vote& vote) {
    const auto requests = sent();
    const auto* found = only<control::Pulse>(requests);
    EXPECT_NE(found, nullptr);
    if (found == nullptr) return 0;
    EXPECT_EQ(found->job, "drun/a/");
    EXPECT_EQ(found->vote, vote);
    return requests[0].id;
  }
  void pulsed(std::uint64_t id, std::uint32_t age_ms, const Place& settled = {},
              std::uint64_t generation = 1) {
    reply(id, control::Pulsed{generation, age_ms, settled, 99});
  }
  void expect_confirmed() {
    const auto requests = sent();
    const auto* confirmed = only<control::Confirm>(requests);
    ASSERT_NE(confirmed, nullptr);
    EXPECT_EQ(confirmed->stamp, 99U);
  }
};

TEST(ControlFsmTest, OfAClientThatVotesOnlyTheAgeOfTheMajorityRenews) {
  VotingFixture f;
  f.open_2();
  EXPECT_TRUE(renewals(f.events()).empty()) << "a session alone is nothing";
  const Time asked = f.now();
  const std::uint64_t first = f.pulse({});
  f.advance(40ms);
  f.pulsed(first, 10);
  EXPECT_EQ(renewals(f.events()), std::vector<Time>{asked - 10ms});
  f.expect_confirmed();
  f.fsm().commit(1, {});
  const auto commit = f.sent();
  f.advance(1s);
  f.reply(commit.at(0).id, control::Committed{1});
  EXPECT_TRUE(renewals(f.events()).empty());
}

// What is settled there may be of a job that is lost, and would go from store to store with it.
TEST(ControlFsmTest, OfAStoreWithoutAMajorityItLearnsNoRound) {
  VotingFixture f;
  f.open_2();
  f.pulsed(f.pulse({}), control::Pulsed::kNever, place(kNoRank));
  f.expect_confirmed();
  f.run_for(500ms);
  f.pulsed(f.pulse({}), 6'000, place(kNoRank));
  f.expect_confirmed();
  f.run_for(500ms);
  (void)f.pulse({place(kNoRank), {}});
}

TEST(ControlFsmTest, NorOfOneThatHadAMajorityTooLongAgo) {
  VotingFixture f;
  f.open_2();
  f.pulsed(f.pulse({}), 0);
  f.expect_confirmed();
  f.run_for(500ms);
  f.pulsed(f.pulse({}), 6'001, place(kNoRank));
  f.events();
  f.fsm().go_to({"10.0.0.2", 7}, f.now());
  f.fsm().on_connected(f.now());
  const auto requests = f.sent();
  const auto* asked = only<control::OpenSuccessor>(requests);
  ASSERT_NE(asked, nullptr);
  EXPECT_EQ(asked->vote, Vote{});
}

TEST(ControlFsmTest, AVoteIsSaidAtOnceAndTwiceAsOftenAsAHeartbeat) {
  VotingFixture f;
  f.open_2();
  f.pulsed(f.pulse({}), 0);
  f.expect_confirmed();
  f.fsm().vote(place(2), f.now());
  const Vote given{{}, {place(2)}};
  const std::uint64_t pulse = f.pulse(given);
  f.fsm().vote(place(2), f.now());
  EXPECT_TRUE(f.sent().empty()) << "it was said";
  f.events();
  f.pulsed(pulse, 0, place(kNoRank));
  const auto events = f.events();
  ASSERT_EQ(events.size(), 1U) << "soon after another, but something is settled";
  EXPECT_EQ(std::get<ControlRenewal>(events[0]).settled, (ElectorateId{1, 1}));
  f.expect_confirmed();
  f.run_for(499ms);
  EXPECT_TRUE(f.sent().empty());
  f.run_for(1ms);
  f.pulsed(f.pulse({place(2), {}}), 0, place(kNoRank));
  f.sent();
  f.events();
  f.fsm().vote(place(1, 2), f.now());
  f.pulsed(f.sent().at(0).id, 0, place(kNoRank));
  EXPECT_TRUE(renewals(f.events()).empty()) << "soon after another, and nothing more is settled";
}

// Workers of a round with new nodes wait for the word that it is settled.
TEST(ControlFsmTest, AVoteThatIsNotSettledYetIsSaidAgainSoon) {
  VotingFixture f;
  f.open_2();
  f.pulsed(f.pulse({}), 0);
  f.fsm().vote(place(2), f.now());
  f.sent();
  std::vector<std::chrono::milliseconds> pauses;
  for (int i = 0; i < 8; ++i) {
    pauses.push_back(
        std::chrono::ceil<std::chrono::milliseconds>(*f.fsm().next_deadline() - f.now()));
    f.run_for(pauses.back());
    const auto requests = f.sent();
    const auto* pulse = only<control::Pulse>(requests);
    ASSERT_NE(pulse, nullptr);
    f.pulsed(requests[0].id, 0, i < 7 ? Place{} : place(kNoRank));
    f.sent();
  }
  EXPECT_THAT(pauses, testing::ElementsAre(10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 500ms, 500ms));
  EXPECT_EQ(*f.fsm().next_deadline(), f.now() + 500ms) << "settled";
  f.fsm().vote(place(1, 2), f.now());
  EXPECT_EQ(*f.fsm().next_deadline(), f.now() + 10ms) << "of each round";
}

// The store may be back for a moment only before its clients go elsewhere.
TEST(ControlFsmTest, WhoVotesTriesAStoreThatHasGoneFourTimesInABeat) {
  VotingFixture f;
  f.open_2();
  f.fsm().on_disconnected("reset", f.now());
  for (int attempt = 0; attempt < 10; ++attempt) {
    f.fsm().on_connect_failed("Network is unreachable", f.now());
    EXPECT_LE(*f.fsm().next_deadline() - f.now(), 250ms);
    f.run_for(std::chrono::ceil<std::chrono::milliseconds>(*f.fsm().next_deadline() - f.now()));
    EXPECT_TRUE(f.fsm().wanted_connection().has_value());
    EXPECT_LE(*f.fsm().next_deadline() - f.now(), 250ms);
  }
}

TEST(ControlFsmTest, AVoteThatComesBeforeTheSessionIsSaidWithIt) {
  VotingFixture f;
  f.fsm().vote(place(1), f.now());
  f.open_2();
  f.pulse({{}, {place(1)}});
}

TEST(ControlFsmTest, ARenewalNeverGoesBack) {
  VotingFixture f;
  f.open_2();
  f.pulsed(f.pulse({}), 0);
  f.expect_confirmed();
  f.events();
  f.run_for(500ms);
  f.pulsed(f.pulse({}), 3000);
  EXPECT_TRUE(renewals(f.events()).empty());
}

TEST(ControlFsmTest, LeavesAStoreWhoseMajorityIsElsewhere) {
  VotingFixture f;
  f.open_2();
  f.fsm().commit(3, {});
  f.pulsed(f.sent().at(0).id, 6000);
  EXPECT_TRUE(f.fsm().wanted_connection().has_value()) << "not yet";
  f.sent();
  f.events();
  f.run_for(500ms);
  f.pulsed(f.pulse({}), 6001);
  EXPECT_EQ(f.fsm().wanted_connection(), std::nullopt);
  EXPECT_EQ(f.fsm().next_deadline(), std::nullopt);
  const auto events = f.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<ControlCommit>(events[0]).outcome, ControlOutcome::Unknown);
  const auto& link = std::get<ControlLink>(events[1]);
  EXPECT_EQ(link.state, ControlState::Down);
  EXPECT_TRUE(link.deserted);
  EXPECT_EQ(link.silent, 6001ms);
  EXPECT_EQ(link.detail, "most nodes of the job are not with the store at 10.0.0.1:29500");
}

// Without it there may have been no majority: it was suspended, or has just come back.
TEST(ControlFsmTest, WhoHasBeenSilentItselfSeesWhetherAMajorityIsThereWithIt) {
  for (const bool comes : {true, false}) {
    VotingFixture f;
    f.open_2();
    f.pulsed(f.sent().at(0).id, 0);
    f.sent();
    f.events();
    f.run_for(500ms);
    const std::uint64_t late = f.pulse({});
    f.advance(3001ms);
    f.pulsed(late, 6001);
    EXPECT_TRUE(f.events().empty()) << "its answer does not count yet";
    f.expect_confirmed();
    for (unsigned again = 0; again < 3; ++again) {
      EXPECT_TRUE(f.fsm().wanted_connection().has_value()) << again;
      f.run_for(100ms);
      if (comes) {
        f.pulsed(f.pulse({}), 20);
        break;
      }
      f.pulsed(f.pulse({}), 6101 + 100 * again);
      if (again < 2) f.expect_confirmed();
    }
    EXPECT_EQ(f.fsm().wanted_connection().has_value(), comes);
    EXPECT_EQ(renewals(f.events()).size(), comes ? 1U : 0U);
  }
}

// It knows of no majority before one has come back to it, and the first who is back is no majority.
TEST(ControlFsmTest, AStoreThatWasStartedAgainHasItsTimeToBeWithAMajority) {
  constexpr auto kNever = control::Pulsed::kNever;
  VotingFixture f;
  f.open_2();
  f.pulsed(f.pulse({}), 0);
  const Time renewed = f.now();
  f.expect_confirmed();
  f.run_for(400ms);
  f.fsm().on_disconnected("reset", f.now());
  f.fsm().on_connected(f.now());
  const auto requests = f.sent();
  ASSERT_NE(only<control::ResumeSession>(requests), nullptr);
  f.welcome_2();
  f.reply(requests[0].id, control::Done{});
  f.events();
  f.pulsed(f.pulse({}), kNever);
  EXPECT_TRUE(f.events().empty()) << "it stays, and nothing is renewed";
  f.expect_confirmed();
  f.run_for(500ms);
  f.pulsed(f.pulse({}), 20);
  EXPECT_THAT(renewals(f.events()), testing::ElementsAre(f.now() - 20ms)) << "a majority is back";
  f.expect_confirmed();
  for (int beat = 0; beat < 12; ++beat) {
    f.run_for(500ms);
    f.pulsed(f.pulse({}), kNever);
    if (beat < 11) f.expect_confirmed();
  }
  const auto events = f.events();
  ASSERT_EQ(events.size(), 1U) << "counted from the last renewal";
  const auto& link = std::get<ControlLink>(events[0]);
  EXPECT_TRUE(link.deserted);
  EXPECT_EQ(link.silent, f.now() - (renewed + 880ms));
}

TEST(ControlFsmTest, AtSuchAStoreANewcomerWaitsForTheOthersFromItsFirstSessionOn) {
  VotingFixture f;
  f.open_2();
  f.events();
  for (int beat = 0; beat <= 12; ++beat) {
    f.pulsed(f.pulse({}), control::Pulsed::kNever);
    EXPECT_TRUE(f.events().empty()) << beat;
    f.expect_confirmed();
    f.run_for(500ms);
  }
  f.pulsed(f.pulse({}), control::Pulsed::kNever);
  EXPECT_TRUE(std::get<ControlLink>(f.events().at(0)).deserted);
}

TEST(ControlFsmTest, AStoreOfVersionOneIsAskedAsEver) {
  Fixture f(VotingFixture::voting_options());
  f.fsm().open(f.now());
  f.fsm().on_connected(f.now());
  f.reply(0, control::Welcome{1, 1000, 100, 500, 100});
  const auto requests = f.sent();
  ASSERT_NE(only<control::OpenSession>(requests), nullptr) << "it knows no other request";
  f.reply(requests[0].id, control::Session{7, control::Token{1, 2, 3}, 6000, 1000});
  EXPECT_EQ(renewals(f.events()).size(), 1U);
  f.fsm().vote(place(0), f.now());
  EXPECT_TRUE(f.sent().empty());
  f.run_for(1s);
  EXPECT_NE(only<control::Heartbeat>(f.sent()), nullptr);
}

TEST(ControlFsmTest, WaitsAtASuccessorUntilItIsWelcomed) {
  VotingFixture f;
  f.fsm().vote(place(1), f.now());
  f.open_2();
  f.pulsed(f.pulse({{}, {place(1)}}), 0, place(kNoRank));
  f.events();
  const Time confirmed = f.now();
  f.run_for(1s);
  f.sent();
  f.fsm().go_to({"10.0.0.2", 7}, f.now());
  f.fsm().on_connected(f.now());
  const auto requests = f.sent();
  const auto* asked = only<control::OpenSuccessor>(requests);
  ASSERT_NE(asked, nullptr);
  EXPECT_EQ(std::chrono::milliseconds(asked->silent_ms), f.now() - confirmed);
  EXPECT_EQ(asked->generation, 1U);
  EXPECT_EQ(asked->ttl_ms, 6000U);
  EXPECT_EQ(asked->vote, (Vote{place(1), {}}));
  f.welcome_2();
  f.run_for(1h);
  EXPECT_TRUE(f.events().empty()) << "the caller decides how long it waits";
  const std::string proof = f.fsm().proof_of_death();
  f.pulsed(requests[0].id, control::Pulsed::kNever, place(kNoRank), 4);
  f.expect_confirmed();
  const auto calls = f.events();
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(std::get<ControlCall>(calls[0]).generation, 4U);
  EXPECT_NE(f.fsm().proof_of_death(), proof) << "it is of the later store's generation";
  f.pulsed(requests[0].id, control::Pulsed::kNever, place(kNoRank), 4);
  f.expect_confirmed();
  EXPECT_TRUE(f.events().empty()) << "it was told";
  f.reply(requests[0].id, control::Session{9, {}, 6000, 1000});
  const auto events = f.events();
  ASSERT_EQ(events.size(), 1U);
  const auto& link = std::get<ControlLink>(events[0]);
  EXPECT_EQ(link.state, ControlState::NewSession);
  EXPECT_EQ(link.generation, 4U);
  EXPECT_EQ(link.detail, "found the store at 10.0.0.2:7");
  f.pulsed(f.pulse({place(1), {}}), 0, place(kNoRank), 4);
  EXPECT_EQ(renewals(f.events()).size(), 1U);
}

TEST(ControlFsmTest, GoesToNoStoreThatIsOlderThanOneThatHasCalledIt) {
  VotingFixture f;
  f.open_2();
  f.pulsed(f.pulse({}), 0);
  f.fsm().go_to({"10.0.0.2", 7}, f.now());
  f.fsm().on_connected(f.now());
  std::uint64_t id = f.sent().at(0).id;
  f.welcome_2();
  f.pulsed(id, control::Pulsed::kNever, place(kNoRank), 5);
  f.fsm().go_to({"10.0.0.3", 7}, f.now());
  f.fsm().on_connected(f.now());
  const auto requests = f.sent();
  ASSERT_NE(only<control::OpenSuccessor>(requests), nullptr);
  EXPECT_EQ(only<control::OpenSuccessor>(requests)->generation, 5U);
  f.welcome_2();
  f.events();
  f.pulsed(requests[0].id, 0, place(kNoRank), 4);
  EXPECT_EQ(f.links().at(0).first, ControlState::Down);
  EXPECT_TRUE(f.sent().empty()) << "confirms nothing";
  EXPECT_EQ(f.fsm().wanted_connection(), std::nullopt);
}

TEST(ControlFsmTest, TheProofOfADeathHasTheVoteAndTheGeneration) {
  VotingFixture f;
  EXPECT_EQ(f.fsm().proof_of_death(), "") << "it has no vote";
  f.fsm().vote(place(1), f.now());
  std::string expected;
  control::encode_opening(expected);
  control::encode(expected, 1, control::Request(control::Gone{1, "drun/a/", {{}, {place(1)}}}));
  EXPECT_EQ(f.fsm().proof_of_death(), expected);
  Fixture other;
  other.fsm().vote(place(1), other.now());
  EXPECT_EQ(other.fsm().proof_of_death(), "") << "it does not vote";
}

TEST(ControlFsmTest, WithMoreRoundsThanAVoteHoldsNothingIsRenewed) {
  VotingFixture f;
  f.open_2();
  f.pulsed(f.pulse({}), 0);
  for (std::uint64_t round = 1; round <= kMostPlaces + 1; ++round)
    f.fsm().vote(place(1, round), f.now());
  const auto requests = f.sent();
  f.events();
  f.run_for(10ms);
  f.pulsed(f.pulse({}), 0);
  EXPECT_TRUE(renewals(f.events()).empty());
  f.expect_confirmed();
  f.run_for(20ms);
  f.pulsed(f.pulse({}), 0, place(kNoRank, 3));
  EXPECT_EQ(renewals(f.events()).size(), 1U);
  EXPECT_NE(f.fsm().proof_of_death(), "");
}

TEST(ControlFsmTest, MalformedBytesBreakTheConnectionAndNothingElse) {
  Fixture f;
  f.open();
  f.events();
  f.fsm().on_received(std::string(64, '\xff'), f.now());
  EXPECT_EQ(f.links().at(0).first, ControlState::Down);
  EXPECT_EQ(f.fsm().wanted_connection(), 2U);
}

TEST(ControlFsmTest, RepliesSplitAnywhereMeanTheSame) {
  std::string bytes;
  control::encode(bytes, 0, control::Welcome{1, 1000, 100, 500, 100});
  control::encode(bytes, 1, control::Session{7, {}, 6000, 1000});
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    Fixture f;
    f.fsm().open(f.now());
    f.fsm().on_connected(f.now());
    f.fsm().on_received(std::string_view(bytes).substr(0, cut), f.now());
    f.fsm().on_received(std::string_view(bytes).substr(cut), f.now());
    const auto links = f.links();
    ASSERT_EQ(links.size(), 1U) << cut;
    EXPECT_EQ(links[0].first, ControlState::Up) << cut;
  }
}

// ---- a store whose place is not known ----

ControlOptions founding_options() {
  ControlOptions result = VotingFixture::voting_options();
  result.founding = true;
  result.founder = {{0, 77}, 1, 3, kNoRank};
  return result;
}

TEST(ControlFsmTest, AFounderBringsItsPlace) {
  Fixture f(founding_options());
  f.fsm().go_to({"10.0.0.2", 7}, f.now());
  EXPECT_EQ(f.fsm().endpoint().host, "10.0.0.2");
  f.fsm().on_connected(f.now());
  const auto requests = f.sent();
  const auto* asked = only<control::OpenSuccessor>(requests);
  ASSERT_NE(asked, nullptr);
  EXPECT_EQ(asked->generation, 0U);
  EXPECT_EQ(asked->vote, (Vote{founding_options().founder, {}}));
  EXPECT_EQ(f.fsm().proof_of_death(), "") << "it may come back";
  f.reply(0, control::Welcome{3, 1000, 100, 500, 100});
  f.reply(requests[0].id, control::Pulsed{1, control::Pulsed::kNever, {}, 4});
  f.reply(requests[0].id, control::Session{9, {}, 6000, 1000});
  const auto events = f.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<ControlCall>(events[0]).generation, 1U);
  EXPECT_EQ(std::get<ControlLink>(events[1]).state, ControlState::Up);
  EXPECT_EQ(std::get<ControlLink>(events[1]).generation, 1U);
}

// The one that called it twice had no majority in the end: the others have begun at another place.
TEST(ControlFsmTest, ANewcomerIsNotBoundByACallWhereNoStoreBegan) {
  const auto arrive = [](Fixture& f, const char* host, bool founds) {
    f.fsm().go_to({host, 7}, f.now(), founds);
    f.fsm().on_connected(f.now());
    auto requests = f.sent();
    f.reply(0, control::Welcome{3, 1000, 100, 500, 100});
    return requests;
  };
  const auto generation_of = [](const auto& requests) {
    const auto* asked = only<control::OpenSuccessor>(requests);
    return asked == nullptr ? 99U : asked->generation;
  };
  Fixture f(founding_options());
  auto asked = arrive(f, "10.0.0.2", true);
  f.reply(asked[0].id, control::Pulsed{2, control::Pulsed::kNever, {}, 4});
  f.events();
  asked = arrive(f, "10.0.0.3", true);
  EXPECT_EQ(generation_of(asked), 2U) << "a founder's place counts";
  f.reply(asked[0].id, control::Pulsed{1, 0, {}, 5});
  EXPECT_EQ(std::get<ControlLink>(f.events().at(0)).state, ControlState::Down);
  asked = arrive(f, "10.0.0.3", false);
  EXPECT_EQ(generation_of(asked), 0U);
  f.reply(asked[0].id, control::Pulsed{1, 0, {}, 5});
  f.reply(asked[0].id, control::Session{9, {}, 6000, 1000});
  const auto events = f.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(std::get<ControlLink>(events[0]).state, ControlState::Up);
  EXPECT_EQ(std::get<ControlLink>(events[0]).generation, 1U);
  f.fsm().go_to({"10.0.0.2", 7}, f.now(), false);  // it has a part in the job now
  f.fsm().on_connected(f.now());
  EXPECT_EQ(generation_of(f.sent()), 1U);
}

TEST(ControlFsmTest, WhoIsTurnedAwayIsToldWhereTo) {
  struct Row {
    const char* what;
    control::Moved moved;
    bool told;
  };
  const std::vector<Row> rows = {
      {"a later store", {2, "10.0.0.9", 7}, true}, {"IPv6", {2, "fd00::1", 7}, true},
      {"nobody knows", {0, "", 0}, false},         {"a name", {2, "example.org", 7}, false},
      {"no port", {2, "10.0.0.9", 0}, false},      {"no place", {2, "", 7}, false}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    Fixture f(founding_options());
    f.fsm().go_to({"10.0.0.2", 7}, f.now());
    f.fsm().on_connected(f.now());
    const auto requests = f.sent();
    f.reply(0, control::Welcome{3, 1000, 100, 500, 100});
    f.reply(requests[0].id, row.moved);
    const auto events = f.events();
    ASSERT_EQ(events.size(), 1U);
    const auto& link = std::get<ControlLink>(events[0]);
    EXPECT_EQ(link.state, ControlState::Down);
    EXPECT_EQ(link.moved.has_value(), row.told);
    EXPECT_FALSE(link.early && row.told);
    EXPECT_EQ(link.moved.value_or(Endpoint{}).host, row.told ? row.moved.host : "");
    EXPECT_EQ(f.fsm().wanted_connection(), std::nullopt);
  }
}

// It was sent there by hearsay, and goes elsewhere.
TEST(ControlFsmTest, WhoLooksForAStoreIsNotEndedByAnotherProgram) {
  Fixture f(founding_options());
  for (int i = 0; i < 20; ++i) {
    f.fsm().go_to({"10.0.0.2", 22}, f.now());
    f.fsm().on_connected(f.now());
    if (i % 2 == 0)
      f.fsm().on_received("SSH-2.0-OpenSSH_9.2p1", f.now());
    else
      f.fsm().on_disconnected("it closed the connection", f.now());
    const auto events = f.events();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(std::get<ControlLink>(events[0]).state, ControlState::Down) << i;
  }
}

TEST(ControlFsmTest, MayBeToldBeforeItIsLetInThatTheStoreIsElsewhere) {
  VotingFixture f;
  f.fsm().open(f.now());
  f.fsm().on_connected(f.now());
  f.welcome_2();
  f.reply(f.sent()[0].id, control::Moved{2, "10.0.0.9", 7});
  const auto events = f.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(std::get<ControlLink>(events[0]).moved, (Endpoint{"10.0.0.9", 7}));
  EXPECT_EQ(f.fsm().wanted_connection(), std::nullopt);
}

TEST(ControlFsmTest, LeavesAStoreThatKnowsOfALaterOne) {
  VotingFixture f;
  f.open_2();
  f.events();
  f.reply(f.pulse({}), control::Moved{2, "10.0.0.9", 7});
  const auto events = f.events();
  ASSERT_EQ(events.size(), 1U);
  const auto& link = std::get<ControlLink>(events[0]);
  EXPECT_EQ(link.state, ControlState::Down);
  EXPECT_TRUE(link.deserted);
  EXPECT_EQ(link.moved, (Endpoint{"10.0.0.9", 7}));
  f.fsm().go_to(*link.moved, f.now());
  f.fsm().on_connected(f.now());
  const auto requests = f.sent();
  f.reply(0, control::Welcome{3, 1000, 100, 500, 100});
  f.reply(requests[0].id, control::Moved{1, "10.0.0.1", 7});
  const auto turned_away = std::get<ControlLink>(f.events().at(0));
  EXPECT_FALSE(turned_away.moved) << "never back";
  EXPECT_TRUE(turned_away.early);
}

// The caller waits for Closed, and for nothing else.
TEST(ControlFsmTest, WhoLeavesIsClosedAlsoByAStoreThatTheJobHasLeft) {
  for (const bool moved : {true, false}) {
    VotingFixture f;
    f.open_2();
    const std::uint64_t pulse = f.pulse({});
    f.fsm().commit(3, {});
    f.fsm().close(f.now());
    (void)f.sent();
    f.events();
    if (moved)
      f.reply(pulse, control::Moved{2, "10.0.0.9", 7});
    else
      f.pulsed(pulse, 6001);
    const auto events = f.events();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(std::get<ControlCommit>(events[0]).outcome, ControlOutcome::Unknown);
    EXPECT_EQ(std::get<ControlLink>(events[1]).state, ControlState::Closed);
    f.fsm().go_to({"10.0.0.9", 7}, f.now());
    EXPECT_EQ(f.fsm().wanted_connection(), std::nullopt);
  }
}

TEST(ControlFsmTest, TheEndOfAConnectionThatNobodyWantsIsNoNews) {
  Fixture closed;
  closed.open();
  closed.fsm().close(closed.now());
  closed.reply(closed.sent().at(0).id, control::Done{});
  EXPECT_EQ(closed.links().back().first, ControlState::Closed);
  VotingFixture deserted;
  deserted.open_2();
  deserted.pulsed(deserted.pulse({}), 0);
  deserted.expect_confirmed();
  deserted.run_for(500ms);
  deserted.pulsed(deserted.pulse({}), 6001);
  EXPECT_EQ(deserted.links().back().first, ControlState::Down);
  for (Fixture* f : {&closed, static_cast<Fixture*>(&deserted)}) {
    f->fsm().on_disconnected("reset", f->now());
    EXPECT_TRUE(f->events().empty());
    EXPECT_EQ(f->fsm().next_deadline(), std::nullopt) << "it tries again";
  }
}

// It would be up without a session, or ask without an end.
TEST(ControlFsmTest, WhatAnswersAResumptionThatNobodyAskedForIsNoStore) {
  for (const control::Reply& reply :
       {control::Reply(control::Done{}), control::Reply(control::SessionEnded{})}) {
    Fixture f;
    f.fsm().open(f.now());
    f.fsm().on_connected(f.now());
    const auto requests = f.sent();
    f.welcome();
    f.reply(requests.at(0).id, reply);
    EXPECT_EQ(f.fsm().wanted_connection(), std::nullopt);
    EXPECT_EQ(f.fsm().last_error(), "it sent an unexpected message");
    EXPECT_TRUE(f.events().empty());
  }
}

}  // namespace
}  // namespace drun::store
