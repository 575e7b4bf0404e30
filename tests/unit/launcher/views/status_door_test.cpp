#include "launcher/views/status_door.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "status/agent_socket.hpp"
#include "support/patience.hpp"

namespace drun::launcher {
namespace {

using drun::test::kPatience;
using status::Question;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Clock = std::chrono::steady_clock;

class StatusDoorTest : public testing::Test {
 protected:
  StatusDoorTest() { door_.open(); }
  ~StatusDoorTest() override {
    door_.close();
    for (auto& caller : callers_)
      caller.join();
    more_comes_.reset();
    io_.restart();
    io_.run();
  }
  // Somebody asks, in a thread of their own; `before` is done there first.
  void ask(
      Question question, const std::function<void()>& before = [] {}) {
    const auto names = status::find_sockets(job_);
    ASSERT_THAT(names, SizeIs(1));
    callers_.emplace_back([this, name = names.front(), question, before] {
      before();
      auto answer = status::ask(name, Clock::now() + kPatience, question);
      asio::post(io_, [this, answer = std::move(answer)] {
        got_.push_back(answer ? *answer : "error: " + answer.error().what());
      });
    });
  }
  bool until(const std::function<bool()>& condition) {
    const auto deadline = Clock::now() + kPatience;
    io_.restart();
    while (!condition())
      if (io_.run_one_until(deadline) == 0) return false;
    return true;
  }
  bool until_got(std::size_t count) {
    return until([&] { return got_.size() >= count; });
  }

  // No other test's.
  const std::string job_ = "door " + std::to_string(::getpid()) +
                           testing::UnitTest::GetInstance()->current_test_info()->name();
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> more_comes_{io_.get_executor()};
  std::vector<std::string> asked_;
  std::vector<StatusDoor::Say> says_;  // of whom waits
  std::vector<std::string> got_;       // by whoever has asked; empty: nothing
  std::list<std::thread> callers_;
  StatusDoor door_{io_,
                   job_,
                   {[] {
                      status::AgentStatus own;
                      own.host = "node7";
                      return own;
                    },
                    [this](bool whole_job, bool unwind, StatusDoor::Say say) {
                      asked_.push_back(std::string(whole_job ? "job" : "node") +
                                       (unwind ? " unwind" : " quick"));
                      says_.push_back(std::move(say));
                    },
                    [this](StatusDoor::Say say) {
                      asked_.emplace_back("documents");
                      says_.push_back(std::move(say));
                    },
                    [this](StatusDoor::Say say) {
                      asked_.emplace_back("usage");
                      says_.push_back(std::move(say));
                    }}};
};

TEST_F(StatusDoorTest, TheStatusIsALineAtOnce) {
  ask(Question::Status);
  ASSERT_TRUE(until_got(1));
  ASSERT_TRUE(got_.front().ends_with("\n"));
  got_.front().pop_back();
  EXPECT_EQ(status::parse_status(got_.front()).value().host, "node7");
}

TEST_F(StatusDoorTest, EachQuestionGoesToWhoKnows) {
  for (const auto question : {Question::Stacks, Question::QuickStacks, Question::JobStacks,
                              Question::QuickJobStacks, Question::Job, Question::Usage}) {
    const std::size_t count = got_.size();
    ask(question);
    ASSERT_TRUE(until([&] { return says_.size() == count + 1; }));
    says_.back()("answer " + std::to_string(count));
    ASSERT_TRUE(until_got(count + 1));
    EXPECT_EQ(got_.back(), "answer " + std::to_string(count));
  }
  EXPECT_THAT(asked_, ElementsAre("node unwind", "node quick", "job unwind", "job quick",
                                  "documents", "usage"));
}

TEST_F(StatusDoorTest, ALongAnswerArrivesWhole) {
  ask(Question::Usage);
  ASSERT_TRUE(until([&] { return says_.size() == 1; }));
  const std::string longer(std::size_t{1} << 19, 'x');  // than any buffer
  says_.front()(longer);
  ASSERT_TRUE(until_got(1));
  EXPECT_TRUE(got_.front() == longer);
}

TEST_F(StatusDoorTest, AnotherUserIsToldNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can ask as another user";
  for (const auto question : {Question::Status, Question::Job})
    ask(question, [] {
      // Of this thread alone: what the C library offers changes all of them.
      constexpr uid_t kNobody = 65'534;
      ASSERT_EQ(::syscall(SYS_setresuid, kNobody, kNobody, kNobody), 0);
    });
  ASSERT_TRUE(until_got(2));
  for (const auto& got : got_)
    EXPECT_TRUE(got.empty() || got.starts_with("error")) << got;
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(StatusDoorTest, NotEverybodyMayWaitAtOnce) {
  constexpr std::size_t kMost = 32;
  for (std::size_t i = 0; i < kMost + 1; ++i)
    ask(Question::Job);
  ASSERT_TRUE(until_got(1));
  EXPECT_EQ(got_.front(), "") << "one too many";
  ASSERT_TRUE(until([&] { return says_.size() == kMost; }));
  ask(Question::Status);
  ASSERT_TRUE(until_got(2)) << "that needs no place";
  EXPECT_NE(got_.back(), "");
  std::exchange(says_, {}).front()("you");
  ASSERT_TRUE(until_got(3)) << "the others are forgotten";
  ask(Question::Job);
  ASSERT_TRUE(until([&] { return says_.size() == 1; })) << "there is room again";
}

TEST_F(StatusDoorTest, WhenItClosesNobodyWaitsAnyLonger) {
  ask(Question::Job);
  ASSERT_TRUE(until([&] { return says_.size() == 1; }));
  door_.close();
  ASSERT_TRUE(until_got(1));
  EXPECT_EQ(got_.front(), "");
  EXPECT_THAT(status::find_sockets(job_), IsEmpty());
  says_.front()("too late");
  says_.clear();
}

}  // namespace
}  // namespace drun::launcher
