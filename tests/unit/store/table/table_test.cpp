// The key table alone: keys, queues, waits, watches, and what they take of the budget. Random
// requests against a simple model are in tests/property.
#include "store/table/table.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Outcome = KeyTable::WaitOutcome;

// Notes what it is told, as "7: a=1 b (gone)".
class Client : public TableClient {
 public:
  void on_wait_done(std::uint64_t wait) override { told.push_back(std::to_string(wait)); }
  void on_changes(std::uint64_t watch, Publication& publication) override {
    std::string text = std::to_string(watch) + ":";
    for (const Change& change : publication.changes)
      text += " " + std::string(change.key) +
              (change.value ? "=" + std::string(*change.value) : " (gone)");
    told.push_back(text);
  }
  std::vector<std::string> told;
};

class TableTest : public testing::Test {
 protected:
  static constexpr std::size_t kRoom = 10'000;
  ~TableTest() override {
    table.drop(client);
    table.drop(other);
  }
  Outcome wait(Client& who, std::uint64_t id, std::vector<std::string_view> keys) {
    return table.wait(who, id, keys);
  }
  std::vector<std::string> listed(std::string_view prefix) {
    std::vector<std::string> keys;
    table.list(prefix, [&](const Change& change) {
      keys.emplace_back(change.key);
      return true;
    });
    return keys;
  }

  Budget budget{kRoom};
  Client client;
  Client other;
  KeyTable table{budget};
};

// Whoever keeps a snapshot looks at nothing else.
TEST_F(TableTest, EveryChangeMakesANewGeneration) {
  const auto changes = [this](const std::function<void()>& call) {
    const std::uint64_t before = table.generation();
    call();
    return table.generation() != before;
  };
  EXPECT_TRUE(changes([this] { (void)table.put("k", "v"); }));
  EXPECT_TRUE(changes([this] { (void)table.push("q", "v"); }));
  EXPECT_FALSE(changes([this] { (void)table.queue_size("q"); }));
  EXPECT_TRUE(changes([this] { (void)table.pop("q"); }));
  EXPECT_TRUE(changes([this] { (void)table.erase("k"); }));
}

TEST_F(TableTest, AKeyHoldsTheLastValueThatWasPut) {
  EXPECT_EQ(table.find("k"), nullptr);
  EXPECT_TRUE(table.put("k", "one"));
  EXPECT_TRUE(table.append("k", "+two"));
  EXPECT_EQ(*table.find("k"), "one+two");
  EXPECT_TRUE(table.put("k", ""));
  EXPECT_EQ(*table.find("k"), "");
  EXPECT_TRUE(table.append("new", "v"));
  EXPECT_EQ(*table.find("new"), "v");
  EXPECT_EQ(table.size(), 2U);
  EXPECT_TRUE(table.erase("k"));
  EXPECT_FALSE(table.erase("k"));
  EXPECT_EQ(table.find("k"), nullptr);
}

TEST_F(TableTest, ListsTheKeysOfAPrefixInTheOrderOfTheirBytes) {
  for (const char* key : {"b/2", "a", "b/10", "b", "c"})
    EXPECT_TRUE(table.put(key, "12345"));
  EXPECT_THAT(listed("b/"), ElementsAre("b/10", "b/2"));
  EXPECT_TRUE(table.put("b/1", "12345"));
  EXPECT_TRUE(table.erase("b/2"));
  EXPECT_THAT(listed("b/"), ElementsAre("b/1", "b/10"));
  EXPECT_THAT(listed(""), ElementsAre("a", "b", "b/1", "b/10", "c"));
  EXPECT_TRUE(table.lists_more_than(26, "b/", 5));  // 5 + 3 + 5, 5 + 4 + 5
  EXPECT_FALSE(table.lists_more_than(27, "b/", 5));
}

TEST_F(TableTest, AKeyGoesWithTheSessionThatPutItLast) {
  EXPECT_TRUE(table.put("mine", "v", 7));
  EXPECT_TRUE(table.put("taken", "v", 7));
  EXPECT_TRUE(table.put("taken", "v", 8));
  EXPECT_TRUE(table.put("freed", "v", 7));
  EXPECT_TRUE(table.append("freed", "v"));
  EXPECT_TRUE(table.watch(client, 1, "", true));
  table.publish();
  client.told.clear();
  table.erase_owned_by(7);
  EXPECT_THAT(listed(""), ElementsAre("freed", "taken"));
  EXPECT_THAT(client.told, ElementsAre("1: mine (gone)"));
}

TEST_F(TableTest, AQueueGivesWhatCameFirst) {
  EXPECT_TRUE(table.push("q", "one"));
  EXPECT_TRUE(table.push("q", "two"));
  EXPECT_EQ(table.queue_size("q"), 2U);
  EXPECT_EQ(table.pop("q"), "one");
  EXPECT_EQ(table.pop("q"), "two");
  EXPECT_EQ(table.queue_size("q"), 0U);
  EXPECT_EQ(table.counts().queues, 0U);
}

TEST_F(TableTest, AWaitEndsWhenItsLastKeyComes) {
  EXPECT_TRUE(table.put("there", "v"));
  EXPECT_EQ(wait(client, 1, {"there"}), Outcome::Done);
  EXPECT_EQ(wait(client, 2, {"a", "there", "b"}), Outcome::Waiting);
  EXPECT_TRUE(KeyTable::is_waiting(client));
  EXPECT_TRUE(table.put("b", ""));
  EXPECT_TRUE(table.put("b", "again"));
  EXPECT_THAT(client.told, IsEmpty());
  EXPECT_TRUE(table.put("a", ""));
  EXPECT_THAT(client.told, ElementsAre("2"));
  EXPECT_FALSE(KeyTable::is_waiting(client));
  EXPECT_EQ(table.counts().waits, 0U);
}

// Also when a key was there for a moment only.
TEST_F(TableTest, AKeyThatCameCountsThoughItWentAgain) {
  EXPECT_EQ(wait(client, 1, {"a", "b"}), Outcome::Waiting);
  EXPECT_TRUE(table.put("a", ""));
  EXPECT_TRUE(table.erase("a"));
  EXPECT_TRUE(table.put("b", ""));
  EXPECT_THAT(client.told, ElementsAre("1"));
}

TEST_F(TableTest, AClientMayHaveSeveralWaits) {
  EXPECT_EQ(wait(client, 1, {"a"}), Outcome::Waiting);
  EXPECT_EQ(wait(client, 2, {"a", "b"}), Outcome::Waiting);
  EXPECT_EQ(wait(client, 3, {"a"}), Outcome::Waiting);
  EXPECT_TRUE(table.put("a", ""));
  EXPECT_THAT(client.told, ElementsAre("1", "3"));
  EXPECT_TRUE(table.put("b", ""));
  EXPECT_THAT(client.told, ElementsAre("1", "3", "2"));
}

TEST_F(TableTest, AnItemWakesTheFirstOfThoseThatWait) {
  EXPECT_EQ(wait(client, 1, {"q", "q"}), Outcome::Waiting);
  EXPECT_EQ(wait(other, 2, {"q"}), Outcome::Waiting);
  EXPECT_TRUE(table.push("q", "v"));
  EXPECT_THAT(client.told, ElementsAre("1"));
  EXPECT_THAT(other.told, IsEmpty());
  EXPECT_TRUE(table.push("q", "v"));
  EXPECT_THAT(other.told, ElementsAre("2"));
  EXPECT_EQ(wait(client, 3, {"q"}), Outcome::Done);
}

TEST_F(TableTest, ABarriersWaitersAreWokenByItselfAlone) {
  EXPECT_TRUE(table.put_quietly("barrier", "1"));
  EXPECT_TRUE(table.wait_for_wake(client, 1, "barrier"));
  EXPECT_TRUE(table.put_quietly("barrier", "2"));
  EXPECT_THAT(client.told, IsEmpty());
  table.wake("barrier");
  EXPECT_THAT(client.told, ElementsAre("1"));
}

TEST_F(TableTest, AWatchIsToldOfEachRequestOnce) {
  EXPECT_TRUE(table.watch(client, 1, "a", false));
  EXPECT_TRUE(table.watch(client, 2, "a", true));
  EXPECT_TRUE(table.watch(other, 3, "b", false));
  EXPECT_TRUE(table.put("a", "old"));
  EXPECT_TRUE(table.put("a", "new"));
  EXPECT_TRUE(table.put("ab", "v"));
  EXPECT_THAT(client.told, IsEmpty()) << "before it is published";
  table.publish();
  EXPECT_EQ(table.revision(), 1U);
  EXPECT_THAT(client.told, ElementsAre("1: a=new", "2: a=new ab=v"));
  EXPECT_THAT(other.told, IsEmpty());
  table.publish();
  EXPECT_EQ(table.revision(), 1U) << "nothing has changed";
}

TEST_F(TableTest, EveryWatchedPrefixOfAKeyIsFound) {
  const std::array<const char*, 7> prefixes{"", "a", "ab", "abd", "abcd", "b", "abc/x"};
  for (std::size_t i = 0; i < prefixes.size(); ++i)
    EXPECT_TRUE(table.watch(client, i, prefixes.at(i), true));
  EXPECT_TRUE(table.put("abc", "v"));
  table.publish();
  EXPECT_THAT(client.told, ElementsAre("0: abc=v", "1: abc=v", "2: abc=v"));
  EXPECT_EQ(table.bytes_to_tell("abc", 2), 3 * (KeyTable::kTellingBytes + 3 + 2));
  EXPECT_EQ(table.bytes_to_tell("c", 0), KeyTable::kTellingBytes + 1);
}

TEST_F(TableTest, WhoIsDroppedIsToldNothing) {
  EXPECT_EQ(wait(client, 1, {"a"}), Outcome::Waiting);
  EXPECT_EQ(wait(client, 2, {"a", "b"}), Outcome::Waiting);
  EXPECT_TRUE(table.watch(client, 3, "a", false));
  EXPECT_TRUE(table.watch(client, 4, "a", true));
  table.unwatch(client, 3);
  EXPECT_FALSE(KeyTable::is_watching(client, 3));
  EXPECT_EQ(KeyTable::watch_count(client), 1U);
  table.drop(client);
  EXPECT_EQ(KeyTable::watch_count(client), 0U);
  EXPECT_TRUE(table.put("a", ""));
  EXPECT_TRUE(table.put("b", ""));
  table.publish();
  EXPECT_THAT(client.told, IsEmpty());
}

// The budget is what keeps a hostile client from filling the memory.
TEST_F(TableTest, AllThatIsHeldCountsAndIsGivenBack) {
  EXPECT_TRUE(table.put("key", "value"));
  EXPECT_EQ(budget.used(), KeyTable::kOverheadBytes + 8);
  EXPECT_TRUE(table.put("key", "v"));
  EXPECT_EQ(budget.used(), KeyTable::kOverheadBytes + 4);
  EXPECT_TRUE(table.push("queue", "item"));
  EXPECT_EQ(wait(client, 1, {"some", "thing"}), Outcome::Waiting);
  EXPECT_TRUE(table.watch(client, 2, "key", false));
  EXPECT_EQ(budget.used(), 5 * KeyTable::kOverheadBytes + 4 + 9 + 4 + 5 + 3);
  EXPECT_EQ(budget.used(), table.count_held_bytes());
  table.drop(client);
  EXPECT_EQ(table.pop("queue"), "item");
  EXPECT_TRUE(table.erase("key"));
  EXPECT_EQ(budget.used(), 0U);
}

TEST_F(TableTest, WhatDoesNotFitChangesNothing) {
  const std::string half(kRoom / 2, 'x');
  EXPECT_TRUE(table.put("k", half));
  const std::size_t used = budget.used();
  EXPECT_FALSE(table.put("other", half));
  EXPECT_FALSE(table.put("k", half + half));
  EXPECT_FALSE(table.append("k", half));
  EXPECT_FALSE(table.push("q", half));
  EXPECT_FALSE(table.watch(client, 1, half, true));
  EXPECT_FALSE(table.wait_for_wake(client, 2, half));
  EXPECT_EQ(wait(client, 3, {"a", half}), Outcome::OverBudget);
  EXPECT_EQ(budget.used(), used);
  EXPECT_EQ(*table.find("k"), half);
  EXPECT_EQ(table.size(), 1U);
  EXPECT_FALSE(KeyTable::is_waiting(client));
  EXPECT_EQ(KeyTable::watch_count(client), 0U);
  EXPECT_TRUE(table.put("a", ""));
  EXPECT_THAT(client.told, IsEmpty());
}

TEST_F(TableTest, EachJobHasItsShareAndGivesAllOfItBack) {
  Budget shared(kRoom, 0, 1'000);
  KeyTable jobs(shared);
  const auto used = [&shared](std::string_view job) { return shared.shares().used_by(job); };
  const std::string value(700, 'x');
  EXPECT_TRUE(jobs.put("drun/a/k", value));
  EXPECT_FALSE(jobs.put("drun/a/l", value));
  EXPECT_STREQ(jobs.refusal(), kJobFull);
  EXPECT_FALSE(jobs.put("drun/a/k", value + value)) << "not by a longer value";
  EXPECT_FALSE(jobs.append("drun/a/k", value));
  EXPECT_TRUE(jobs.put("drun/b/k", value));
  EXPECT_TRUE(jobs.put("no job's", value));
  EXPECT_FALSE(jobs.put("drun/nor this", value)) << "such keys are one job's together";
  EXPECT_FALSE(jobs.push("a queue", value));
  EXPECT_EQ(used("a"), KeyTable::kOverheadBytes + 8 + value.size());

  EXPECT_TRUE(jobs.put("drun/a/k", ""));
  EXPECT_TRUE(jobs.push("drun/a/q", value)) << "what was given back is there again";
  EXPECT_EQ(jobs.pop("drun/a/q"), value);
  EXPECT_TRUE(jobs.watch(client, 1, "drun/a/k", false));
  EXPECT_TRUE(jobs.watch(client, 2, "drun/b/", true));
  std::vector<std::string_view> missing{"drun/a/x", "drun/c/x"};
  EXPECT_EQ(jobs.wait(client, 3, missing), Outcome::Waiting);
  EXPECT_TRUE(jobs.put("drun/a/x", ""));
  jobs.drop(client);
  for (const char* key : {"drun/a/k", "drun/a/x", "drun/b/k", "no job's"})
    EXPECT_TRUE(jobs.erase(key)) << key;
  for (const char* job : {"a", "b", "c", ""})
    EXPECT_EQ(used(job), 0U) << job;
  EXPECT_TRUE(jobs.put("drun/a/k", value));
  jobs.clear();
  EXPECT_EQ(used("a"), 0U);
}

// Of a store that was started again with smaller shares.
TEST_F(TableTest, WhatASnapshotHasIsKeptBeyondAShare) {
  Budget shared(kRoom, 0, 1'000);
  KeyTable jobs(shared);
  const std::string value(2'000, 'x');
  {
    const Budget::BeyondShares beyond(shared);
    EXPECT_TRUE(jobs.put("drun/a/k", value));
    EXPECT_FALSE(jobs.put("drun/a/l", std::string(kRoom, 'x'))) << "not beyond all there is";
  }
  EXPECT_FALSE(jobs.put("drun/a/l", ""));
  EXPECT_TRUE(jobs.put("drun/b/l", ""));
}

TEST_F(TableTest, ClearedItHoldsNothingAndTellsNobody) {
  EXPECT_TRUE(table.watch(client, 1, "", true));
  EXPECT_TRUE(table.put("k", "v", 7));
  EXPECT_TRUE(table.push("q", "v"));
  table.clear();
  table.publish();
  EXPECT_THAT(client.told, IsEmpty());
  EXPECT_THAT(listed(""), IsEmpty());
  table.erase_owned_by(7);
  EXPECT_EQ(budget.used(), table.count_held_bytes());
  EXPECT_TRUE(table.put("new", "v"));
  table.publish();
  EXPECT_THAT(client.told, ElementsAre("1: new=v"));
}

}  // namespace
}  // namespace drun::store
