#include "launcher/agent/progress.hpp"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;

class ProgressTest : public ::testing::Test {
 protected:
  Progress make(bool terminal) {
    return {terminal, [this](std::string_view text) { written_ += text; }};
  }
  std::string take() { return std::exchange(written_, ""); }
  // In place of the line before, without wrapping: a wrapped line could not be replaced.
  static std::string shown(const std::string& text) {
    return "\r\033[K\033[?7ldrun: " + text + "\033[?7h";
  }

  Progress::Time start_;
  std::string written_;
};

TEST_F(ProgressTest, SaysNothingAboutAShortWait) {
  auto progress = make(false);
  progress.show("waiting", start_);
  progress.on_time(start_ + milliseconds(999));
  progress.show("", start_ + milliseconds(999));
  progress.on_time(start_ + milliseconds(5000));
  EXPECT_EQ(take(), "");
  EXPECT_FALSE(progress.next_deadline());
}

TEST_F(ProgressTest, RepeatsTheLatestTextWithBackoffWhereThereIsNoTerminal) {
  auto progress = make(false);
  progress.show("1 of 2", start_);
  int lines = 0;
  for (int i = 0; i < 600; ++i) {
    progress.show("still 1 of 2", start_ + milliseconds(i * 1000));
    progress.on_time(start_ + milliseconds(i * 1000));
    const auto text = take();
    if (text.empty()) continue;
    EXPECT_EQ(text, "drun: still 1 of 2\n");
    ++lines;
  }
  EXPECT_EQ(lines, 14);  // 1, 3, 7, 15, 31, 63, then every 60 s
}

TEST_F(ProgressTest, UpdatesOneLineOnATerminalAndRemovesIt) {
  auto progress = make(true);
  progress.show("1 of 2", start_);
  progress.on_time(start_ + milliseconds(1000));
  EXPECT_EQ(take(), shown("1 of 2"));
  progress.show("2 of 2", start_ + milliseconds(1100));
  EXPECT_EQ(take(), shown("2 of 2"));
  progress.clear();
  EXPECT_EQ(take(), "\r\033[K\r");
  progress.clear();
  EXPECT_EQ(take(), "");
}

TEST_F(ProgressTest, ShowsAtOnceOnATerminalWhatSomebodyWaitsFor) {
  auto progress = make(true);
  progress.show("SIGKILL in 30 s", start_, true);
  EXPECT_EQ(take(), shown("SIGKILL in 30 s"));
  EXPECT_EQ(progress.next_deadline(), start_ + milliseconds(1000));
  auto lines = make(false);
  lines.show("SIGKILL in 30 s", start_, true);
  EXPECT_EQ(take(), "");
  lines.on_time(start_ + milliseconds(1000));
  EXPECT_EQ(take(), "drun: SIGKILL in 30 s\n");
}

}  // namespace
}  // namespace drun::launcher
