#include "launcher/telling/status_line.hpp"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;

class StatusLineTest : public ::testing::Test {
 protected:
  StatusLine make(bool terminal) {
    return {terminal, [this](std::string_view text) { written_ += text; },
            [this] { return columns_; }};
  }
  std::string take() { return std::exchange(written_, ""); }
  // In place of the line before, without wrapping: a wrapped line could not be replaced.
  static std::string shown(const std::string& text) {
    return "\r\033[K\033[?7ldrun: " + text + "\033[?7h";
  }

  StatusLine::Time start_;
  std::string written_;
  std::size_t columns_ = 0;
};

TEST_F(StatusLineTest, ALineThatIsTooLongForTheTerminalSaysThatItIsCut) {
  const std::string text = "3 of 4 (caf\xc3\xa9, node7)";  // behind "drun: ": 27 bytes
  const auto said = [&](std::size_t columns) {
    columns_ = columns;
    auto line = make(true);
    line.show(text, start_, true);
    line.on_time(start_ + milliseconds(1000));
    return take();
  };
  EXPECT_EQ(said(0), shown(text));
  EXPECT_EQ(said(28), shown(text));
  EXPECT_EQ(said(27), shown("3 of 4 (caf\xc3\xa9, no..."));
  EXPECT_EQ(said(22), shown("3 of 4 (caf..."));
  EXPECT_EQ(said(3), shown(text));
  columns_ = 10;
  auto line = make(false);
  line.show(text, start_);
  line.on_time(start_ + milliseconds(1000));
  EXPECT_EQ(take(), "drun: " + text + "\n");
}

TEST_F(StatusLineTest, SaysNothingAboutAShortWait) {
  auto line = make(false);
  line.show("waiting", start_);
  line.on_time(start_ + milliseconds(999));
  line.show("", start_ + milliseconds(999));
  line.on_time(start_ + milliseconds(5000));
  EXPECT_EQ(take(), "");
  EXPECT_FALSE(line.next_deadline());
}

TEST_F(StatusLineTest, WhatItNamesDoesNotActOnATerminal) {
  for (const bool terminal : {false, true}) {
    auto line = make(terminal);
    line.show("waiting for job evil\x1b[2J\a\n\xc2\x9b", start_, true);
    line.on_time(start_ + milliseconds(1000));
    const std::string harmless = "waiting for job evil\\x1b[2J\\x07\\n\\xc2\\x9b";
    EXPECT_EQ(take(), terminal ? shown(harmless) : "drun: " + harmless + "\n");
  }
}

TEST_F(StatusLineTest, RepeatsTheLatestTextWithBackoffWhereThereIsNoTerminal) {
  auto line = make(false);
  line.show("1 of 2", start_);
  int lines = 0;
  for (int i = 0; i < 600; ++i) {
    line.show("still 1 of 2", start_ + milliseconds(i * 1000));
    line.on_time(start_ + milliseconds(i * 1000));
    const auto text = take();
    if (text.empty()) continue;
    EXPECT_EQ(text, "drun: still 1 of 2\n");
    ++lines;
  }
  EXPECT_EQ(lines, 14);  // 1, 3, 7, 15, 31, 63, then every 60 s
}

TEST_F(StatusLineTest, UpdatesOneLineOnATerminalAndRemovesIt) {
  auto line = make(true);
  line.show("1 of 2", start_);
  line.on_time(start_ + milliseconds(1000));
  EXPECT_EQ(take(), shown("1 of 2"));
  line.show("2 of 2", start_ + milliseconds(1100));
  EXPECT_EQ(take(), shown("2 of 2"));
  line.clear();
  EXPECT_EQ(take(), "\r\033[K\r");
  line.clear();
  EXPECT_EQ(take(), "");
}

TEST_F(StatusLineTest, ShowsAtOnceOnATerminalWhatSomebodyWaitsFor) {
  auto line = make(true);
  line.show("SIGKILL in 30 s", start_, true);
  EXPECT_EQ(take(), shown("SIGKILL in 30 s"));
  EXPECT_EQ(line.next_deadline(), start_ + milliseconds(1000));
  auto lines = make(false);
  lines.show("SIGKILL in 30 s", start_, true);
  EXPECT_EQ(take(), "");
  lines.on_time(start_ + milliseconds(1000));
  EXPECT_EQ(take(), "drun: SIGKILL in 30 s\n");
}

TEST_F(StatusLineTest, ACountdownIsOneLineWhereThereIsNoTerminal) {
  for (const bool terminal : {false, true}) {
    auto line = make(terminal);
    for (int wait = 0; wait < 2; ++wait) {
      std::string all;
      for (int i = 0; i < 30; ++i) {
        const auto now = start_ + milliseconds(i * 1000);
        line.count_down("SIGKILL in " + std::to_string(30 - i) + " s", now, true);
        line.on_time(now);
        all += take();
      }
      if (terminal)
        EXPECT_TRUE(all.ends_with(shown("SIGKILL in 1 s"))) << all;
      else
        EXPECT_EQ(all, "drun: SIGKILL in 29 s\n");
      line.show("", start_ + milliseconds(30'000));
      (void)take();
    }
  }
}

}  // namespace
}  // namespace drun::launcher
