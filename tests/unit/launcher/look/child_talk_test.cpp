#include "launcher/look/child_talk.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/small_file.hpp"
#include "base/whole_number.hpp"
#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using drun::test::eventually;
using drun::test::kPatience;
using Clock = std::chrono::steady_clock;

class ChildTalkTest : public testing::Test {
 protected:
  void SetUp() override { before_ = ::signal(SIGPIPE, SIG_IGN); }
  void TearDown() override { ::signal(SIGPIPE, before_); }

 private:
  sighandler_t before_ = SIG_DFL;
};

ChildProgram talker(const std::string& script, const std::string& argument = "") {
  ChildProgram program;
  program.path = "/bin/sh";
  program.arguments = {"sh", "-c", script, argument};
  program.own_group = true;
  return program;
}

Result<std::string> ask(ChildTalk& talk, const std::string& line) {
  return talk.ask(line + "\n", Clock::now() + kPatience);
}

TEST_F(ChildTalkTest, EachLineHasAnAnswerOfTheSameProgram) {
  ChildTalk talk(talker("n=0; while read line; do n=$((n + 1)); echo \"$n $line\"; done"));
  EXPECT_EQ(ask(talk, "one").value(), "1 one\n");
  EXPECT_EQ(ask(talk, "two words").value(), "2 two words\n");
}

TEST_F(ChildTalkTest, OneThatHasEndedIsNotStartedAgain) {
  const drun::test::TemporaryDirectory folder;
  ChildTalk talk(talker("echo started >> \"$0\"; read line; echo yes", folder.file("log")));
  EXPECT_EQ(ask(talk, "one").value(), "yes\n");
  for (int i = 0; i < 2; ++i)
    EXPECT_FALSE(ask(talk, "two"));
  EXPECT_EQ(read_small_file(folder.file("log")), "started\n");
}

TEST_F(ChildTalkTest, OneThatDoesNotAnswerIsKilledWithItsGroup) {
  const drun::test::TemporaryDirectory folder;
  ChildTalk talk(talker("sleep 1000 & echo $! > \"$0\"; read line; wait", folder.file("pid")));
  pid_t below = 0;
  std::thread asker([&] { EXPECT_FALSE(talk.ask("one\n", Clock::now() + kPatience)); });
  EXPECT_TRUE(eventually([&] {
    const auto text = read_small_file(folder.file("pid"));
    if (!text || !text->ends_with('\n')) return false;
    below = whole_number<pid_t>(text->substr(0, text->size() - 1)).value_or(0);
    return below > 0;
  }));
  talk.stop();
  asker.join();
  EXPECT_TRUE(eventually([&] { return ::kill(below, 0) != 0 && errno == ESRCH; }));
  EXPECT_FALSE(ask(talk, "two")) << "none is started afterwards";
}

// It may hang in the kernel, and an event loop has other things to do.
TEST_F(ChildTalkTest, WhoOnlyBeginsToStopItWaitsForNothing) {
  siginfo_t ended{};
  {
    ChildTalk talk(talker("while read line; do echo $$; done"));
    const auto said = ask(talk, "one").value();
    talk.begin_to_stop();
    ASSERT_EQ(::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT), 0) << "nobody has waited for it";
    EXPECT_EQ(std::to_string(ended.si_pid) + "\n", said);
    EXPECT_EQ(ended.si_status, SIGKILL);
    EXPECT_FALSE(ask(talk, "two")) << "none is started afterwards";
  }
  EXPECT_EQ(::waitpid(ended.si_pid, nullptr, WNOHANG), -1) << "it is collected in the end";
}

TEST_F(ChildTalkTest, AtTheDeadlineItIsGivenUp) {
  ChildTalk talk(talker("read line; exec sleep 1000"));
  EXPECT_FALSE(talk.ask("one\n", Clock::now()));
  EXPECT_FALSE(ask(talk, "two"));
}

TEST_F(ChildTalkTest, OneThatSaysTooMuchIsEnded) {
  ChildProgram program = talker("while :; do printf yes; done");
  program.most_output = 1'000;
  ChildTalk talk(program);
  EXPECT_FALSE(ask(talk, "one"));
}

TEST_F(ChildTalkTest, OneThatIsNotThereIsAnError) {
  ChildProgram program;
  program.path = "/nowhere/program";
  program.arguments = {"program"};
  ChildTalk talk(program);
  EXPECT_FALSE(ask(talk, "one"));
}

}  // namespace
}  // namespace drun::launcher
