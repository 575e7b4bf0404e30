// With a shell in the place of the helper.
#include "launcher/watch/gpu_watch.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/small_file.hpp"
#include "support/group_rig.hpp"
#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using drun::test::kPatience;
using test::place_of;
using Clock = std::chrono::steady_clock;

class GpuWatchTest : public testing::Test {
 protected:
  ~GpuWatchTest() override {
    if (watch_) watch_->cancel();
    io_.restart();
    io_.run();
  }
  // What the helper does for each line. What it is asked is kept.
  void watch(bool wanted, const std::string& answer) {
    ChildProgram helper;
    helper.path = "/bin/sh";
    helper.arguments = {
        "sh", "-c", "while read line; do echo \"$line\" >> \"$0\"; " + answer + "; done", log()};
    helper.own_group = true;
    watch_ = std::make_unique<GpuWatch>(
        GpuWatch::Parts{io_, [this]() -> const WorkerGroup& { return rig_.group; }, ledger_},
        wanted, helper);
  }
  void start(int round = 1) { watch_->on_workers(rig_.start(place_of(0, 1, round))); }
  void sample() {
    watch_->sample([this] { ++told_; });
  }
  void await(const std::function<bool()>& condition) {
    const auto deadline = Clock::now() + kPatience;
    io_.restart();
    while (!condition() && Clock::now() < deadline && io_.run_one_for(kPatience) > 0) {
    }
    EXPECT_TRUE(condition());
  }
  [[nodiscard]] std::string log() const { return folder_.file("log"); }
  [[nodiscard]] std::string asked() const { return read_small_file(log()).value_or(""); }

  const drun::test::TemporaryDirectory folder_;
  asio::io_context io_{1};
  test::GroupRig rig_;
  GpuLedger ledger_;
  std::unique_ptr<GpuWatch> watch_;
  int told_ = 0;
};

TEST_F(GpuWatchTest, WhereItIsWantedASampleComesByItself) {
  watch(true, "echo sample 102:2048:30");
  start();
  EXPECT_EQ(asked(), "") << "not at once";
  await([this] { return ledger_.of(1, 102) == GpuUse{2'048, 30}; });
  EXPECT_EQ(asked(), "101 102\n");
}

TEST_F(GpuWatchTest, OtherwiseNobodyIsAskedBeforeSomebodyWantsToKnow) {
  watch(false, "echo sample 102:2048:30");
  start();
  io_.run();  // there is nothing to wait for
  EXPECT_EQ(asked(), "");
  (void)rig_.end(0);
  sample();
  EXPECT_EQ(told_, 0);
  await([this] { return told_ == 1 && ledger_.of(1, 102) == GpuUse{2'048, 30}; });
  EXPECT_EQ(asked(), "102\n") << "of those that run";
  sample();
  EXPECT_EQ(told_, 2) << "there is one of this round";
  (void)rig_.stop();
  sample();
  EXPECT_EQ(told_, 3) << "there are no workers";
  start(2);
  sample();
  sample();
  await([this] { return told_ == 5 && asked() == "102\n101 102\n"; });  // one for both
}

TEST_F(GpuWatchTest, WhoCannotTellIsNotAskedAgain) {
  for (const std::string answer : {"echo unknown", "exit 0", "echo nonsense"}) {
    watch(true, answer);
    start();
    sample();
    await([this] { return told_ > 0; });
    (void)rig_.stop();
    start(2);
    sample();
    EXPECT_EQ(told_, 2) << "at once";
    EXPECT_EQ(asked(), "101 102\n") << answer;
    (void)rig_.stop();
    watch_->cancel();
    told_ = 0;
    (void)::unlink(log().c_str());
  }
}

// In the agent's loop, when the job is over: the helper may hang in its driver.
TEST_F(GpuWatchTest, OnceItIsCancelledTheLoopDoesNotWaitForTheHelper) {
  watch(true, "echo sample 102:2048:30");
  start();
  await([this] { return ledger_.of(1, 102) == GpuUse{2'048, 30}; });
  watch_->cancel();
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT), 0) << "nobody has waited for it";
  EXPECT_EQ(ended.si_status, SIGKILL);
  watch_.reset();
  EXPECT_EQ(::waitpid(ended.si_pid, nullptr, WNOHANG), -1) << "it is collected in the end";
}

TEST_F(GpuWatchTest, ADriverThatHangsHoldsNobodyUp) {
  watch(true, "sleep 1000");
  start();
  const auto begun = Clock::now();
  sample();
  await([this] { return told_ == 1; });
  EXPECT_GE(Clock::now() - begun, GpuWatch::kSampleLimit);
  EXPECT_EQ(ledger_.of(1, 102), GpuUse());
  watch_->cancel();
  sample();
  EXPECT_EQ(told_, 2);
}

}  // namespace
}  // namespace drun::launcher
