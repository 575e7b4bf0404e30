#include "launcher/telling/event_hooks.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/base/log.hpp"
#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using events::Kind;
using testing::Contains;
using testing::HasSubstr;

events::Event warning(const std::string& reason) {
  events::Event event;
  event.kind = Kind::Warning;
  event.reason = reason;
  event.run_id = "train";
  return event;
}

TEST(HookEnvironmentTest, HasEveryFieldOfTheEvent) {
  const auto event = warning("it is $HOME; `id`\n");
  const auto variables = hook_environment(event);
  EXPECT_THAT(variables, Contains("DRUN_EVENT=warning"));
  EXPECT_THAT(variables, Contains("DRUN_EVENT_RUN_ID=train"));
  EXPECT_THAT(variables, Contains("DRUN_EVENT_GROUP_RANK=-1"));
  EXPECT_THAT(variables, Contains("DRUN_EVENT_REASON=it is $HOME; `id`\\n"));
  EXPECT_THAT(variables, Contains("DRUN_EVENT_JSON=" + to_json(event)));
}

class EventHooksTest : public testing::Test {
 protected:
  EventHooksTest() {
    log::redirect([this](const std::string& line) { said_ += line; });
  }
  ~EventHooksTest() override { log::redirect({}); }

  void hook(Kind kind, const std::string& command) {
    EventHook hook;
    hook.kinds.set(static_cast<std::size_t>(kind));
    hook.command = command;
    hooks_.push_back(hook);
  }
  [[nodiscard]] bool finish(EventHooks& hooks) {
    bool over = false;
    hooks.finish([&over] { over = true; });
    return until([&over] { return over; });
  }
  [[nodiscard]] bool until(const std::function<bool()>& condition) {
    io_.restart();
    while (!condition())
      if (io_.run_one_for(test::kPatience) == 0) return false;
    return true;
  }
  void until_it_has_written() {
    while (content().empty()) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(10));
    }
  }
  [[nodiscard]] std::string file() const { return folder_.file("said"); }
  [[nodiscard]] std::string content() const {
    std::ostringstream text;
    text << std::ifstream(file()).rdbuf();
    return text.str();
  }

  std::string said_;
  asio::io_context io_;
  test::TemporaryDirectory folder_;
  std::vector<EventHook> hooks_;
};

TEST_F(EventHooksTest, RunsTheCommandOfTheEventAndOfNoOther) {
  hook(Kind::Warning, "printf '%s %s' $DRUN_EVENT \"$DRUN_EVENT_REASON\" >" + file());
  hook(Kind::Restart, "echo wrong >" + file());
  EventHooks hooks(io_, hooks_);
  hooks.tell(warning("$(id) * ; \"quoted\""), false);
  ASSERT_TRUE(finish(hooks));
  EXPECT_EQ(content(), "warning $(id) * ; \"quoted\"");
  EXPECT_EQ(said_, "");
}

TEST_F(EventHooksTest, TheEndIsToldByTheNodeThatLeads) {
  EventHook end;
  end.at_end = true;
  end.command = "echo end >>" + file();
  hooks_.push_back(end);
  EventHooks hooks(io_, hooks_);
  events::Event outcome = warning("");
  outcome.kind = Kind::Outcome;
  hooks.tell(outcome, false);
  hooks.tell(warning("no end"), true);
  ASSERT_TRUE(finish(hooks));
  EXPECT_EQ(content(), "");
  hooks.tell(outcome, true);
  ASSERT_TRUE(finish(hooks));
  EXPECT_EQ(content(), "end\n");
}

TEST_F(EventHooksTest, OneThatFailsIsALineAndNoMore) {
  hook(Kind::Warning, "exit 3");
  EventHooks hooks(io_, hooks_);
  hooks.tell(warning(""), false);
  ASSERT_TRUE(finish(hooks));
  EXPECT_THAT(said_, HasSubstr("--on-event exit 3: exit code 3"));
}

TEST_F(EventHooksTest, NoMoreThanAFewRunAtOnceAndAllAreRun) {
  // Each waits until there are as many as may run; one more would make a fifth line before.
  for (int i = 0; i < 10; ++i)
    hook(Kind::Warning, "echo begin >>" + file() + "; while [ $(wc -l <" + file() +
                            ") -lt 4 ]; do sleep 0.01; done");
  EventHooks hooks(io_, hooks_);
  hooks.tell(warning(""), false);
  ASSERT_TRUE(finish(hooks));
  std::string all;
  for (int i = 0; i < 10; ++i)
    all += "begin\n";
  EXPECT_EQ(content(), all);
}

TEST_F(EventHooksTest, ThoseOfOneHookRunInOrder) {
  hook(Kind::Warning,
       "[ $DRUN_EVENT_REASON = 0 ] && sleep 0.1; echo $DRUN_EVENT_REASON >>" + file());
  EventHooks hooks(io_, hooks_);
  for (int i = 0; i < 5; ++i)
    hooks.tell(warning(std::to_string(i)), false);
  ASSERT_TRUE(finish(hooks));
  EXPECT_EQ(content(), "0\n1\n2\n3\n4\n");
}

TEST_F(EventHooksTest, TheEndIsToldHoweverManyWait) {
  const std::string go = folder_.file("go");
  hook(Kind::Warning, "until [ -e " + go + " ]; do sleep 0.01; done");
  EventHook end;
  end.at_end = true;
  end.command = "echo end >" + file() + "; touch " + go;
  hooks_.push_back(end);
  EventHooks hooks(io_, hooks_);
  for (std::size_t i = 0; i < EventHooks::kMostRunning + EventHooks::kMostWaiting + 10; ++i)
    hooks.tell(warning(""), false);
  events::Event outcome = warning("");
  outcome.kind = Kind::Outcome;
  hooks.tell(outcome, true);
  ASSERT_TRUE(finish(hooks));
  EXPECT_EQ(content(), "end\n");
  EXPECT_THAT(said_, HasSubstr("--on-event until [ -e " + go +
                               " ]; do sleep 0.01; done: too many events: it is not run at "
                               "'warning'"))
      << "which it is";
  EXPECT_THAT(said_, HasSubstr("too many events: 13 commands were not run"));
  const auto named = said_.find("it is not run at");
  EXPECT_EQ(said_.find("it is not run at", named + 1), std::string::npos) << "once is enough";
}

TEST_F(EventHooksTest, EachHookThatIsNotRunIsNamed) {
  const std::string go = folder_.file("go");
  hook(Kind::Warning, "until [ -e " + go + " ]; do sleep 0.01; done");
  hook(Kind::Warning, "until [ -e " + go + " ]; do sleep 0.02; done");
  EventHook end;
  end.at_end = true;
  end.command = "touch " + go;
  hooks_.push_back(end);
  EventHooks hooks(io_, hooks_);
  for (std::size_t i = 0; i < EventHooks::kMostRunning + EventHooks::kMostWaiting; ++i)
    hooks.tell(warning(""), false);
  events::Event outcome = warning("");
  outcome.kind = Kind::Outcome;
  hooks.tell(outcome, true);
  ASSERT_TRUE(finish(hooks));
  EXPECT_THAT(said_, HasSubstr("sleep 0.01; done: too many events: it is not run at 'warning'"));
  EXPECT_THAT(said_, HasSubstr("sleep 0.02; done: too many events: it is not run at 'warning'"));
}

// Longer than any test.
constexpr std::chrono::hours kEver{1};

TEST_F(EventHooksTest, OneThatTakesTooLongIsEndedAndTheNextHasItsTurn) {
  hook(Kind::Warning, "[ $DRUN_EVENT_REASON = next ] && exec true; exec sleep 1000");
  EventHooks hooks(io_, hooks_, {.each = {}, .at_end = kEver, .grace = kEver});
  hooks.tell(warning("first"), false);
  hooks.tell(warning("next"), false);
  ASSERT_TRUE(finish(hooks));
  EXPECT_THAT(said_, HasSubstr("exec sleep 1000: not done within 0 s"));
  EXPECT_EQ(said_.find("killed by"), std::string::npos) << "that it is ended has been said";
}

TEST_F(EventHooksTest, AtTheEndItIsToldToEndAndNoOtherBegins) {
  hook(Kind::Warning,
       "trap 'echo told >>" + file() + "; exit' TERM; echo $DRUN_EVENT_REASON >>" + file() +
           "; while :; do sleep 0.01; done");  // a shell that has begun to wait is told late
  EventHooks hooks(io_, hooks_, {.each = kEver, .at_end = {}, .grace = kEver});
  hooks.tell(warning("first"), false);
  hooks.tell(warning("second"), false);
  until_it_has_written();
  ASSERT_TRUE(finish(hooks));
  EXPECT_EQ(content(), "first\ntold\n");
  EXPECT_THAT(said_, HasSubstr("drun ends; 1 commands are ended, 1 were not run: trap "));
}

TEST_F(EventHooksTest, AtTheEndOneThatIgnoresSigtermIsKilled) {
  hook(Kind::Warning, "trap '' TERM; echo begun >>" + file() + "; while :; do sleep 1000; done");
  EventHooks hooks(io_, hooks_, {.each = kEver, .at_end = {}, .grace = {}});
  hooks.tell(warning(""), false);
  until_it_has_written();
  ASSERT_TRUE(finish(hooks));
  EXPECT_THAT(said_, HasSubstr("drun ends; 1 commands are ended, 0 were not run"));
}

TEST_F(EventHooksTest, WhatTheyLeaveInTheBackgroundIsCollected) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  hook(Kind::Warning, "(exec sleep 0.01) &");
  EventHooks hooks(io_, hooks_);
  hooks.tell(warning(""), false);
  ASSERT_TRUE(finish(hooks));
  events::Event other = warning("");
  other.kind = Kind::Restart;
  const auto deadline = std::chrono::steady_clock::now() + test::kPatience;
  siginfo_t child{};
  while (::waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         std::chrono::steady_clock::now() < deadline)
    hooks.tell(other, false);
  EXPECT_EQ(errno, ECHILD) << "a zombie is left";
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_F(EventHooksTest, GivenUpTheyAreKilled) {
  hook(Kind::Warning, "echo $$ >" + file() + ".new; mv " + file() + ".new " + file() +
                          "; trap '' TERM; sleep 1000; sleep 1000");
  EventHooks hooks(io_, hooks_);
  hooks.tell(warning(""), false);
  bool over = false;
  hooks.finish([&over] { over = true; });
  until_it_has_written();
  const std::string pid = content();
  hooks.give_up();
  EXPECT_TRUE(over);
  // It has nobody who collects it but this process.
  int status = 0;
  EXPECT_EQ(::waitpid(std::stoi(pid), &status, 0), std::stoi(pid));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

// A thread starts them; whether it has begun is for the scheduler to say, so there are many tries.
TEST_F(EventHooksTest, GivenUpWhileTheyStartNoneIsLeft) {
  hook(Kind::Warning, "exec sleep 30");
  for (int i = 0; i < 50; ++i) {
    EventHooks hooks(io_, hooks_);
    hooks.tell(warning(""), false);
    bool over = false;
    hooks.finish([&over] { over = true; });
    hooks.give_up();
    ASSERT_TRUE(over);
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (ended < 0) {
      ASSERT_EQ(errno, ECHILD);
    } else {
      ASSERT_EQ(WTERMSIG(status), SIGKILL);
    }
  }
}

}  // namespace
}  // namespace drun::launcher
