#include "launcher/job_stacks/stack_desk.hpp"

#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stacks/stack_report.hpp"
#include "support/group_rig.hpp"
#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using drun::test::kPatience;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::place_of;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// ---- what is asked for ----

TEST(LookRequestTest, NamesTheRanksAndSaysHowLongTheyAreSilent) {
  test::GroupRig rig;
  rig.start(place_of(1, 2, 3));
  (void)rig.end(0);
  rig.output.last_outputs[rig.id(0)] = rig.now;
  rig.output.last_outputs[rig.id(1)] = rig.now + seconds(2);
  const LookRequest request = look_request(rig.group, rig.output, "node7", rig.now + seconds(9));
  EXPECT_EQ(request.round, 3);
  EXPECT_EQ(request.node.host, "node7");
  EXPECT_EQ(request.node.ranks.first, 2);
  EXPECT_EQ(request.node.ranks.last, 3);
  ASSERT_THAT(request.workers, SizeIs(2));
  EXPECT_EQ(request.workers[0].rank, 2);
  EXPECT_EQ(request.workers[0].pid, 0) << "it has ended";
  EXPECT_FALSE(request.workers[0].silence);
  EXPECT_EQ(request.workers[1].rank, 3);
  EXPECT_EQ(request.workers[1].pid, 102);
  EXPECT_EQ(request.workers[1].silence, seconds(7));
}

TEST(LookRequestTest, OneThatHasNeverPrintedHasNoSilence) {
  test::GroupRig rig;
  rig.start(place_of(0, 1));
  rig.output.last_outputs[rig.id(0)] = Output::Time::min();
  const LookRequest request = look_request(rig.group, rig.output, "node7", rig.now + seconds(9));
  EXPECT_FALSE(request.workers[0].silence);
  EXPECT_TRUE(request.workers[0].never_printed);
  EXPECT_FALSE(request.workers[1].never_printed) << "nobody knows";
}

TEST(LookRequestTest, SilenceIsNoLongerThanTheWorkerRuns) {
  test::GroupRig rig;
  rig.start(place_of(0, 1));
  rig.output.last_outputs[rig.id(0)] = rig.now - seconds(100);
  const LookRequest request = look_request(rig.group, rig.output, "node7", rig.now + seconds(9));
  EXPECT_EQ(request.workers[0].silence, seconds(9));
  EXPECT_FALSE(request.workers[1].silence) << "nobody knows";
}

// ---- the looks ----

class StackDeskTest : public testing::Test {
 protected:
  void take(const StackWish& wish, const std::string& name = "") {
    desk_.take(wish, [this, name](const Result<std::string>& report) {
      told_.push_back(name + (report ? *report : "none: " + report.error().what()));
    });
  }
  std::vector<std::string> told(std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    io_.restart();
    while (told_.size() < count && io_.run_one_until(deadline) > 0) {
    }
    return std::exchange(told_, {});
  }

  asio::io_context io_{1};
  int round_ = 1;
  std::string error_;                  // of the looks to come
  std::string report_;                 // that they find; empty: one with a number
  std::vector<LookRequest> requests_;  // that were looked for; looked at when all are told
  std::vector<std::string> told_;
  std::string held_;
  StackDesk desk_{io_,
                  [this] {
                    LookRequest request;
                    request.round = round_;
                    return request;
                  },
                  [this](const LookRequest& request, ChildStop& /*stop*/) -> Result<std::string> {
                    requests_.push_back(request);
                    if (!error_.empty())
                      return Error(std::make_error_code(std::errc::io_error), error_);
                    if (!report_.empty()) return report_;
                    return "report " + std::to_string(requests_.size());
                  },
                  [this](bool held) { held_ += held ? "held " : "let go "; }};
};

TEST_F(StackDeskTest, WhoAskAtOnceShareALook) {
  take({}, "a ");
  take({}, "b ");
  EXPECT_THAT(told(2), ElementsAre("a report 1", "b report 1"));
  take({}, "c ");
  EXPECT_THAT(told(1), ElementsAre("c report 2")) << "what was found before is old";
  EXPECT_THAT(requests_, SizeIs(2));
}

// Who runs drun finds none of its processes when it has ended.
TEST_F(StackDeskTest, WhatLooksIsGoneWhenItIsCancelled) {
  const drun::test::TemporaryDirectory folder;
  const std::string fifo = folder.file("up");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ChildProgram looker;
  looker.path = "/bin/sh";
  looker.arguments = {"sh", "-c", "echo $$ > \"$0\"; exec sleep 1000", fifo};
  StackDesk desk(
      io_, [] { return LookRequest(); },
      [looker](const LookRequest& /*request*/, ChildStop& stop) {
        return output_of(looker, std::chrono::steady_clock::now() + kPatience, stop);
      });
  desk.take({}, [](const auto& /*report*/) { FAIL() << "nobody is told"; });
  pid_t pid = 0;
  std::ifstream(fifo) >> pid;  // waits for it
  ASSERT_GT(pid, 0);
  desk.cancel();
  EXPECT_TRUE(drun::test::eventually([&] { return ::kill(pid, 0) != 0; }));
}

// A hang is not to be taken for life, because the looker touches the workers.
TEST_F(StackDeskTest, WhileItLooksTheWorkersAreHeld) {
  take({});
  take({});
  EXPECT_EQ(held_, "held ");
  (void)told(2);
  EXPECT_EQ(held_, "held let go ");
  error_ = "no answer";
  take({});
  (void)told(1);
  EXPECT_EQ(held_, "held let go held let go ");
}

TEST_F(StackDeskTest, ALookWithoutStacksIsAnother) {
  StackWish quick;
  quick.unwind = false;
  take({}, "a ");
  take(quick, "b ");
  EXPECT_THAT(told(2), ElementsAre("a report 1", "b report 2"));
  EXPECT_TRUE(requests_[0].unwind);
  EXPECT_FALSE(requests_[1].unwind);
}

TEST_F(StackDeskTest, AWishIsALimitAndNotMore) {
  StackWish wish;
  wish.limit = milliseconds(700);
  wish.longest = 99;
  take(wish);
  (void)told(1);
  wish.limit = seconds(1'000);
  take(wish);
  (void)told(1);
  ASSERT_THAT(requests_, SizeIs(2));
  EXPECT_EQ(requests_[0].all, milliseconds(700));
  EXPECT_EQ(requests_[0].each, milliseconds(700));
  EXPECT_EQ(requests_[0].longest, 99U);
  EXPECT_EQ(requests_[1].all, LookRequest().all);
  EXPECT_EQ(requests_[1].each, LookRequest().each);
}

TEST_F(StackDeskTest, ALookThatFailsSaysWhy) {
  error_ = "no such process";
  take({});
  EXPECT_THAT(told(1), ElementsAre("none: no such process"));
}

TEST_F(StackDeskTest, WhatIsKeptWillDoForTheLastLookOfItsRound) {
  StackWish keep;
  keep.keep = true;
  StackWish last;
  last.last = true;
  take({});
  take(keep);
  (void)told(2);
  take(last, "last ");
  EXPECT_THAT(told_, ElementsAre("last report 1")) << "at once: the workers may be gone";
  told_.clear();
  take({}, "another ");
  EXPECT_THAT(told(1), ElementsAre("another report 2"));
  round_ = 2;
  take(last, "next ");
  EXPECT_THAT(told(1), ElementsAre("next report 3"));
}

// What finds the root cause needs all stacks of the node; what goes to the first node of a large
// job must be short.
TEST_F(StackDeskTest, NobodyGetsMoreThanItHasAskedFor) {
  constexpr std::size_t kShort = 4'096;
  stacks::StackReport whole;
  whole.groups.resize(100);
  for (auto& group : whole.groups)
    group.frames = {std::string(200, 'f')};
  report_ = to_json(whole);
  StackWish keep;
  keep.keep = true;
  StackWish last;
  last.last = true;
  last.longest = kShort;
  take(keep);
  take(last);
  const auto shared = told(2);
  EXPECT_EQ(shared[0], report_);
  EXPECT_LE(shared[1].size(), kShort);
  EXPECT_TRUE(stacks::parse_report(shared[1]));
  take(last);
  const auto kept = told(1);
  ASSERT_THAT(kept, SizeIs(1));
  EXPECT_EQ(kept[0], shared[1]);
  last.longest = keep.longest;
  take(last);
  EXPECT_THAT(told(1), ElementsAre(report_));
  EXPECT_THAT(requests_, SizeIs(1));
}

TEST_F(StackDeskTest, WithoutTheWishNothingIsKept) {
  StackWish last;
  last.last = true;
  take({});
  (void)told(1);
  take(last);
  EXPECT_THAT(told(1), ElementsAre("report 2"));
  StackWish keep;
  keep.keep = true;
  error_ = "it failed";
  take(keep);
  (void)told(1);
  error_.clear();
  take(last);
  EXPECT_THAT(told(1), ElementsAre("report 4"));
}

TEST_F(StackDeskTest, WhoAsksFromInsideBeginsAnother) {
  desk_.take({}, [this](const Result<std::string>& report) {
    told_.push_back(*report);
    take({});
  });
  EXPECT_THAT(told(2), ElementsAre("report 1", "report 2"));
}

TEST_F(StackDeskTest, AfterCancelNobodyIsTold) {
  take({});
  desk_.cancel();
  io_.run();
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(StackDeskTest, AReportIsDescribedAndSaved) {
  const std::string report = to_json(stacks::StackReport());
  const auto describe = [&](std::string json, StackDesk::Save save) {
    desk_.describe(std::move(json), std::move(save), [this](const StackDesk::Described& found) {
      told_.push_back(found.text + "|" + found.file);
    });
    return told(1).front();
  };
  const std::string plain = describe(report, {});
  EXPECT_THAT(plain, testing::EndsWith("\n|")) << "no file";
  std::string saved;
  EXPECT_EQ(describe(report,
                     [&saved](const std::string& /*text*/, const std::string& json) {
                       saved = json;
                       return std::string("saved");
                     }),
            plain.substr(0, plain.size() - 1) + "\nall stacks: saved\n|saved");
  EXPECT_EQ(saved, report);
  EXPECT_EQ(describe(report,
                     [](const std::string&, const std::string&) -> std::string {
                       throw std::runtime_error("no room");
                     }),
            plain.substr(0, plain.size() - 1) + "no room\n|");
  EXPECT_THAT(describe("no report", {}), testing::EndsWith("\n|"));
}

}  // namespace
}  // namespace drun::launcher
