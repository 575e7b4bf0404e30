#include "launcher/views/job_watch.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using rendezvous::Change;
using rendezvous::Link;
using rendezvous::LinkEvent;
using rendezvous::WatchChanges;
using rendezvous::WatchId;
using rendezvous::WatchRejected;
using rendezvous::WatchSnapshot;
using ::testing::ElementsAre;

class Calls final : public rendezvous::KeyValue {
 public:
  void watch(WatchId watch, std::string key, bool prefix) override {
    EXPECT_EQ(watch, JobWatch::kWatch);
    EXPECT_TRUE(prefix);
    list.push_back("watch " + key);
  }
  void unwatch(WatchId) override { list.emplace_back("unwatch"); }
  void commit(rendezvous::RequestId, rendezvous::Transaction) override { FAIL(); }
  void close() override { FAIL(); }

  std::vector<std::string> list;
};

WatchSnapshot snapshot(std::vector<Change> entries) {
  return {JobWatch::kWatch, std::move(entries)};
}

TEST(JobWatchTest, NothingIsAskedForUntilSomebodyAsks) {
  Calls store;
  JobWatch watch("train");
  watch.set_link(&store);
  EXPECT_THAT(store.list, ElementsAre());
  watch.begin();
  watch.begin();
  EXPECT_EQ(watch.documents(), nullptr);
  EXPECT_FALSE(watch.settled());
  watch.end();
  EXPECT_THAT(store.list, ElementsAre("watch drun/train/", "unwatch"));
  EXPECT_TRUE(watch.on_event(snapshot({{"a", "1"}}))) << "late, and nobody else's";
  EXPECT_EQ(watch.documents(), nullptr);
}

TEST(JobWatchTest, ItKnowsWhatTheStoreSays) {
  Calls store;
  JobWatch watch("train");
  watch.set_link(&store);
  watch.begin();
  EXPECT_TRUE(watch.on_event(snapshot({{"a", "1"}, {"b", "2"}})));
  EXPECT_TRUE(watch.on_event(WatchChanges{JobWatch::kWatch, {{"a", std::nullopt}, {"c", "3"}}}));
  EXPECT_EQ(*watch.documents(), (jobs::Documents{{"b", "2"}, {"c", "3"}}));
  EXPECT_TRUE(watch.on_event(snapshot({{"d", "4"}}))) << "after a reconnection";
  EXPECT_EQ(*watch.documents(), (jobs::Documents{{"d", "4"}}));
  EXPECT_FALSE(watch.on_event(WatchSnapshot{1, {{"x", "1"}}})) << "the participant's";
  EXPECT_FALSE(watch.on_event(WatchChanges{1, {{"x", "1"}}}));
  EXPECT_EQ(*watch.documents(), (jobs::Documents{{"d", "4"}}));
}

TEST(JobWatchTest, WhatTheEndTakesBackCanBeKept) {
  Calls store;
  JobWatch watch("train", JobWatch::kWatch, JobWatch::AtEnd::KeepWhatWas);
  watch.set_link(&store);
  watch.begin();
  const std::string outcome = "drun/train/outcome";
  EXPECT_TRUE(watch.on_event(snapshot({{outcome, "of an earlier job"}, {"drun/train/job", "1"}})));
  EXPECT_TRUE(watch.on_event(WatchChanges{JobWatch::kWatch, {{outcome, std::nullopt}}}));
  EXPECT_TRUE(watch.on_event(WatchChanges{JobWatch::kWatch, {{"drun/train/round", "2"}}}));
  const jobs::Documents last = {{"drun/train/job", "1"}, {"drun/train/round", "2"}};
  EXPECT_EQ(*watch.documents(), last);
  EXPECT_TRUE(watch.on_event(WatchChanges{
      JobWatch::kWatch, {{"drun/train/job", std::nullopt}, {outcome, "0"}, {"c", "3"}}}));
  EXPECT_TRUE(watch.on_event(WatchChanges{JobWatch::kWatch, {{"drun/train/round", "3"}}}));
  EXPECT_TRUE(watch.on_event(snapshot({})));
  EXPECT_EQ(*watch.documents(), last);
}

TEST(JobWatchTest, WhoAsksAgainLaterHasWhatWasKnownLast) {
  Calls store;
  JobWatch watch("train");
  watch.set_link(&store);
  watch.begin();
  EXPECT_TRUE(watch.on_event(snapshot({{"a", "1"}})));
  EXPECT_TRUE(watch.settled());
  watch.end();
  watch.begin();
  EXPECT_FALSE(watch.settled()) << "what is there now may still come";
  EXPECT_EQ(*watch.documents(), (jobs::Documents{{"a", "1"}})) << "should the store be away";
  EXPECT_TRUE(watch.on_event(snapshot({{"b", "2"}})));
  EXPECT_TRUE(watch.settled());
  EXPECT_EQ(*watch.documents(), (jobs::Documents{{"b", "2"}}));
}

TEST(JobWatchTest, OfAJobThatRunsNothingIsMadeUp) {
  status::AgentStatus own;
  own.job = "train";
  const auto before = job_of({}, own);
  ASSERT_TRUE(before);
  EXPECT_EQ(before->id, "train");
  own.round = 2;
  EXPECT_FALSE(job_of({}, own)) << "the store did not say how many restarts were spent";
}

TEST(JobWatchTest, ItGoesWithTheLinkAndKeepsWhatItKnew) {
  Calls first;
  Calls second;
  JobWatch watch("train");
  watch.begin();
  EXPECT_TRUE(watch.settled());
  watch.set_link(&first);
  EXPECT_FALSE(watch.settled());
  EXPECT_TRUE(watch.on_event(snapshot({{"a", "1"}})));
  EXPECT_FALSE(watch.on_event(LinkEvent{Link::Down, "gone"})) << "others must hear of it";
  EXPECT_FALSE(watch.on_event(LinkEvent{Link::Failed, "gone"}));
  EXPECT_TRUE(watch.settled());
  EXPECT_EQ(watch.documents()->size(), 1U);
  watch.set_link(&second);
  EXPECT_THAT(second.list, ElementsAre("watch drun/train/"));
  EXPECT_TRUE(watch.on_event(WatchRejected{JobWatch::kWatch, "too much"}));
  EXPECT_TRUE(watch.settled());
}

TEST(JobWatchTest, AnotherStoreIsAskedAnew) {
  Calls first;
  Calls second;
  JobWatch watch("train");
  watch.begin();
  watch.set_link(&first);
  EXPECT_TRUE(watch.on_event(WatchRejected{JobWatch::kWatch, "too much"}));
  EXPECT_TRUE(watch.settled());
  watch.set_link(&second);
  EXPECT_FALSE(watch.settled()) << "this one may show it";
}

}  // namespace
}  // namespace drun::launcher
