#include "launcher/watch/timer_watch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "support/patience.hpp"

namespace drun::launcher {
namespace {

using drun::test::kPatience;
using testing::ElementsAre;
using testing::IsEmpty;

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class TimerWatchTest : public testing::Test {
 protected:
  // As torch does it, from a worker.
  void request(pid_t pid, const std::string& scope, double expires, int signal = SIGKILL) const {
    const FileDescriptor pipe(::open(watch_.path().c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_TRUE(pipe) << watch_.path();
    const std::string line = "{\"pid\": " + std::to_string(pid) + ", \"scope_id\": \"" + scope +
                             "\", \"expiration_time\": " + std::to_string(expires) +
                             ", \"signal\": " + std::to_string(signal) + "}\n";
    ASSERT_EQ(::write(pipe.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }
  bool until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition())
      if (io_.run_one_until(deadline) == 0) return false;
    return true;
  }

  asio::io_context io_{1};
  bool running_ = true;
  std::vector<std::string> expired_;  // "epoch of 4711: 9"
  TimerWatch watch_{io_, [this] { return running_; },
                    [this](const hang::FileTimers::Expired& timer) {
                      expired_.push_back(timer.scope + " of " + std::to_string(timer.pid) + ": " +
                                         std::to_string(timer.signal));
                    }};
};

TEST_F(TimerWatchTest, ATimerThatIsOverIsToldOnce) {
  request(4'711, "epoch", now() - 1);
  ASSERT_TRUE(until([this] { return !expired_.empty(); }));
  request(4'712, "step", now() - 1, SIGUSR1);
  ASSERT_TRUE(until([this] { return expired_.size() >= 2; }));
  EXPECT_THAT(expired_, ElementsAre("epoch of 4711: 9", "step of 4712: 10"));
}

TEST_F(TimerWatchTest, ATimerIsToldWhenItsTimeComes) {
  const double due = now() + 0.2;
  request(4'711, "epoch", due);
  ASSERT_TRUE(until([this] { return !expired_.empty(); }));
  EXPECT_GE(now(), due);
}

TEST_F(TimerWatchTest, OneThatIsTakenBackIsNotTold) {
  request(4'711, "epoch", now() + 0.05);
  request(4'711, "epoch", -1);
  request(4'712, "later", now() + 0.1);
  ASSERT_TRUE(until([this] { return !expired_.empty(); }));
  EXPECT_THAT(expired_, ElementsAre("later of 4712: 9"));
}

TEST_F(TimerWatchTest, TimersOfWorkersThatAreGoneAreForgotten) {
  running_ = false;
  request(4'711, "epoch", now() - 1);
  while (io_.poll() == 0) {
  }
  running_ = true;
  request(4'712, "step", now() - 1);
  ASSERT_TRUE(until([this] { return !expired_.empty(); }));
  EXPECT_THAT(expired_, ElementsAre("step of 4712: 9"));
}

TEST_F(TimerWatchTest, OnceItIsCancelledTheLoopEnds) {
  request(4'711, "epoch", now() + 1'000);
  while (io_.poll() == 0) {
  }
  watch_.cancel();
  io_.run();
  EXPECT_THAT(expired_, IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
