#include "launcher/report/failure_report.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/number_ranges.hpp"

namespace drun::launcher {
namespace {

using rendezvous::FailureSummary;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

FailureSummary exit_seven() {
  FailureSummary failure;
  failure.rank = 3;
  failure.local_rank = 1;
  failure.host = "node1";
  failure.pid = 4711;
  failure.exit_code = 7;
  failure.cause = "exit code 7";
  failure.uptime_ms = 12'340;
  return failure;
}

std::size_t count_lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(DescribeTest, SaysWhoWhatAndAfterHowLong) {
  EXPECT_EQ(describe(exit_seven()),
            "rank 3 (local rank 1 on node1, pid 4711): exit code 7 after 12.3 s");
  FailureSummary never_ran = exit_seven();
  never_ran.pid = 0;
  never_ran.cause = "cannot run /x: No such file or directory";
  EXPECT_EQ(describe(never_ran),
            "rank 3 (local rank 1 on node1): cannot run /x: No such file or directory");
}

TEST(DescribeOthersTest, NamesTheRanksAndWhatIsTheSame) {
  FailureSummary root = exit_seven();
  EXPECT_THAT(describe_others(root), ElementsAre());
  root.last_words = "ValueError: bad";
  root.others = {{{{0, 2}, {5, 5}}, "exit code 7", "ValueError: bad"},
                 {{{4, 4}}, "exit code 1", "KeyError: 'x'"},
                 {{{9, 9}}, "killed by SIGSEGV", ""}};
  EXPECT_THAT(describe_others(root),
              ElementsAre("ranks 0-2,5: exit code 7, same error",
                          "rank 4: exit code 1: KeyError: 'x'", "rank 9: killed by SIGSEGV"));
}

TEST(DescribeOthersTest, AnErrorThatNamesItsOwnRankIsTheSame) {
  FailureSummary root = exit_seven();
  root.last_words = "RuntimeError: rank " + std::to_string(root.rank) + " is lost";
  root.others = {{{{0, 2}}, "exit code 7", "RuntimeError: rank 0 is lost"},
                 {{{4, 4}}, "exit code 7", "RuntimeError: rank 0 is lost"}};
  EXPECT_THAT(describe_others(root),
              ElementsAre("ranks 0-2: exit code 7, same error",
                          "rank 4: exit code 7: RuntimeError: rank 0 is lost"));
}

TEST(EssenceTest, IsWithoutTorchsMarkOfTheRank) {
  EXPECT_EQ(headline("", {"[rank12]: ValueError: bad", "[rank12]:"}), "ValueError: bad");
  EXPECT_EQ(headline("[rank0]:   ValueError: bad\n", {}), "ValueError: bad");
  for (const char* line : {"[rank]: x", "[rank1] x", "[rank", "[rank12", "[ranks]: x"})
    EXPECT_EQ(headline("", {line}), line);
}

TEST(EssenceTest, IsTheLastLineThatSaysSomething) {
  EXPECT_EQ(headline("", {}), "");
  EXPECT_EQ(headline("Traceback\n  x\n  ValueError: bad \n\n", {"other"}), "ValueError: bad");
  EXPECT_EQ(headline("", {"first", "  out of luck ", " "}), "out of luck");
}

TEST(RenderFailureTest, WhereColourIsWantedTheCauseHasIt) {
  const std::string text = render_failure(exit_seven(), {"note"}, {.color = true});
  EXPECT_THAT(text, testing::StartsWith("drun: \033[31mjob failed: rank 3 (local rank 1 on node1"));
  EXPECT_THAT(text, HasSubstr(" after 12.3 s\033[0m\n  note\n"));
  EXPECT_EQ(render_failure(exit_seven(), {}, {}).find('\033'), std::string::npos);
}

TEST(RenderFailureTest, IsAtMostAsLongAsAskedFor) {
  FailureSummary root = exit_seven();
  root.log_file = "/logs/stderr.log";
  for (std::size_t traceback = 0; traceback < 60; traceback += 20) {
    for (std::size_t tail = 0; tail <= 40; tail += 8) {
      for (std::size_t others = 0; others < 30; others += 9) {
        root.traceback.clear();
        for (std::size_t i = 0; i < traceback; ++i)
          root.traceback += "frame " + std::to_string(i) + "\n";
        root.tail.assign(tail, "stderr");
        root.others.assign(others, {{{1, 1}}, "exit code 1", ""});
        for (std::size_t limit : {24U, 30U, 100U}) {
          const std::string text = render_failure(root, {"note"}, {.lines = limit});
          EXPECT_LE(count_lines(text), limit) << traceback << ' ' << tail << ' ' << others;
          const bool fits = count_lines(render_failure(root, {"note"}, {.lines = 1000})) <= limit;
          EXPECT_EQ(text.find("left out") == std::string::npos, fits);
        }
      }
    }
  }
}

TEST(RenderFailureTest, TheLastLineOfATracebackIsNeverLeftOut) {
  FailureSummary root = exit_seven();
  for (int i = 0; i < 100; ++i)
    root.traceback += "  frame " + std::to_string(i) + "\n";
  root.traceback += "ValueError: bad\n";
  root.tail.assign(20, "something else");
  const std::string text = render_failure(root, {}, {});
  EXPECT_THAT(text, HasSubstr("  |   frame 0\n"));
  EXPECT_THAT(text, HasSubstr("  | ValueError: bad\n"));
  EXPECT_THAT(text, HasSubstr("lines left out"));
}

TEST(RenderFailureTest, ALineThatOnlyBeginsLikeTheTracebacksLastIsShown) {
  FailureSummary root = exit_seven();
  root.traceback = "  frame 0\nValueError: bad\n";
  root.tail = {"ValueError: bad step 17"};
  EXPECT_THAT(render_failure(root, {}, {}), HasSubstr("ValueError: bad step 17"));
  root.tail = {"ValueError: bad"};
  const std::string text = render_failure(root, {}, {});
  EXPECT_EQ(text.find("ValueError: bad"), text.rfind("ValueError: bad")) << text;
}

// Python prints it to stderr as well, with frames of its own and marks below them.
TEST(RenderFailureTest, WhatStderrRepeatsOfTheTracebackIsLeftOut) {
  rendezvous::FailureSummary failure;
  failure.traceback =
      "Traceback (most recent call last):\n  File train.py, line 3\nValueError: 42\n";
  failure.tail = {"before",
                  "Traceback (most recent call last):",
                  "  File runner.py, line 9",
                  "    ~~~~^^",
                  "\tby a tab",
                  "ValueError: 42",
                  "after"};
  const std::string text = render_failure(failure, {}, {});
  for (const auto* kept : {"before", "after", "train.py", "ValueError: 42"})
    EXPECT_NE(text.find(kept), std::string::npos) << kept << " in " << text;
  for (const auto* gone : {"runner.py", "~~~~", "by a tab"})
    EXPECT_EQ(text.find(gone), std::string::npos) << gone << " in " << text;
  const auto traceback = text.find("Traceback (most");
  EXPECT_EQ(text.find("Traceback (most", traceback + 1), std::string::npos) << text;

  // Also if nothing stands before it.
  failure.tail.erase(failure.tail.begin());
  EXPECT_EQ(render_failure(failure, {}, {}).find("runner.py"), std::string::npos);
}

// On either side, and however the line was indented.
TEST(RenderFailureTest, TorchsMarkOfTheRankMakesNoOtherLine) {
  rendezvous::FailureSummary failure;
  const std::string plain = "Traceback (most recent call last):\n  File t.py\nValueError: 42\n";
  const std::string marked =
      "[rank3]: Traceback (most recent call last):\n[rank3]:   File t.py\n[rank3]: ValueError: "
      "42\n";
  const auto lines = [](const std::string& text) {
    std::vector<std::string> result;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
      result.push_back(line);
    return result;
  };
  for (const auto& [traceback, tail] : {std::pair(plain, marked), std::pair(marked, plain),
                                        std::pair(plain, plain), std::pair(marked, marked)}) {
    failure.traceback = traceback;
    failure.tail = lines(tail);
    EXPECT_THAT(render_failure(failure, {}, {}), Not(HasSubstr("last lines of stderr")))
        << traceback << tail;
  }
}

// Where it was read: the mark of the rank takes some of its room.
TEST(RenderFailureTest, ALongLineThatWasCutIsTheSameLine) {
  const std::string line = "ValueError: " + std::string(3'000, 'x');
  for (const auto& [traceback, tail] :
       {std::pair(line, "[rank3]: " + line), std::pair("[rank3]: " + line, line)}) {
    FailureSummary failure = exit_seven();
    failure.traceback = "Traceback (most recent call last):\n" + traceback;
    failure.tail = {"Traceback (most recent call last):", tail};
    EXPECT_THAT(render_failure(failure, {}, {}), Not(HasSubstr("last lines of stderr")));
  }
  FailureSummary failure = exit_seven();
  failure.traceback = "ValueError: a long";
  failure.tail = {"ValueError: a... (7 bytes more)"};
  EXPECT_THAT(render_failure(failure, {}, {}), HasSubstr("last lines of stderr"))
      << "no short one is cut";
}

// What its writer made of the exception stands below it.
TEST(RenderFailureTest, TheTracebackMayEndBeforeItsFileDoes) {
  FailureSummary failure = exit_seven();
  failure.traceback =
      "Traceback (most recent call last):\n  File t.py\nValueError: 42\n\n  in step 7\nset aside\n";
  failure.tail = {"Traceback (most recent call last):", "  File t.py", "ValueError: 42"};
  EXPECT_THAT(render_failure(failure, {}, {}), Not(HasSubstr("last lines of stderr")));
  failure.tail.back() = "ValueError: 43";
  EXPECT_THAT(render_failure(failure, {}, {}), HasSubstr("last lines of stderr"));
}

TEST(RenderFailureTest, APartThatHasItsShareIsLeftWhole) {
  FailureSummary root = exit_seven();
  root.log_file = "/logs/stderr.log";
  // Below the first line, above the line of the log, without the titles, there is room for these.
  constexpr std::size_t kRoom = 24 - 2 - 2;
  const std::size_t for_tail = kRoom / 3;
  root.tail.assign(40, "stderr");
  for (std::size_t i = 0; i < kRoom - for_tail; ++i)
    root.traceback += "frame " + std::to_string(i) + "\n";
  std::string text = render_failure(root, {}, {});
  EXPECT_THAT(text, HasSubstr("  | frame 1\n  | frame 2\n  | frame 3\n"));
  EXPECT_THAT(text, HasSubstr("  | ... 35 lines left out\n"));
  for (int i = 0; i < 40; ++i)
    root.traceback += "frame\n";
  root.tail.assign(for_tail, "stderr");
  text = render_failure(root, {}, {});
  EXPECT_THAT(text, HasSubstr("last lines of stderr:\n  | stderr\n"));
  EXPECT_EQ(count_lines(text), 24U);
  root.others.assign(4, {{{1, 1}}, "exit code 1", ""});
  text = render_failure(root, {}, {});
  EXPECT_THAT(text,
              testing::EndsWith("also failed:\n    rank 1: exit code 1\n    rank 1: exit code 1\n"
                                "    rank 1: exit code 1\n    rank 1: exit code 1\n"));
}

// There is no room for them below so many notes.
TEST(RenderFailureTest, HoweverFewTheLinesTheLastOfEachPartIsShown) {
  FailureSummary root = exit_seven();
  for (int i = 0; i < 10; ++i)
    root.traceback += "  frame " + std::to_string(i) + "\n";
  root.traceback += "ValueError: bad\n";
  root.tail = {"one", "two", "three", "four", "the last"};
  root.others.assign(9, {{{1, 1}}, "exit code 1", ""});
  const std::vector<std::string> notes(20, "note");
  const std::string text = render_failure(root, notes, {.lines = 20});
  EXPECT_THAT(text, HasSubstr("  | ... 9 lines left out\n  | ValueError: bad\n"));
  EXPECT_THAT(text, HasSubstr("  | ... 4 lines left out\n  | the last\n"));
  EXPECT_THAT(text, HasSubstr("... 6 lines left out\n"));
}

TEST(RenderFailureTest, AsksForMoreLinesWhereTheUserDoes) {
  EXPECT_EQ(report_lines(0), 24U);
  EXPECT_EQ(report_lines(20), 24U);
  EXPECT_EQ(report_lines(100), 104U);
  FailureSummary root = exit_seven();
  root.tail.assign(20, "line");
  EXPECT_THAT(render_failure(root, {}, {.lines = report_lines(20)}), Not(HasSubstr("left out")));
}

TEST(RenderFailureTest, NothingThatActsReachesTheTerminal) {
  FailureSummary root = exit_seven();
  root.host = "no\x1b[31mde";
  root.cause = "exit\x07";
  root.traceback = "\x1b]0;title\x07text\xff";
  root.tail = {"\x1b[2J"};
  root.log_file = "/x\ny";
  root.others = {{{{1, 1}}, "exit\x1b[0m", "\x1b[1m"}};
  const std::string text = render_failure(root, {"\r\x1b\x9b"}, {});
  for (const char c : text)
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= ' ') << text;
}

}  // namespace
}  // namespace drun::launcher
