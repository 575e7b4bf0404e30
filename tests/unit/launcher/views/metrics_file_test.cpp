#include "launcher/views/metrics_file.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/base/log.hpp"
#include "support/patience.hpp"
#include "support/recorded_key_value.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using drun::test::kPatience;
using drun::test::RecordedKeyValue;
using rendezvous::WatchSnapshot;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class MetricsFileTest : public testing::Test {
 protected:
  MetricsFileTest() {
    log::redirect([this](std::string line) { said_.push_back(std::move(line)); });
    own_.job = "train";
    own_.host = "node7";
    file_.set_link(&store_);
  }
  ~MetricsFileTest() override {
    file_.close();
    io_.restart();
    io_.run();
    log::redirect({});
  }
  // Its place in a round.
  void place(int round, int group_rank) {
    own_.round = round;
    own_.group_rank = group_rank;
    own_.phase = status::Phase::Running;
  }
  // What is in the file, once it is written anew.
  std::string written(const std::string& path) {
    io_.restart();
    while (!std::filesystem::exists(path) && io_.run_one_for(kPatience) > 0) {
    }
    std::ifstream file(path);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    std::filesystem::remove(path);
    io_.poll();
    return text;
  }
  std::string written() { return written(path_); }
  // Whether it writes with what is ready.
  bool is_written_now() {
    io_.restart();
    io_.poll();
    return std::filesystem::exists(path_);
  }

  const drun::test::TemporaryDirectory folder_;
  const std::string path_ = folder_.file("drun.prom");
  asio::io_context io_{1};
  RecordedKeyValue store_;
  status::AgentStatus own_;
  std::vector<std::string> said_;
  MetricsFile file_{io_, path_, "train", [this] { return own_; }};
};

TEST_F(MetricsFileTest, AnAgentWithoutAPlaceTellsOfItself) {
  file_.open();
  const std::string text = written();
  EXPECT_THAT(text, HasSubstr("drun_agent"));
  EXPECT_THAT(text, Not(HasSubstr("drun_job")));
  EXPECT_THAT(store_.take(), IsEmpty());
}

TEST_F(MetricsFileTest, TheFirstNodeTellsOfTheJobAndTheOthersOfThemselves) {
  place(1, 1);
  file_.on_start();
  EXPECT_THAT(written(), Not(HasSubstr("drun_job")));
  EXPECT_THAT(store_.take(), IsEmpty());
  place(2, 0);
  file_.on_start();
  (void)written();
  EXPECT_THAT(store_.take(), ElementsAre("watch drun/train/*"));
  place(3, 1);
  file_.on_start();
  (void)written();
  EXPECT_THAT(store_.take(), ElementsAre("unwatch"));
}

TEST_F(MetricsFileTest, BetweenRoundsItTellsAsBefore) {
  place(2, 0);
  file_.on_start();
  (void)written();
  (void)store_.take();
  place(0, 3);
  file_.on_start();
  (void)written();
  EXPECT_THAT(store_.take(), IsEmpty());
}

TEST_F(MetricsFileTest, WhatTheStoreSaysFirstIsWrittenAtOnce) {
  place(2, 0);
  file_.on_start();
  (void)written();
  EXPECT_FALSE(is_written_now());
  EXPECT_TRUE(file_.on_event(WatchSnapshot{MetricsFile::kWatch, {}}));
  EXPECT_NE(written(), "");
  EXPECT_TRUE(file_.on_event(WatchSnapshot{MetricsFile::kWatch, {}}));
  EXPECT_FALSE(is_written_now()) << "later it is written from time to time";
  EXPECT_FALSE(file_.on_event(WatchSnapshot{1, {}})) << "somebody else's";
}

TEST_F(MetricsFileTest, AFaultIsToldOnceUntilThereIsAnother) {
  for (const char* error : {"", "no folder", "no folder", "no room", "", "no room"})
    file_.tell(error);
  ASSERT_THAT(said_, SizeIs(3));
  EXPECT_EQ(said_.front(),
            "drun: warning: --metrics-file: no folder; its folder must be there and writable\n");
}

TEST_F(MetricsFileTest, AFolderThatIsNotThereIsAWarning) {
  MetricsFile file(io_, folder_.file("none/drun.prom"), "train", [this] { return own_; });
  file.open();
  while (said_.empty() && io_.run_one_for(kPatience) > 0) {
  }
  EXPECT_THAT(said_, ElementsAre(HasSubstr("--metrics-file: ")));
  file.close();
}

TEST_F(MetricsFileTest, TheLastWordIsHowTheJobEnded) {
  place(2, 0);
  file_.on_start();
  (void)written();
  EXPECT_TRUE(file_.on_event(WatchSnapshot{MetricsFile::kWatch, {}}));
  own_.round = 0;
  const rendezvous::Outcome failed{rendezvous::End::Failure, 9, "rank 0 failed"};
  const WriteFile last = file_.last(&failed);
  file_.on_start();
  EXPECT_FALSE(is_written_now()) << "after it nothing else comes";
  EXPECT_TRUE(last());
  EXPECT_THAT(written(), HasSubstr("state=\"failed\"} 1\n"));
}

TEST_F(MetricsFileTest, TheLastIsWrittenAfterTheOneBefore) {
  place(1, 1);
  file_.open();
  EXPECT_TRUE(file_.last(nullptr)());
  const std::string last = written();
  EXPECT_THAT(last, Not(HasSubstr("drun_job")));
  file_.close();
  io_.run();
  EXPECT_FALSE(std::filesystem::exists(path_)) << "what was begun before has replaced it";
}

TEST_F(MetricsFileTest, OnceItIsClosedNothingIsWritten) {
  file_.close();
  file_.on_start();
  EXPECT_FALSE(file_.on_event(rendezvous::LinkEvent{}));
  io_.run();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace drun::launcher
