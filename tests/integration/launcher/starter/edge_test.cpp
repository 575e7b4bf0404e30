// The launcher's process, played by shells.
#include "launcher/starter/edge.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/launcher/starter/starter_rig.hpp"
#include "support/drun_process.hpp"

namespace drun::launcher {
namespace {

using hosts::Frame;
using hosts::FrameType;
using test::HeardEdge;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> shell(const std::string& script) {
  return {"sh", "-c", script};
}

bool is_gone(const std::string& pid) {
  return test::eventually([&] { return ::kill(std::stoi(pid), 0) != 0 && errno == ESRCH; });
}

TEST(EdgeTest, TellsHowALauncherEndedThatReachedNobody) {
  HeardEdge heard(shell("echo first >&2; echo 'no route' >&2; exit 3"));
  ASSERT_TRUE(heard.until_ended());
  EXPECT_THAT(heard.endings, SizeIs(1));
  EXPECT_FALSE(heard.endings[0].greeted);
  EXPECT_EQ(heard.endings[0].code, 3);
  EXPECT_EQ(heard.endings[0].stderr_end, "first\nno route\n");
  EXPECT_THAT(heard.frames, IsEmpty());
}

TEST(EdgeTest, ASignalIsTheCodeThatAShellGives) {
  HeardEdge heard(shell("kill -KILL $$"));
  ASSERT_TRUE(heard.until_ended());
  EXPECT_EQ(heard.endings[0].code, 137);
}

TEST(EdgeTest, OnlyTheEndOfWhatALauncherSaidIsKept) {
  HeardEdge heard(shell("i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done >&2; cat"));
  heard.edge().close();
  ASSERT_TRUE(heard.until_ended());
  EXPECT_THAT(heard.endings[0].stderr_end, EndsWith("\nline 4998\nline 4999\n"));
  EXPECT_EQ(heard.endings[0].stderr_end.size(), 4096U);
}

TEST(EdgeTest, ACommandThatIsNotThereIsNamed) {
  try {
    HeardEdge heard({"no-such-launcher", "node1"});
    ADD_FAILURE() << "it ran";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code().value(), ENOENT);
    EXPECT_THAT(error.what(), HasSubstr("run no-such-launcher"));
  }
}

// 'Hello' of host 9, "x" long, after the mark.
constexpr const char* kGreeting = "printf 'noise\\n\\0drun edge 1\\0\\1\\0\\0\\0\\11\\0\\0\\0\\2x'";

TEST(EdgeTest, WhoeverSendsAFrameHasGreeted) {
  HeardEdge heard(shell(std::string(kGreeting) + "; exit 5"));
  ASSERT_TRUE(heard.until_ended());
  EXPECT_THAT(heard.frames, ElementsAre(Frame{FrameType::Hello, 9, "x"}));
  EXPECT_TRUE(heard.endings[0].greeted);
  EXPECT_EQ(heard.endings[0].code, 5);
}

// As ssh: a launcher ends when its input does.
TEST(EdgeTest, ClosingEndsTheInputAndWhatWasSentIsRead) {
  HeardEdge heard(shell("wc -c >&2; exit 4"));
  heard.edge().send({FrameType::Output, 0, std::string(300'000, 'x')});
  heard.edge().close();
  ASSERT_TRUE(heard.until_ended());
  EXPECT_EQ(heard.endings[0].code, 4);
  EXPECT_EQ(std::stoi(heard.endings[0].stderr_end), 300'009);
}

TEST(EdgeTest, RunsWithNoSignalBlockedOrIgnoredInAGroupOfItsOwn) {
  ::signal(SIGUSR2, SIG_IGN);
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  HeardEdge heard(
      {"sh", "-c",
       "grep -E 'Sig(Blk|Ign)' /proc/self/status >&2; ps -o pgid= $$ >&2; echo $$ >&2"});
  ::sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
  ::signal(SIGUSR2, SIG_DFL);
  ASSERT_TRUE(heard.until_ended());
  const auto lines = drun::test::split_lines(heard.endings[0].stderr_end);
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_EQ(test::signals_in(lines[0]), 0U) << "blocked";
  EXPECT_EQ(test::signals_in(lines[1]), 0U) << "ignored";
  EXPECT_EQ(std::stoi(lines[2]), std::stoi(lines[3]));
}

// ---- what does not end by itself ----

TEST(EdgeTest, ALauncherThatHangsAfterItsInputEndedIsKilled) {
  HeardEdge heard(shell("echo $$ >&2; exec sleep 200"));
  heard.edge().close();
  ASSERT_TRUE(heard.until_ended());
  EXPECT_EQ(heard.endings[0].code, 137);
  EXPECT_TRUE(is_gone(heard.endings[0].stderr_end));
}

TEST(EdgeTest, ALauncherThatHasClosedItsStreamsIsKilled) {
  HeardEdge heard(shell("echo $$ >&2; exec >&- 2>&-; exec sleep 200"));
  ASSERT_TRUE(heard.until_ended());
  EXPECT_EQ(heard.endings[0].code, 137);
  EXPECT_TRUE(is_gone(heard.endings[0].stderr_end));
}

TEST(EdgeTest, WhatALauncherLeavesBehindIsNotWaitedFor) {
  HeardEdge heard(shell("setsid sleep 200 & echo $! >&2; exit 6"));
  ASSERT_TRUE(heard.until_ended());
  EXPECT_EQ(heard.endings[0].code, 6);
  EXPECT_THAT(heard.endings, SizeIs(1));
  ::kill(std::stoi(heard.endings[0].stderr_end), SIGKILL);
}

TEST(EdgeTest, WhoSpeaksSomethingElseIsKilled) {
  HeardEdge heard(shell("head -c 100000 /dev/zero; exec sleep 200"));
  ASSERT_TRUE(heard.until_ended());
  EXPECT_FALSE(heard.endings[0].greeted);
  EXPECT_EQ(heard.endings[0].code, 137);
}

TEST(EdgeTest, KillsTheWholeGroup) {
  const drun::test::TempDir folder;
  const std::string file = (folder.path() / "pid").string();
  HeardEdge heard(shell("sleep 200 & echo $! > " + file + "; cat"));
  ASSERT_TRUE(heard.until([&] { return drun::test::read_file(file).ends_with("\n"); }));
  heard.edge().kill();
  ASSERT_TRUE(heard.until_ended());
  EXPECT_EQ(heard.endings[0].code, 137);
  EXPECT_TRUE(is_gone(drun::test::read_file(file)));
}

TEST(EdgeTest, NoneOutlivesItsEdge) {
  asio::io_context io{1};
  drun::test::TempDir folder;
  const std::string file = (folder.path() / "pid").string();
  {
    Edge edge(io,
              shell("echo $$ > " + file + ".new; mv " + file + ".new " + file + "; exec sleep 200"),
              {[](const Frame&) {}, [](const std::string&) {}, [](const Edge::Ending&) {}});
    ASSERT_TRUE(test::run_until(io, [&] { return !drun::test::read_file(file).empty(); }));
    edge.close();
    // The loop is not run any more: nobody kills it but the end of the edge.
  }
  EXPECT_TRUE(is_gone(drun::test::read_file(file)));
}

}  // namespace
}  // namespace drun::launcher
