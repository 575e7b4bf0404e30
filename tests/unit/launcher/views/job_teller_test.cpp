#include "launcher/views/job_teller.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/patience.hpp"

namespace drun::launcher {
namespace {

using rendezvous::Link;
using rendezvous::LinkEvent;
using rendezvous::WatchId;
using rendezvous::WatchSnapshot;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WatchedStore final : public rendezvous::KeyValue {
 public:
  void watch(WatchId watch, std::string key, bool) override {
    EXPECT_EQ(watch, JobTeller::kWatch);
    list.push_back("watch " + key);
  }
  void unwatch(WatchId) override { list.emplace_back("unwatch"); }
  void commit(rendezvous::RequestId, rendezvous::Transaction) override { FAIL(); }
  void close() override { FAIL(); }

  std::vector<std::string> list;
};

class JobTellerTest : public testing::Test {
 protected:
  void ask() {
    teller_.ask([this](const std::string& text) { told_.push_back(text); });
  }
  void snapshot() {
    EXPECT_TRUE(teller_.on_event(WatchSnapshot{JobTeller::kWatch, {{"drun/train/round", "2"}}}));
  }
  // What is said until so many have been told.
  std::vector<std::string> told(std::size_t count) {
    io_.restart();
    while (told_.size() < count && io_.run_one_for(test::kPatience) > 0) {
    }
    return told_;
  }

  asio::io_context io_;
  WatchedStore store_;
  std::vector<std::string> told_;
  JobTeller teller_{io_, "train"};
};

const std::string kKnown = R"({"documents":{"drun/train/round":"2"}})";
const std::string kNothing = R"({"documents":{}})";

TEST_F(JobTellerTest, AllWhoAskShareOneLook) {
  teller_.set_link(&store_);
  EXPECT_THAT(store_.list, IsEmpty());
  ask();
  ask();
  EXPECT_THAT(store_.list, ElementsAre("watch drun/train/"));
  snapshot();
  EXPECT_THAT(told(2), ElementsAre(kKnown, kKnown));
  EXPECT_THAT(store_.list, ElementsAre("watch drun/train/", "unwatch"));
}

TEST_F(JobTellerTest, WithoutAStoreItKnowsNothing) {
  ask();
  EXPECT_THAT(told(1), ElementsAre(kNothing));
}

TEST_F(JobTellerTest, AStoreThatGoesMeanwhileIsNotWaitedFor) {
  teller_.set_link(&store_);
  ask();
  EXPECT_FALSE(teller_.on_event(LinkEvent{Link::Failed, "gone"})) << "others must hear of it";
  teller_.set_link(nullptr);
  EXPECT_THAT(told(1), ElementsAre(kNothing));
}

TEST_F(JobTellerTest, AStoreThatSaysNothingIsWaitedForForAWhile) {
  teller_.set_link(&store_);
  ask();
  EXPECT_THAT(told(1), ElementsAre(kNothing));
  ask();
  snapshot();
  EXPECT_THAT(told(2), ElementsAre(kNothing, kKnown));
}

TEST_F(JobTellerTest, AfterCancelNobodyIsTold) {
  teller_.set_link(&store_);
  ask();
  snapshot();
  ask();
  teller_.cancel();
  io_.run();
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
