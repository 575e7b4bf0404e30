#include "launcher/look/thread_facts.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/patience.hpp"

namespace drun::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ThreadFactsTest, ReadsTheState) {
  EXPECT_EQ(state_in("12 (a) b) D 1 2"), 'D');
  EXPECT_EQ(state_in(""), '?');
  EXPECT_EQ(state_in("12 (a)"), '?');
}

TEST(ThreadFactsTest, ReadsTheStackInTheKernel) {
  EXPECT_THAT(kernel_frames_in("[<0>] fuse_wait+0x12/0x100\n[<0>] vfs_read+0x1/0x2\n"),
              ElementsAre("fuse_wait (kernel)", "vfs_read (kernel)"));
  EXPECT_THAT(kernel_frames_in(""), IsEmpty());
}

TEST(ThreadFactsTest, LooksAtThisProcess) {
  EXPECT_TRUE(is_own_process(::getpid()));
  EXPECT_EQ(threads_of(::getpid()).front(), ::getpid());
  const ThreadFacts facts = facts_of(::getpid(), ::getpid());
  EXPECT_EQ(facts.state, 'R');
  EXPECT_THAT(facts.name, testing::StartsWith("unit_launcher"));
}

TEST(ThreadFactsTest, OfAProcessWhoseMainThreadHasEndedAnotherIsTheFirst) {
  EXPECT_EQ(first_living(::getpid(), threads_of(::getpid())), ::getpid());
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([] { ::pause(); }).detach();
    ::syscall(SYS_exit, 0);  // this thread alone
  }
  EXPECT_TRUE(test::eventually([&] { return facts_of(child, child).state == 'Z'; }));
  const auto threads = threads_of(child);
  EXPECT_EQ(threads.size(), 2U);
  EXPECT_EQ(first_living(child, threads), threads.back());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(ThreadFactsTest, AProcessThatIsGoneHasNone) {
  constexpr pid_t kNobody = 1 << 30;
  EXPECT_FALSE(is_own_process(kNobody));
  EXPECT_THAT(threads_of(kNobody), IsEmpty());
  EXPECT_EQ(facts_of(kNobody, kNobody).state, '?');
}

}  // namespace
}  // namespace drun::launcher
