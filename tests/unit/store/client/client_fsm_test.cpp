// The pipeline of a TCPStore connection, without a socket: what leaves when, and which reply
// belongs to whom.
#include "store/client/client_fsm.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/store/errors.hpp"
#include "store/client/client_calls.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Time = ClientFsm::Time;

std::string u64(std::uint64_t value) {
  std::string bytes;
  append(bytes, value);
  return bytes;
}
std::string vec(const std::string& value) {
  return u64(value.size()) + value;
}
const std::string kReleased(1, '\0');
const std::string kCancelled(1, '\1');

// A machine, its clock, and a log of the outcomes: "name=integer", "name='value'", "name: code".
class Rig {
 public:
  explicit Rig(TcpStoreVersion version = TcpStoreVersion::Torch2_2)
      : calls_(version, {}), fsm_({"10.0.0.1", 29500}, version, 1 << 20) {}

  const ClientCalls& calls() const { return calls_; }
  ClientFsm& fsm() { return fsm_; }

  template <typename T>
  void start(const std::string& name, TypedCall<T> call, std::chrono::milliseconds limit = 10s) {
    fsm_.start(std::move(call.call), limit, now_,
               [this, name](const Result<tcpstore::Reply>& reply) {
                 if (!reply) {
                   log_.push_back(name + ": " + reply.error().code().message());
                   errors_.push_back(reply.error().what());
                 } else if (reply->values.empty()) {
                   log_.push_back(name + "=" + std::to_string(reply->integer));
                 } else {
                   log_.push_back(name + "='" + reply->values.front() + "'");
                 }
               });
  }
  // What has left since the last call.
  std::string sent() {
    std::string bytes(fsm_.output());
    fsm_.on_sent(bytes.size());
    return bytes;
  }
  void reply(std::string_view bytes) { fsm_.on_received(bytes); }
  void pass(std::chrono::milliseconds time) {
    now_ += time;
    fsm_.on_time(now_);
  }
  std::vector<std::string> log() {
    for (auto& outcome : fsm_.take_outcomes())
      outcome.finished(std::move(outcome.result));
    return std::exchange(log_, {});
  }
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  ClientCalls calls_;
  ClientFsm fsm_;
  Time now_{1h};
  std::vector<std::string> log_;
  std::vector<std::string> errors_;
};

std::string message(Errc code) {
  return make_error_code(code).message();
}

TEST(ClientFsmTest, RequestsLeaveTogetherAndRepliesComeInTheirOrder) {
  Rig rig;
  rig.start("a", rig.calls().add("n", 1));
  rig.start("s", rig.calls().set("k", "v"));
  rig.start("b", rig.calls().add("n", 2));
  rig.start("c", rig.calls().check({"k"}));
  const auto bytes = [&](const auto& call) { return call.call.steps[0].bytes; };
  EXPECT_EQ(rig.sent(), bytes(rig.calls().add("n", 1)) + bytes(rig.calls().set("k", "v")) +
                            bytes(rig.calls().add("n", 2)) + bytes(rig.calls().check({"k"})));
  EXPECT_THAT(rig.log(), IsEmpty()) << "the set comes behind an answer that is not there yet";
  rig.reply(u64(1) + u64(3) + std::string(1, '\0'));
  EXPECT_THAT(rig.log(), ElementsAre("a=1", "s=0", "b=3", "c=0"));
  EXPECT_TRUE(rig.fsm().idle());
  EXPECT_EQ(rig.fsm().next_deadline(), std::nullopt);
}

TEST(ClientFsmTest, RepliesMayComeInAnyPieces) {
  const std::string first = u64(7) + vec("value") + kReleased;
  const std::string second = vec("waited") + vec("");  // of requests that leave after the release
  for (std::size_t i = 0; i <= first.size(); ++i) {
    for (std::size_t k = 0; k <= second.size(); ++k) {
      Rig rig;
      rig.start("a", rig.calls().add("n", 1));
      rig.start("b", rig.calls().compare_set("k", "", "value"));
      rig.start("c", rig.calls().get("w"));
      rig.start("d", rig.calls().compare_set("k", "x", ""));
      for (const auto& [bytes, cut] : {std::pair{first, i}, std::pair{second, k}}) {
        (void)rig.sent();
        rig.reply(bytes.substr(0, cut));
        rig.reply(bytes.substr(cut));
      }
      EXPECT_THAT(rig.log(), ElementsAre("a=7", "b='value'", "c='waited'", "d=''"));
      ASSERT_TRUE(rig.fsm().open());
    }
  }
}

TEST(ClientFsmTest, AWaitHoldsUpWhatWasCalledAfterIt) {
  Rig rig;
  rig.start("before", rig.calls().add("n", 1));
  rig.start("get", rig.calls().get("k"));
  rig.start("after", rig.calls().add("n", 1));
  EXPECT_EQ(rig.sent(),
            rig.calls().add("n", 1).call.steps[0].bytes + rig.calls().get("k").call.steps[0].bytes);
  rig.reply(u64(1));
  EXPECT_EQ(rig.sent(), "");
  rig.reply(kReleased);
  EXPECT_EQ(rig.sent(),
            rig.calls().get("k").call.steps[1].bytes + rig.calls().add("n", 1).call.steps[0].bytes);
  rig.reply(vec("v") + u64(2));
  EXPECT_THAT(rig.log(), ElementsAre("before=1", "get='v'", "after=2"));
}

TEST(ClientFsmTest, ACheckThatSaysNoEndsTryGet) {
  Rig rig;
  rig.start("missing", rig.calls().try_get("k"));
  rig.start("after", rig.calls().add("n", 1));
  EXPECT_EQ(rig.sent(), rig.calls().try_get("k").call.steps[0].bytes);
  rig.reply("\1");
  EXPECT_EQ(rig.sent(), rig.calls().add("n", 1).call.steps[0].bytes);
  rig.reply(u64(5));
  EXPECT_THAT(rig.log(), ElementsAre("missing=1", "after=5"));
}

TEST(ClientFsmTest, ASetIsDoneWhenItsLastByteHasLeft) {
  Rig rig;
  rig.start("set", rig.calls().set("k", "value"));
  const std::size_t size = rig.fsm().output().size();
  rig.fsm().on_sent(size - 1);
  EXPECT_THAT(rig.log(), IsEmpty());
  rig.fsm().on_sent(1);
  EXPECT_THAT(rig.log(), ElementsAre("set=0"));
}

TEST(ClientFsmTest, MultiGetOfNothingHasNoReply) {
  Rig rig;
  rig.start("none", rig.calls().multi_get({}));
  rig.start("after", rig.calls().add("n", 1));
  (void)rig.sent();
  rig.reply(kReleased);
  EXPECT_NE(rig.sent(), "");
  rig.reply(u64(1));
  EXPECT_THAT(rig.log(), ElementsAre("none=0", "after=1"));
}

TEST(ClientFsmTest, ACallOfManyKeysNamesTheFirstThree) {
  Rig rig;
  EXPECT_EQ(rig.calls().check({"a", "b", "c"}).call.about, " 'a', 'b', 'c'");
  EXPECT_EQ(rig.calls().check({"a", "b", "c", "d"}).call.about, " 'a', 'b', 'c' and 1 more");
}

// What a wait's end looks like when its time is over, and what becomes of the call.
TEST(ClientFsmTest, AWaitIsCancelledAndTheConnectionStaysGood) {
  const struct {
    std::string answer;
    std::vector<std::string> log;
    bool open;
  } cases[] = {
      {kCancelled, {"wait: " + message(Errc::Timeout)}, true},
      {kReleased + kCancelled, {"wait=1"}, true},
      {kReleased + kReleased, {"wait: " + message(Errc::Malformed)}, false},
      {"\7", {"wait: " + message(Errc::Malformed)}, false},
  };
  for (const auto& c : cases) {
    Rig rig;
    rig.start("wait", rig.calls().wait({"k"}), 20ms);
    (void)rig.sent();
    rig.pass(19ms);
    EXPECT_EQ(rig.sent(), "");
    rig.pass(1ms);
    EXPECT_EQ(rig.sent(), "\x0c");
    rig.reply(c.answer);
    EXPECT_EQ(rig.log(), c.log);
    EXPECT_EQ(rig.fsm().open(), c.open);
    if (!c.open) continue;
    rig.start("next", rig.calls().add("n", 1));
    EXPECT_NE(rig.sent(), "");
    rig.reply(u64(1));
    EXPECT_THAT(rig.log(), ElementsAre("next=1"));
  }
}

TEST(ClientFsmTest, AGetThatIsReleasedWhileCancelledStillBringsTheValue) {
  Rig rig;
  rig.start("get", rig.calls().get("k"), 0ms);
  (void)rig.sent();
  rig.pass(0ms);
  EXPECT_EQ(rig.sent(), "\x0c");
  rig.reply(kReleased + kCancelled);
  EXPECT_EQ(rig.sent(), rig.calls().get("k").call.steps[1].bytes);
  rig.pass(1ms);
  rig.reply(vec("v"));
  EXPECT_THAT(rig.log(), ElementsAre("get='v'"));
}

// The wait's answer was quicker than the look at the clock.
TEST(ClientFsmTest, AGetWhoseWaitEndedInTimeStillBringsTheValue) {
  Rig rig;
  rig.start("get", rig.calls().get("k"), 0ms);
  (void)rig.sent();
  rig.reply(kReleased);
  EXPECT_EQ(rig.sent(), rig.calls().get("k").call.steps[1].bytes);
  rig.pass(1ms);
  rig.reply(vec("v"));
  EXPECT_THAT(rig.log(), ElementsAre("get='v'"));
  rig.start("silent", rig.calls().get("k"), 0ms);
  rig.reply(kReleased);
  rig.pass(1ms);
  rig.pass(ClientFsm::kCancelLimit);
  EXPECT_FALSE(rig.fsm().open());
}

TEST(ClientFsmTest, AStoreThatDoesNotAnswerTheCancellationIsLeft) {
  Rig rig;
  rig.start("wait", rig.calls().wait({"k"}), 20ms);
  (void)rig.sent();
  rig.pass(20ms);
  (void)rig.sent();
  rig.pass(ClientFsm::kCancelLimit);
  EXPECT_THAT(rig.log(), ElementsAre("wait: " + message(Errc::Timeout)));
  EXPECT_FALSE(rig.fsm().open());
}

TEST(ClientFsmTest, Torch113CannotCancelSoItsLateWaitEndsTheConnection) {
  Rig rig(TcpStoreVersion::Torch1_13);
  rig.start("wait", rig.calls().wait({"k"}), 20ms);
  rig.start("after", rig.calls().add("n", 1));
  (void)rig.sent();
  rig.pass(20ms);
  EXPECT_EQ(rig.sent(), "");
  EXPECT_THAT(rig.log(),
              ElementsAre("wait: " + message(Errc::Timeout), "after: " + message(Errc::Closed)));
  EXPECT_FALSE(rig.fsm().open());
}

TEST(ClientFsmTest, ALateReplyEndsTheConnectionAndNamesTheGuilty) {
  Rig rig;
  rig.start("patient", rig.calls().add("a", 1), 60s);
  rig.start("late", rig.calls().add("b", 1), 20ms);
  rig.start("third", rig.calls().add("c", 1), 60s);
  (void)rig.sent();
  EXPECT_EQ(rig.fsm().next_deadline(), Time(1h) + 20ms);
  rig.pass(20ms);
  EXPECT_THAT(rig.log(),
              ElementsAre("patient: " + message(Errc::Closed), "late: " + message(Errc::Timeout),
                          "third: " + message(Errc::Closed)));
  EXPECT_THAT(rig.errors(),
              ElementsAre("add 'a' at 10.0.0.1:29500: the connection is closed, after 'add 'b' at "
                          "10.0.0.1:29500: timed out after 20 ms'",
                          "add 'b' at 10.0.0.1:29500: timed out after 20 ms",
                          testing::StartsWith("add 'c' at 10.0.0.1:29500: the connection is")));
  EXPECT_FALSE(rig.fsm().open());
  rig.start("next", rig.calls().set("k", "v"));
  EXPECT_THAT(rig.log(), ElementsAre("next: " + message(Errc::Closed)));
}

TEST(ClientFsmTest, ACallThatHasNotLeftIsLateAlone) {
  Rig rig;
  rig.start("wait", rig.calls().wait({"k"}), 60s);
  rig.start("late", rig.calls().add("b", 1), 20ms);
  rig.start("patient", rig.calls().add("c", 1), 60s);
  (void)rig.sent();
  rig.pass(20ms);
  EXPECT_THAT(rig.log(), ElementsAre("late: " + message(Errc::Timeout)));
  rig.reply(kReleased);
  EXPECT_EQ(rig.sent(), rig.calls().add("c", 1).call.steps[0].bytes);
  rig.reply(u64(4));
  EXPECT_THAT(rig.log(), ElementsAre("wait=0", "patient=4"));
}

TEST(ClientFsmTest, WhatTheVersionLacksIsRefusedAndNothingIsSent) {
  Rig rig(TcpStoreVersion::Torch1_13);
  rig.start("append", rig.calls().append("k", "v"));
  rig.start("multi_get", rig.calls().multi_get({"k"}));
  rig.start("multi_set", rig.calls().multi_set({{"k", "v"}}));
  rig.start("ping", rig.calls().ping());
  rig.start("push", rig.calls().queue_push("q", "v"));
  rig.start("pop", rig.calls().queue_pop("q"));
  rig.start("list", rig.calls().list_keys());
  rig.start("barrier", rig.calls().barrier("b", 2));
  EXPECT_EQ(rig.fsm().output(), "");
  EXPECT_EQ(rig.log().size(), 8U);
  EXPECT_THAT(rig.errors(), testing::Each(HasSubstr("a store of this age has no such request")));
  EXPECT_EQ(rig.errors()[1].substr(0, 13), "multi_get 'k'");
  EXPECT_TRUE(rig.fsm().open());
}

TEST(ClientFsmTest, BytesThatNobodyAskedForEndTheConnection) {
  Rig idle;
  idle.reply("x");
  EXPECT_FALSE(idle.fsm().open());
  Rig after;
  after.start("a", after.calls().add("n", 1));
  (void)after.sent();
  after.reply(u64(1) + "HTTP");
  EXPECT_THAT(after.log(), ElementsAre("a=1"));
  EXPECT_FALSE(after.fsm().open());
  after.start("next", after.calls().add("n", 1));
  EXPECT_THAT(after.log(), ElementsAre("next: " + message(Errc::Closed)));
  EXPECT_THAT(after.errors().back(), HasSubstr("what nobody has asked for"));
}

TEST(ClientFsmTest, AReplyAboveTheLimitIsNotCollected) {
  Rig rig;
  rig.start("a", rig.calls().compare_set("k", "", "v"));
  (void)rig.sent();
  rig.reply(u64((1 << 20) + 1));
  EXPECT_THAT(rig.log(), ElementsAre("a: " + message(Errc::LimitExceeded)));
  EXPECT_FALSE(rig.fsm().open());
}

TEST(ClientFsmTest, ANumberOfKeysThatCannotBeEndsTheConnection) {
  Rig rig;
  rig.start("a", rig.calls().list_keys());
  (void)rig.sent();
  rig.reply(std::string(8, '\xff'));
  EXPECT_THAT(rig.log(), ElementsAre(testing::StartsWith("a: ")));
  EXPECT_FALSE(rig.fsm().open());
}

TEST(ClientFsmTest, TheEndOfTheConnectionIsEverybodysEnd) {
  Rig rig;
  rig.start("a", rig.calls().add("n", 1));
  rig.start("b", rig.calls().add("n", 1));
  (void)rig.sent();
  rig.fsm().on_closed(Error(Errc::Closed, "the peer closed the connection"));
  EXPECT_THAT(rig.log(), ElementsAre("a: " + message(Errc::Closed), "b: " + message(Errc::Closed)));
  EXPECT_THAT(rig.errors().front(), HasSubstr("other than a number")) << "the likely cause";
}

TEST(ToTextTest, DurationsAreRoundedToWhatPeopleRead) {
  EXPECT_EQ(to_text(-1ms), "0 ms");
  EXPECT_EQ(to_text(999ms), "999 ms");
  EXPECT_EQ(to_text(1s), "1 s");
  EXPECT_EQ(to_text(1949ms), "1.9 s");
  EXPECT_EQ(to_text(1998ms), "2 s");
  EXPECT_EQ(to_text(60s), "60 s");
}

}  // namespace
}  // namespace drun::store
