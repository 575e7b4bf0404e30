#include "launcher/job_stacks/agent_stacks.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stacks/stack_report.hpp"
#include "support/group_rig.hpp"
#include "support/output_rig.hpp"
#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using drun::test::kPatience;
using test::place_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

const std::string kHost = "node7";

class AgentStacksTest : public testing::Test {
 protected:
  AgentStacksTest() { options_.run_id = "my\njob"; }
  ~AgentStacksTest() override { stacks_.cancel(); }
  Output& output_with_logs() {
    screen_.options.choices.log_dir = folder_.file("logs");
    return screen_.start();
  }
  bool until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    io_.restart();
    while (!condition())
      if (io_.run_one_until(deadline) == 0) return false;
    return true;
  }
  bool until_said(std::size_t lines) {
    return until([&] { return said_.size() >= lines; });
  }
  void tell() {
    stacks_.tell([this](const Result<std::string>& text) {
      told_.push_back(text ? *text : "none: " + text.error().what());
    });
  }
  void answer(bool whole_job, bool unwind) {
    stacks_.answer(whole_job, unwind, [this](const std::string& text) { told_.push_back(text); });
  }

  const drun::test::TemporaryDirectory folder_;
  asio::io_context io_{1};
  Options options_;
  drun::test::OutputRig screen_;
  test::GroupRig rig_;
  std::vector<std::string> said_;
  StatusReporter status_{{false, [this](std::string text) { said_.push_back(std::move(text)); },
                          [](const std::string&) {}, [] { return std::size_t{0}; }},
                         nullptr,
                         true};
  std::string error_;  // of the looks
  std::vector<stacks::StackGroup> groups_;
  std::vector<LookRequest> requests_;  // that were looked for; looked at when all are told
  std::vector<std::string> told_;
  AgentStacks stacks_{
      {io_,
       options_,
       kHost,
       output_with_logs(),
       rig_.output,
       status_,
       [this]() -> const WorkerGroup& { return rig_.group; },
       [] {},
       {},
       [this](const LookRequest& request, ChildStop& /*stop*/) -> Result<std::string> {
         requests_.push_back(request);
         if (!error_.empty()) return Error(std::make_error_code(std::errc::io_error), error_);
         stacks::StackReport report;
         report.nodes.push_back(request.node);
         report.groups = groups_;
         return to_json(report);
       }}};
};

TEST_F(AgentStacksTest, WithoutWorkersThereIsNothingToShow) {
  stacks_.show();
  tell();
  EXPECT_THAT(told_, ElementsAre("none: no worker runs on this node now"));
  EXPECT_EQ(io_.run(), 0U);
  EXPECT_THAT(requests_, IsEmpty());
}

TEST_F(AgentStacksTest, TheUserReadsThemAndHasThemInFiles) {
  rig_.start(place_of(0, 1));
  for (const std::size_t time : {1U, 2U}) {
    stacks_.show();
    ASSERT_TRUE(until_said(time));
    EXPECT_THAT(said_.back(), AllOf(StartsWith("drun: "), HasSubstr("node7")));
    const std::string name = "stacks_" + std::to_string(time);
    const auto at = said_.back().find("all stacks: ");
    ASSERT_NE(at, std::string::npos) << said_.back();
    const std::string path = said_.back().substr(at + 12, said_.back().size() - at - 13);
    EXPECT_THAT(path, EndsWith(name + ".txt"));
    EXPECT_TRUE(std::filesystem::exists(path));
    std::ifstream json(std::filesystem::path(path).replace_extension(".json"));
    const std::string text{std::istreambuf_iterator<char>(json), {}};
    EXPECT_TRUE(stacks::parse_report(text)) << text;
  }
}

TEST_F(AgentStacksTest, StacksThatAreNotToBeHadAreAWarning) {
  rig_.start(place_of(0, 1));
  error_ = "no such process";
  stacks_.show();
  ASSERT_TRUE(until_said(1));
  EXPECT_THAT(said_, ElementsAre("drun: warning: no stacks: no such process\n"));
}

TEST_F(AgentStacksTest, ThePageGetsThemForPeople) {
  rig_.start(place_of(0, 1));
  tell();
  ASSERT_TRUE(until([this] { return !told_.empty(); }));
  EXPECT_THAT(told_[0], AllOf(StartsWith("job my\\njob: "), HasSubstr("node7"),
                              Not(HasSubstr("all stacks"))));
  error_ = "no such process";
  tell();
  ASSERT_TRUE(until([this] { return told_.size() >= 2; }));
  EXPECT_EQ(told_[1], "none: no such process");
}

TEST_F(AgentStacksTest, AProgramGetsTheReport) {
  rig_.start(place_of(0, 1));
  answer(false, false);
  ASSERT_TRUE(until([this] { return !told_.empty(); }));
  EXPECT_TRUE(stacks::parse_report(told_[0]));
  error_ = "no such process";
  answer(true, true);
  ASSERT_TRUE(until([this] { return told_.size() >= 2; }));
  EXPECT_EQ(told_[1], "error: no such process\n");
  ASSERT_THAT(requests_, SizeIs(2));
  EXPECT_FALSE(requests_[0].unwind);
  EXPECT_TRUE(requests_[1].unwind);
}

TEST_F(AgentStacksTest, RanksThatHangHearWhereTheyAre) {
  auto place = place_of(1, 2);  // ranks 2 and 3
  place.group_world_size = 100'000;
  rig_.start(place);
  groups_.resize(1);
  groups_[0].frames = {"epoll_wait (libc.so.6)", "MPI_Barrier (libmpi.so.40)", "main (train)"};
  groups_[0].ranks = {{3, 3}};
  std::vector<WaitingRank> waiting(2);
  waiting[1].local_rank = 1;
  std::vector<WaitingRank> found;
  const auto add = [&] {
    found.clear();
    stacks_.add_frames(waiting, [&](const auto& ranks) { found = ranks; });
  };
  add();
  ASSERT_TRUE(until([&] { return !found.empty(); }));
  EXPECT_EQ(found[0].frame, "");
  EXPECT_EQ(found[1].frame, "MPI_Barrier (libmpi.so.40)");
  EXPECT_TRUE(found[1].for_ranks);
  ASSERT_TRUE(stacks_.before_stop().begin(true, {}, [] {}) == std::nullopt)
      << "the stop needs no second look";
  ASSERT_THAT(requests_, SizeIs(1));
  EXPECT_EQ(requests_[0].all, options_.stacks_limit * 4 / 5);
  EXPECT_EQ(requests_[0].longest, stacks::kLongestAnswer) << "however large the job is";
  error_ = "no such process";
  add();
  ASSERT_TRUE(until([&] { return !found.empty(); }));
  EXPECT_EQ(found[1].frame, "");
  options_.stacks_limit = std::chrono::milliseconds(0);
  add();
  EXPECT_THAT(found, SizeIs(2)) << "at once: nobody looks";
  EXPECT_THAT(requests_, SizeIs(2));
}

TEST_F(AgentStacksTest, OnceItIsCancelledNobodyIsTold) {
  rig_.start(place_of(0, 1));
  stacks_.show();
  tell();
  answer(true, true);
  stacks_.cancel();
  io_.run();
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
