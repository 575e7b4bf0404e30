#include "stacks/stack_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stack_samples.hpp"

namespace drun::stacks {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(StackTextTest, ShowsTheFewestRanksFirst) {
  EXPECT_EQ(text_of(fold(two_nodes())),
            "stacks of ranks 0-7 on node[0-1]: rank 5 is somewhere else than the other 7: in load\n"
            "  state  waits in         system call  last output   ranks\n"
            "  D      cl_sync_io_wait  read         5.0 s         rank 5\n"
            "  S      futex_do_wait    futex        0 ms - 7.0 s  ranks 0-4,6-7\n"
            "\n"
            "rank 5 on node1:\n"
            "    read (libc.so.6)\n"
            "    load\n"
            "    main\n"
            "\n"
            "ranks 0-4,6-7 on node[0-1]:\n"
            "    recv (libc.so.6)\n"
            "    all_reduce\n"
            "    main\n"
            "\n"
            "16 other threads with 1 stack: drunctl stacks --all shows them\n");
}

TEST(StackTextTest, DrunctlsReadersHaveItsFlag) {
  TextOptions options;
  options.shows_all = "--all";
  EXPECT_THAT(text_of(fold(two_nodes()), options),
              testing::EndsWith("\n16 other threads with 1 stack: --all shows them\n"));
}

TEST(StackTextTest, OfRanksThatHaveNeverPrintedThereIsNoLastOutput) {
  auto samples = std::vector{worker(0, {"main"}), worker(1, {"main"})};
  for (Sample& sample : samples) {
    sample.silence.reset();
    sample.never_printed = true;
  }
  const StackReport report = fold({"node0", {0, 1}}, samples);
  EXPECT_THAT(text_of(report), HasSubstr("  none         ranks 0-1\n"));
  EXPECT_EQ(parse_report(to_json(report)).value(), report);
  samples[0].silence = std::chrono::milliseconds(5'000);
  samples[0].never_printed = false;
  EXPECT_THAT(text_of(fold({"node0", {0, 1}}, samples)),
              HasSubstr("  5.0 s, or none  ranks 0-1\n"));
}

TEST(StackTextTest, ShowsAllOnRequest) {
  auto samples = std::vector{worker(0, {"main"}), thread(0, "loader", {"read"}, Kind::Child)};
  TextOptions options;
  options.all = true;
  const std::string text = text_of(fold({"node0", {0, 0}}, samples), options);
  EXPECT_THAT(text, HasSubstr("\nrank 0, child loader:\n    read\n"));
  EXPECT_THAT(text, Not(HasSubstr("--all")));
  EXPECT_THAT(
      text_of(fold({"node0", {0, 0}}, samples)),
      HasSubstr(
          "\n1 thread of a process that a worker has started with 1 stack: drunctl stacks --all"));
}

TEST(StackTextTest, AChildForWhichItsWorkerWaitsIsShownUnasked) {
  auto samples =
      std::vector{worker(0, {"poll", "main"}), thread(0, "loader", {"read"}, Kind::Child),
                  thread(0, "idle", {"futex"}, Kind::Child)};
  samples[1].awaited = true;
  const StackReport report = fold({"node0", {0, 0}}, samples);
  EXPECT_EQ(parse_report(to_json(report)).value(), report);
  EXPECT_THAT(text_of(report),
              HasSubstr("\nrank 0, child loader, for which it waits:\n    read\n"));
  EXPECT_THAT(text_of(report),
              HasSubstr("\n1 thread of a process that a worker has started with 1 stack: drunctl"));
}

TEST(StackTextTest, CutsWhatIsLong) {
  std::vector<Sample> samples;
  for (int rank = 0; rank < 20; ++rank)
    samples.push_back(worker(rank, {std::to_string(rank), "b", "c", "main"}));
  TextOptions options;
  options.most_frames = 3;
  options.most_groups = 2;
  const std::string text = text_of(fold({"node0", {0, 19}}, samples), options);
  EXPECT_THAT(text, HasSubstr("rank 0:\n    0\n    b\n    c\n    and 1 more outside of it\n"));
  EXPECT_THAT(text, HasSubstr("\nand 18 more groups\n"));
  EXPECT_THAT(text, Not(HasSubstr("rank 2:")));
}

TEST(StackTextTest, NothingActsOnATerminal) {
  auto samples = std::vector{worker(0, {"f\x1b[2J"}), thread(0, "t\n\x1b", {})};
  samples[0].wait = "w\x1b";
  TextOptions options;
  options.all = true;
  StackReport report = fold({"h\x1b", {0, 0}}, samples);
  report.notes = {{"n\x1b", {}}};
  report.states[0].state = '\x1b';
  EXPECT_THAT(text_of(report, options), Not(HasSubstr("\x1b")));
  EXPECT_THAT(collapsed(report), Not(HasSubstr("\x1b")));
}

TEST(StackTextTest, SaysWhyNothingIsKnown) {
  StackReport report = fold({"node0", {0, 0}}, {});
  report.notes = {{"its worker does not run", {{0, 0}}}};
  EXPECT_THAT(text_of(report), HasSubstr("\n  rank 0: its worker does not run\n"));
}

// No node gave an answer, or none has a worker that could be looked at.
TEST(StackTextTest, WhereNothingIsKnownThereIsNoTable) {
  EXPECT_EQ(text_of(StackReport()), "no stacks\n  nothing was found\n");
  EXPECT_EQ(text_of(fold({"node0", {0, 1}}, {})),
            "stacks of ranks 0-1 on node0\n  nothing was found\n");
  StackReport silent;
  silent.notes = {{"2 of 2 nodes gave no answer in time", {}}};
  EXPECT_EQ(text_of(silent), "no stacks\n\n  2 of 2 nodes gave no answer in time\n");
}

TEST(StackTextTest, CollapsesForFlameGraphs) {
  auto samples = std::vector{worker(0, {"recv", "a;b", "main"}), worker(1, {"recv", "a;b", "main"}),
                             thread(0, "io", {})};
  EXPECT_EQ(collapsed(fold({"node0", {0, 1}}, samples)),
            "worker;main;a:b;recv 2\n"
            "thread io;state S 1\n");
}

}  // namespace
}  // namespace drun::stacks
