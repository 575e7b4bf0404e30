#include "store/table/sessions.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::store {
namespace {

using control::EndReason;
using testing::ElementsAre;
using testing::IsEmpty;

class Holder : public SessionHolder {
 public:
  void on_session_ended(EndReason reason) override { ended.push_back(reason); }
  std::vector<EndReason> ended;
};

class Watcher : public TableClient {
 public:
  void on_wait_done(std::uint64_t) override {}
  void on_changes(std::uint64_t, Publication&) override { ++told; }
  int told = 0;
};

class SessionsTest : public testing::Test {
 protected:
  static Time at(int ms) { return Time() + Milliseconds(ms); }
  SessionId open(Holder& holder, int ttl, int grace, int now = 0) {
    return sessions.open(holder, Milliseconds(ttl), Milliseconds(grace), token, at(now))->id;
  }
  [[nodiscard]] bool alive(SessionId id) const {
    bool found = false;
    sessions.for_each([&](const Sessions::Record& record) { found |= record.id == id; });
    return found;
  }
  // Calls expire() exactly when it asks for it, and says when the session had ended.
  int run_until_end(SessionId id, int limit) {
    while (alive(id)) {
      const std::optional<Time> next = sessions.next_deadline();
      if (!next || *next > at(limit)) return limit;
      sessions.expire(*next);
      last = *next;
    }
    return static_cast<int>((last - Time()) / Milliseconds(1));
  }

  Budget budget{1'000'000};
  KeyTable table{budget};
  Sessions sessions{table, budget};
  control::Token token{1, 2, 3};
  Time last;
};

TEST_F(SessionsTest, WhatTheyTakeOfTheMemoryIsGivenBack) {
  const std::size_t before = budget.used();
  Holder holder;
  {
    Sessions others(table, budget);
    for (int i = 0; i < 2; ++i)
      ASSERT_NE(others.open(holder, Milliseconds(1'000), Milliseconds(0), token, at(0)), nullptr);
    EXPECT_GT(budget.used(), before);
    others.expire(at(1'000));
    EXPECT_EQ(budget.used(), before);
    ASSERT_NE(others.open(holder, Milliseconds(1'000), Milliseconds(0), token, at(0)), nullptr);
  }
  EXPECT_EQ(budget.used(), before);
}

TEST_F(SessionsTest, ATableThatWasClearedKnowsNoOwner) {
  Holder holder;
  const SessionId id = open(holder, 1000, 1000);
  ASSERT_TRUE(table.put("k", "ephemeral", id));
  table.clear();
  ASSERT_TRUE(table.put("k", "of nobody"));
  table.erase_owned_by(id);
  EXPECT_NE(table.find("k"), nullptr);
}

TEST_F(SessionsTest, NoMoreSessionsEndAtOnceThanWatchesMayBeTold) {
  Holder holder;
  Watcher watcher;
  ASSERT_TRUE(table.watch(watcher, 1, "watched/", true));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(table.put("watched/" + std::to_string(i), "", open(holder, 100, 0)));
    open(holder, 100, 0);
  }
  table.publish();
  watcher.told = 0;
  sessions.expire(at(100), 2 * KeyTable::kTellingBytes);
  EXPECT_EQ(watcher.told, 2);
  EXPECT_GT(sessions.size(), 0U);
  EXPECT_EQ(sessions.next_deadline(), at(100)) << "at once";
  sessions.expire(at(100), 2 * KeyTable::kTellingBytes);
  EXPECT_EQ(watcher.told, 4);
  sessions.expire(at(100), 0);
  EXPECT_EQ(sessions.size(), 0U) << "those that nobody is told of take no part in it";
  table.drop(watcher);
}

TEST_F(SessionsTest, ASilentSessionEndsWithItsTimeToLiveAndItsKeysGo) {
  Holder holder;
  const SessionId id = open(holder, 500, 100);
  ASSERT_TRUE(table.put("mine", "", id));
  ASSERT_TRUE(table.put("ours", ""));
  sessions.expire(at(499));
  EXPECT_TRUE(alive(id));
  EXPECT_EQ(run_until_end(id, 10'000), 500);
  EXPECT_THAT(holder.ended, ElementsAre(EndReason::Silent));
  EXPECT_EQ(table.find("mine"), nullptr);
  EXPECT_NE(table.find("ours"), nullptr);
  EXPECT_EQ(sessions.next_deadline(), std::nullopt);
}

TEST_F(SessionsTest, ARenewedSessionLives) {
  Holder holder;
  const SessionId id = open(holder, 500, 100);
  for (int now = 100; now <= 2000; now += 100) {
    sessions.renew(id, at(now));
    sessions.expire(at(now));
  }
  EXPECT_EQ(run_until_end(id, 10'000), 2500);
}

TEST_F(SessionsTest, ABrokenConnectionLeavesTheGrace) {
  Holder holder;
  const SessionId id = open(holder, 5000, 1000);
  sessions.detach(id, at(300));
  EXPECT_EQ(run_until_end(id, 10'000), 1300);
  EXPECT_THAT(holder.ended, IsEmpty()) << "the connection is gone";
  const SessionId late = open(holder, 500, 1000);
  sessions.detach(late, at(100));
  EXPECT_EQ(run_until_end(late, 10'000), 500) << "the grace does not prolong the time to live";
}

TEST_F(SessionsTest, AResumedSessionGoesOn) {
  Holder first;
  Holder second;
  const SessionId id = open(first, 5000, 1000);
  sessions.detach(id, at(300));
  EXPECT_FALSE(sessions.resume(second, id + 1, token, at(400)));
  EXPECT_FALSE(sessions.resume(second, id, control::Token{9}, at(400))) << "not its token";
  EXPECT_TRUE(sessions.resume(second, id, token, at(400)));
  EXPECT_EQ(run_until_end(id, 100'000), 5400);
  EXPECT_THAT(first.ended, IsEmpty());
  EXPECT_THAT(second.ended, ElementsAre(EndReason::Silent));
  EXPECT_FALSE(sessions.resume(first, id, token, at(6000))) << "over";
}

TEST_F(SessionsTest, TheTokenTakesASessionOverFromALivingConnection) {
  Holder first;
  Holder second;
  const SessionId id = open(first, 5000, 1000);
  EXPECT_TRUE(sessions.resume(second, id, token, at(100)));
  EXPECT_THAT(first.ended, ElementsAre(EndReason::Resumed));
  EXPECT_TRUE(sessions.resume(second, id, token, at(200))) << "its own again";
  EXPECT_THAT(second.ended, IsEmpty());
}

TEST_F(SessionsTest, ATimeThatIsUpIsUpEvenIfNobodyHasLooked) {
  Holder holder;
  const SessionId id = open(holder, 500, 100);
  sessions.detach(id, at(0));
  EXPECT_FALSE(sessions.resume(holder, id, token, at(100)));
}

TEST_F(SessionsTest, GoodbyeEndsAtOnce) {
  Holder holder;
  const SessionId id = open(holder, 5000, 1000);
  ASSERT_TRUE(table.put("mine", "", id));
  sessions.close(id);
  EXPECT_EQ(table.find("mine"), nullptr);
  EXPECT_THAT(holder.ended, IsEmpty());
  EXPECT_EQ(budget.used(), 0U);
}

TEST_F(SessionsTest, TimesAreBroughtWithinBounds) {
  Holder holder;
  const auto* shortest = sessions.open(holder, Milliseconds(0), Milliseconds(-1), token, at(0));
  EXPECT_EQ(shortest->ttl, Sessions::kShortestTtl);
  EXPECT_EQ(shortest->grace, Milliseconds(0));
  const Milliseconds forever(std::int64_t{1} << 40);
  const auto* longest = sessions.open(holder, forever, forever, token, at(0));
  EXPECT_EQ(longest->ttl, Sessions::kLongestTtl);
  EXPECT_EQ(longest->grace, Sessions::kLongestGrace);
}

TEST_F(SessionsTest, AFullStoreOpensNone) {
  Budget small(Sessions::kOverheadBytes);
  KeyTable small_table(small);
  Sessions few(small_table, small);
  Holder holder;
  EXPECT_NE(few.open(holder, Milliseconds(500), Milliseconds(0), token, at(0)), nullptr);
  EXPECT_EQ(few.open(holder, Milliseconds(500), Milliseconds(0), token, at(0)), nullptr);
}

TEST_F(SessionsTest, ARestoredSessionCanBeResumedForItsWholeTimeToLive) {
  ASSERT_TRUE(sessions.restore({7, token, Milliseconds(5000), Milliseconds(1000)}, at(100)));
  Holder holder;
  EXPECT_GT(open(holder, 500, 100, 100), 7U) << "numbers are not given twice";
  sessions.expire(at(5099));
  EXPECT_TRUE(sessions.resume(holder, 7, token, at(5099)));
  ASSERT_TRUE(sessions.restore({9, token, Milliseconds(5000), Milliseconds(1000)}, at(6000)));
  sessions.expire(at(11'000));
  EXPECT_FALSE(sessions.resume(holder, 9, token, at(11'000)));
}

TEST_F(SessionsTest, ManyOfDifferentTimesEndInOrder) {
  std::vector<Holder> holders(100);
  std::vector<SessionId> ids;
  for (int i = 0; i < 100; ++i)
    ids.push_back(open(holders[static_cast<std::size_t>(i)], 1000 + (i * 37) % 100, 0));
  for (int now = 1000; now < 1100; ++now) {
    sessions.expire(at(now));
    EXPECT_EQ(sessions.size(), static_cast<std::size_t>(1099 - now));
  }
}

}  // namespace
}  // namespace drun::store
