// The end on a host: this program as one, told over pipes what to do. Its agents are shells.
#include "launcher/starter/remote_end.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "drun/version.hpp"
#include "integration/launcher/starter/starter_rig.hpp"
#include "support/drun_process.hpp"

namespace drun::launcher {
namespace {

using hosts::Frame;
using hosts::FrameType;
using test::HeardEdge;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint32_t kOwn = 7;  // the host's number

std::vector<std::string> end_command() {
  return {"env",
          "SSH_CONNECTION=198.51.100.1 4000 10.9.8.7 22",
          "LOGIN=there",
          "BOTH=login",
          test::this_program(),
          std::string(hosts::kRemoteEndFlag)};
}

bool is_gone(int pid) {
  return test::eventually([&] { return ::kill(pid, 0) != 0 && errno == ESRCH; });
}

class End : public HeardEdge {
 public:
  explicit End(const std::vector<std::string>& command = end_command()) : HeardEdge(command) {}

  // Greeted; it has its number.
  [[nodiscard]] bool begin(std::vector<hosts::Target> targets = {}) {
    if (!until_frame(FrameType::Hello)) return false;
    hosts::Branch branch{{"env", "AT={host}"}, test::this_program(), 4, false, std::move(targets)};
    edge().send({FrameType::Branch, kOwn, pack(branch)});
    return true;
  }
  void order(const std::string& script, const std::string& grace = "20000",
             const std::string& directory = "/", std::uint32_t host = kOwn) {
    edge().send({FrameType::Order, host,
                 pack(hosts::Order{directory,
                                   grace,
                                   {std::string(test::kAgent), "--", "sh", "-c", script},
                                   {"ORDERED=yes", "BOTH=order"}})});
  }
  // The starter closes, and it ends by itself.
  void expect_success() {
    edge().close();
    ASSERT_TRUE(until_ended());
    EXPECT_EQ(endings[0].code, 0);
  }
  void signal(const std::string& number) { edge().send({FrameType::Signal, kOwn, number}); }
  // Of the agent, which has to print it first.
  [[nodiscard]] int pid() const { return std::stoi(text(FrameType::Output)); }
};

TEST(RemoteEndTest, SaysWhoItIs) {
  End end;
  ASSERT_TRUE(end.until_frame(FrameType::Hello));
  const auto hello = hosts::unpack_hello(end.frames[0].payload);
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->version, DRUN_VERSION_STRING);
  EXPECT_EQ(hello->address, "10.9.8.7");
  EXPECT_GT(std::stoi(hello->port), 0);
  EXPECT_FALSE(hello->host_name.empty());
  end.expect_success();
  EXPECT_TRUE(end.endings[0].greeted);
}

// Its agent is the one to bind it.
TEST(RemoteEndTest, ThePortThatItNamesIsHeldUntilTheAgentStarts) {
  End end;
  ASSERT_TRUE(end.begin());
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port =
      htons(static_cast<in_port_t>(std::stoi(hosts::unpack_hello(end.frames[0].payload)->port)));
  const auto bind = [&] {
    const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
  };
  EXPECT_FALSE(bind());
  end.order("echo runs; exec sleep 100");
  ASSERT_TRUE(end.until_text(FrameType::Output, "runs"));
  EXPECT_TRUE(bind());
}

TEST(RemoteEndTest, RunsTheAgentAsOrderedAndTellsWhatItPrintsAndHowItEnds) {
  const drun::test::TempDir folder;
  End end;
  ASSERT_TRUE(end.begin());
  end.order("echo \"$LOGIN $ORDERED $BOTH\"; pwd; cat; echo oops >&2; exit 5", "20000",
            folder.path());
  end.order("echo twice");
  ASSERT_TRUE(end.until_frame(FrameType::Ended));
  EXPECT_EQ(end.text(FrameType::Output), "there yes order\n" + folder.path().string() + "\n");
  EXPECT_EQ(end.text(FrameType::ErrorOutput), "oops\n");
  EXPECT_EQ(*end.find(FrameType::Ended), (Frame{FrameType::Ended, kOwn, "5"}));
  EXPECT_EQ(end.find(FrameType::Output)->host, kOwn);
  EXPECT_EQ(end.frames.back().type, FrameType::Ended) << "the last word";
  EXPECT_THAT(end.endings, IsEmpty()) << "the starter closes";
  end.expect_success();
}

TEST(RemoteEndTest, TheAgentFindsItsSignalsAsALoginHasThem) {
  End end;
  ASSERT_TRUE(end.begin());
  end.order("grep -hE 'Sig(Blk|Ign)' /proc/self/status; ps -o pgid= $$; echo $$");
  ASSERT_TRUE(end.until_frame(FrameType::Ended));
  const auto lines = drun::test::split_lines(end.text(FrameType::Output));
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_EQ(test::signals_in(lines[0]), 0U) << "blocked";
  EXPECT_EQ(test::signals_in(lines[1]), 0U) << "ignored";
  EXPECT_EQ(std::stoi(lines[2]), std::stoi(lines[3])) << "a group of its own";
}

// ---- orders that make no sense ----

TEST(RemoteEndTest, AFolderThatIsNotThereIsNamed) {
  End end;
  ASSERT_TRUE(end.begin());
  end.order("echo runs", "20000", "/no/such/folder");
  ASSERT_TRUE(end.until_frame(FrameType::Failed));
  EXPECT_EQ(*end.find(FrameType::Failed),
            (Frame{FrameType::Failed, kOwn,
                   "its folder cannot be entered there: /no/such/folder: No such file or "
                   "directory"}));
  end.expect_success();
  EXPECT_EQ(end.text(FrameType::Output), "");
}

TEST(RemoteEndTest, AnOrderThatIsNoneFails) {
  for (const FrameType type : {FrameType::Order, FrameType::Branch}) {
    End end;
    ASSERT_TRUE(end.begin());
    end.edge().send({type, kOwn, "nonsense"});
    ASSERT_TRUE(end.until_frame(FrameType::Failed));
    EXPECT_EQ(end.find(FrameType::Failed)->host, kOwn);
  }
}

TEST(RemoteEndTest, WhatIsForAnotherHostIsNotItsOwn) {
  End end;
  ASSERT_TRUE(end.begin());
  end.order("echo wrong", "20000", "/", kOwn + 1);
  end.order("trap 'echo got; exit 0' USR1; echo runs; while :; do sleep 0.02; done");
  ASSERT_TRUE(end.until_text(FrameType::Output, "runs\n"));
  end.edge().send({FrameType::Signal, kOwn + 1, std::to_string(SIGKILL)});
  end.signal(std::to_string(SIGUSR1));
  ASSERT_TRUE(end.until_frame(FrameType::Ended));
  EXPECT_EQ(end.text(FrameType::Output), "runs\ngot\n");
}

// ---- signals ----

TEST(RemoteEndTest, SignalsReachTheAgentAndOnlyThose) {
  End end;
  ASSERT_TRUE(end.begin());
  end.order(
      "trap 'echo usr1' USR1; trap 'echo int; exit 9' INT; echo runs; while :; do sleep 0.02; "
      "done");
  ASSERT_TRUE(end.until_text(FrameType::Output, "runs\n"));
  for (const char* none : {"0", "-1", "65", "99999999999", "INT", ""})
    end.signal(none);
  end.edge().send({FrameType::Alive, kOwn, "9"});
  end.edge().send({FrameType::Ended, kOwn, "9"});
  end.signal(std::to_string(SIGUSR1));
  ASSERT_TRUE(end.until_text(FrameType::Output, "usr1\n"));
  end.signal(std::to_string(SIGINT));
  ASSERT_TRUE(end.until_frame(FrameType::Ended));
  EXPECT_EQ(end.text(FrameType::Output), "runs\nusr1\nint\n");
  EXPECT_EQ(end.find(FrameType::Ended)->payload, "9");
  end.signal(std::to_string(SIGTERM));  // nobody is there: nothing happens
  end.expect_success();
}

TEST(RemoteEndTest, TheHighestSignalIsOneToo) {
  End end;
  ASSERT_TRUE(end.begin());
  end.order("exec sleep 100");
  end.signal("64");
  ASSERT_TRUE(end.until_frame(FrameType::Failed));
  EXPECT_THAT(end.find(FrameType::Failed)->payload, HasSubstr("its agent was killed by"));
}

TEST(RemoteEndTest, AnAgentThatIsKilledHasNoExitCode) {
  End end;
  ASSERT_TRUE(end.begin());
  end.order("kill -KILL $$");
  ASSERT_TRUE(end.until_frame(FrameType::Failed));
  EXPECT_EQ(*end.find(FrameType::Failed),
            (Frame{FrameType::Failed, kOwn, "its agent was killed by SIGKILL"}));
  EXPECT_EQ(end.find(FrameType::Ended), nullptr);
}

// Whoever ends a session there signals the end.
TEST(RemoteEndTest, ASignalToItIsForTheAgentWhileThereIsOne) {
  for (const char* name : {"TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "XCPU", "RTMIN"}) {
    const std::string signal = name;
    End end;
    ASSERT_TRUE(end.begin());
    end.order("n=0; trap 'n=$((n+1)); echo got $n; [ $n -lt 2 ] || exit 3; kill -" + signal +
              " $PPID' " + signal + "; kill -" + signal + " $PPID; while :; do sleep 0.02; done");
    ASSERT_TRUE(end.until_frame(FrameType::Ended)) << signal;
    EXPECT_EQ(end.text(FrameType::Output), "got 1\ngot 2\n") << signal;
    EXPECT_EQ(end.find(FrameType::Ended)->payload, "3");
    EXPECT_THAT(end.endings, IsEmpty());
  }
}

TEST(RemoteEndTest, ASignalToItEndsItIfItHasNoAgent) {
  const drun::test::TempDir folder;
  const std::string file = (folder.path() / "pid").string();
  for (const int signal : {SIGTERM, SIGQUIT}) {
    End end({"sh", "-c",
             "echo $$ > " + file + "; exec " + test::this_program() + " " +
                 std::string(hosts::kRemoteEndFlag)});
    ASSERT_TRUE(end.until_frame(FrameType::Hello));
    ::kill(std::stoi(drun::test::read_file(file)), signal);
    ASSERT_TRUE(end.until_ended());
    EXPECT_EQ(end.endings[0].code, 0) << "by itself";
  }
}

// Slurm's --signal may come before there is anybody to save anything.
TEST(RemoteEndTest, ASignalForWorkersIsForNobodyBeforeThereIsAnAgent) {
  const drun::test::TempDir folder;
  const std::string file = (folder.path() / "pid").string();
  End end({"sh", "-c",
           "echo $$ > " + file + "; exec " + test::this_program() + " " +
               std::string(hosts::kRemoteEndFlag)});
  ASSERT_TRUE(end.begin());
  for (const int signal : {SIGUSR1, SIGUSR2, SIGXCPU})
    ::kill(std::stoi(drun::test::read_file(file)), signal);
  // Once it has answered it has looked at the signals, too.
  end.edge().send({FrameType::Branch, kOwn, "nonsense"});
  ASSERT_TRUE(end.until_frame(FrameType::Failed));
  end.order("echo runs");
  ASSERT_TRUE(end.until_frame(FrameType::Ended));
  EXPECT_EQ(end.text(FrameType::Output), "runs\n");
  end.expect_success();
}

// ---- output ----

// A reader that takes nothing holds the agent back, and no bytes pile up on the way.
TEST(RemoteEndTest, SendsNoMoreThanTheStarterTakes) {
  constexpr std::size_t kAll = 1'500'000;
  constexpr std::size_t kPiece = 64 * 1024;  // it reads
  End end;
  ASSERT_TRUE(end.begin());
  end.order("trap 'echo here >&2' USR1; head -c " + std::to_string(kAll) +
            " /dev/zero & while ! wait; do :; done; echo done >&2");
  const auto came = [&] { return end.text(FrameType::Output).size(); };
  ASSERT_TRUE(end.until([&] { return came() >= hosts::kOutputWindow; }));
  for (std::size_t i = 1; i <= 3; ++i) {  // time for more to come; stderr is not held back
    end.signal(std::to_string(SIGUSR1));
    ASSERT_TRUE(end.until([&] { return end.text(FrameType::ErrorOutput).size() >= 5 * i; }));
  }
  std::size_t taken = came();
  EXPECT_LT(taken, hosts::kOutputWindow + kPiece);
  end.edge().send({FrameType::ErrorTaken, kOwn, std::to_string(taken)});  // not of this stream
  end.edge().send({FrameType::Taken, kOwn, "nonsense"});
  end.signal(std::to_string(SIGUSR1));
  ASSERT_TRUE(end.until([&] { return end.text(FrameType::ErrorOutput).size() >= 20; }));
  EXPECT_EQ(came(), taken);
  end.edge().send({FrameType::Taken, kOwn, std::to_string(taken)});
  ASSERT_TRUE(end.until([&] { return came() >= taken + hosts::kOutputWindow; }));
  EXPECT_LT(came(), taken + hosts::kOutputWindow + kPiece);
  while (came() < kAll) {
    end.edge().send({FrameType::Taken, kOwn, std::to_string(came() - taken)});
    taken = came();
    ASSERT_TRUE(end.until([&] { return came() > taken || came() == kAll; }));
  }
  ASSERT_TRUE(end.until_frame(FrameType::Ended));
  EXPECT_EQ(came(), kAll);
  EXPECT_THAT(end.text(FrameType::ErrorOutput), EndsWith("done\n"));
}

TEST(RemoteEndTest, ErrorOutputIsHeldBackByItself) {
  constexpr std::size_t kAll = 700'000;
  End end;
  ASSERT_TRUE(end.begin());
  end.order("head -c " + std::to_string(kAll) + " /dev/zero >&2; echo done");
  const auto came = [&] { return end.text(FrameType::ErrorOutput).size(); };
  ASSERT_TRUE(end.until([&] { return came() >= hosts::kOutputWindow; }));
  EXPECT_EQ(end.text(FrameType::Output), "");
  end.edge().send({FrameType::ErrorTaken, kOwn, std::to_string(came())});
  end.edge().send({FrameType::ErrorTaken, kOwn, std::to_string(kAll)});  // more than has come
  ASSERT_TRUE(end.until([&] { return came() >= 2 * hosts::kOutputWindow; }));
  end.edge().send({FrameType::ErrorTaken, kOwn, std::to_string(kAll)});
  ASSERT_TRUE(end.until_frame(FrameType::Ended));
  EXPECT_EQ(came(), kAll);
  EXPECT_EQ(end.text(FrameType::Output), "done\n");
}

TEST(RemoteEndTest, AnEndIsHeardOfThoughNothingIsTaken) {
  End end;
  ASSERT_TRUE(end.begin());
  end.order("head -c 290000 /dev/zero; echo; exit 6");
  ASSERT_TRUE(end.until_frame(FrameType::Ended));
  EXPECT_EQ(end.find(FrameType::Ended)->payload, "6");
  EXPECT_EQ(end.text(FrameType::Output).size(), 290'001U);
}

TEST(RemoteEndTest, WhatTheAgentLeavesBehindIsNotWaitedForLong) {
  End end;
  ASSERT_TRUE(end.begin());
  end.order("setsid sleep 300 & echo $!; exit 4");
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(end.until_frame(FrameType::Ended));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(900));
  EXPECT_EQ(end.find(FrameType::Ended)->payload, "4");
  EXPECT_EQ(end.frames.back().type, FrameType::Ended);
  end.expect_success();
  ::kill(end.pid(), SIGKILL);
}

// ---- the starter is gone ----

TEST(RemoteEndTest, EndsItsAgentWhenTheStarterIsGone) {
  const drun::test::TempDir folder;
  const std::string said = (folder.path() / "said").string();
  End end;
  ASSERT_TRUE(end.begin());
  end.order("trap 'echo told > " + said + "; exit 0' TERM; echo $$; while :; do sleep 0.02; done");
  ASSERT_TRUE(end.until_text(FrameType::Output, "\n"));
  end.expect_success();
  EXPECT_TRUE(is_gone(end.pid()));
  EXPECT_EQ(drun::test::read_file(said), "told\n");
}

// Nor does it matter how much it had to say, or that it was stopped.
TEST(RemoteEndTest, AnAgentThatIsStoppedOrHeldBackEndsWithTheStarter) {
  End end;
  ASSERT_TRUE(end.begin());
  end.order(
      "echo $$; trap 'head -c 700000 /dev/zero; exit 0' TERM; kill -STOP $$; while :; do sleep "
      "0.02; done");
  ASSERT_TRUE(end.until_text(FrameType::Output, "\n"));
  end.expect_success();
  EXPECT_TRUE(is_gone(end.pid()));
}

TEST(RemoteEndTest, AnAgentThatDoesNotEndInItsGraceIsKilled) {
  End end;
  ASSERT_TRUE(end.begin());
  end.order("trap '' TERM; echo $$; while :; do sleep 0.02; done", "300");
  ASSERT_TRUE(end.until_text(FrameType::Output, "\n"));
  const auto begun = std::chrono::steady_clock::now();
  end.edge().close();
  ASSERT_TRUE(end.until_ended());
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(300));
  EXPECT_EQ(end.endings[0].code, 0);
  EXPECT_TRUE(is_gone(end.pid()));
}

TEST(RemoteEndTest, AnAgentWhoseEndIsKilledIsTold) {
  const drun::test::TempDir folder;
  const std::string said = (folder.path() / "said").string();
  End end;
  ASSERT_TRUE(end.begin());
  end.order("trap 'echo told > " + said + "; exit 0' TERM; echo $$; while :; do sleep 0.02; done");
  ASSERT_TRUE(end.until_text(FrameType::Output, "\n"));
  end.edge().kill();
  ASSERT_TRUE(end.until_ended());
  EXPECT_TRUE(is_gone(end.pid()));
  EXPECT_EQ(drun::test::read_file(said), "told\n");
}

// ---- further hosts ----

TEST(RemoteEndTest, StartsWhatHangsOnItAndPassesOnWhatComesFromThere) {
  End end;
  ASSERT_TRUE(end.begin({{8, "b"}, {9, "c"}}));
  ASSERT_TRUE(end.until([&] { return end.frames.size() == 3; }));
  std::vector<std::uint32_t> greeted;
  for (const Frame& frame : end.frames)
    if (frame.type == FrameType::Hello) greeted.push_back(frame.host);
  EXPECT_THAT(greeted, ::testing::UnorderedElementsAre(0U, 8U, 9U));
  end.order("echo $AT; exit 1", "20000", "/", 8);
  end.order("echo $AT; exit 2", "20000", "/", 9);
  end.order("echo own; exit 3");
  ASSERT_TRUE(end.until([&] { return end.text(FrameType::Ended).size() == 3; }));
  const auto of = [&](FrameType type, std::uint32_t host) {
    std::string text;
    for (const Frame& frame : end.frames)
      if (frame.type == type && frame.host == host) text += frame.payload;
    return text;
  };
  EXPECT_EQ(of(FrameType::Output, 8) + of(FrameType::Ended, 8), "b\n1");
  EXPECT_EQ(of(FrameType::Output, 9) + of(FrameType::Ended, 9), "c\n2");
  EXPECT_EQ(of(FrameType::Output, kOwn) + of(FrameType::Ended, kOwn), "own\n3");
  end.expect_success();
}

TEST(RemoteEndTest, WhatHangsOnItEndsWithTheStarter) {
  End end;
  ASSERT_TRUE(end.begin({{8, "b"}}));
  ASSERT_TRUE(end.until([&] { return end.frames.size() == 2; }));
  end.order("echo $$; exec sleep 200", "20000", "/", 8);
  ASSERT_TRUE(end.until_text(FrameType::Output, "\n"));
  end.edge().close();
  ASSERT_TRUE(end.until_ended());
  EXPECT_EQ(end.endings[0].code, 0) << "after those that it had started";
  EXPECT_TRUE(is_gone(end.pid()));
}

}  // namespace
}  // namespace drun::launcher
