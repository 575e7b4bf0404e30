#include "base/file_worker.hpp"

#include <poll.h>
#include <sys/resource.h>

#include <future>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>

#include "support/patience.hpp"

namespace drun {
namespace {

using std::chrono::milliseconds;
using test::kPatience;

constexpr milliseconds kNever = kPatience * 2;

// Waits until something is to be delivered, and delivers it.
void serve(FileWorker& worker) {
  pollfd ready{worker.fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&ready, 1, static_cast<int>(milliseconds(kPatience).count())), 1);
  worker.deliver(std::chrono::steady_clock::now());
}

TEST(FileWorkerTest, WorkIsDoneInAnotherThreadAndInOrder) {
  FileWorker worker;
  const auto own = std::this_thread::get_id();
  std::string heard;
  worker.ask<bool>(
      kNever, [own] { return std::this_thread::get_id() != own; },
      [&](const Result<bool>& other) { heard += other && *other ? "other " : "same "; });
  worker.ask<int>(
      kNever, [] { return 7; },
      [&](const Result<int>& number) { heard += std::to_string(*number); });
  EXPECT_EQ(heard, "");
  serve(worker);
  EXPECT_EQ(heard, "other ");
  serve(worker);
  EXPECT_EQ(heard, "other 7");
  EXPECT_FALSE(worker.next_deadline());
}

// Whoever looks too early finds nothing of the work before.
TEST(FileWorkerTest, WorkIsDeliveredOnceItIsDone) {
  FileWorker worker;
  std::promise<void> go_on;
  std::string heard;
  const auto may = go_on.get_future().share();
  for (const bool waits : {false, true})
    worker.ask<std::string>(
        kNever,
        [waits, may]() -> std::string {
          if (!waits) throw std::system_error(EACCES, std::generic_category(), "create folder /x");
          may.wait();
          return "second";
        },
        [&](const Result<std::string>& result) { heard += result ? *result : "first "; });
  serve(worker);
  worker.deliver(std::chrono::steady_clock::now());
  EXPECT_EQ(heard, "first ");
  go_on.set_value();
  serve(worker);
  EXPECT_EQ(heard, "first second");
}

TEST(FileWorkerTest, WhatWorkThrowsIsItsResult) {
  FileWorker worker;
  Result<int> heard = 1;
  worker.ask<int>(
      kNever,
      []() -> int { throw std::system_error(EACCES, std::generic_category(), "create folder /x"); },
      [&](Result<int> result) { heard = std::move(result); });
  serve(worker);
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.error().code(), std::errc::permission_denied);
  EXPECT_EQ(heard.error().what(), "create folder /x: Permission denied");
}

// What hangs is said, and what was asked for after it is done all the same.
TEST(FileWorkerTest, WorkThatHangsIsLeftBehind) {
  FileWorker worker;
  std::promise<void> answer;
  std::promise<void> begun;
  std::string heard;
  worker.ask<int>(
      milliseconds(2'000),
      [answered = answer.get_future().share(), &begun] {
        about_to("create folder /nfs");
        begun.set_value();
        answered.wait();
        return 1;
      },
      [&](const Result<int>& result) {
        heard = result ? "answer" : result.error().what();
        EXPECT_EQ(result.error().code(), std::errc::timed_out);
      });
  begun.get_future().wait();
  const auto half = worker.next_deadline();
  ASSERT_TRUE(half);
  worker.deliver(*half - milliseconds(1));
  EXPECT_EQ(worker.next_deadline(), half);
  // However late it is, a machine that stood still has used up one half only.
  const auto late = *half + std::chrono::hours(1);
  worker.deliver(late);
  EXPECT_EQ(heard, "");
  EXPECT_EQ(worker.next_deadline(), late + milliseconds(1'000));
  int after = 0;
  worker.ask<int>(
      kNever, [] { return 2; }, [&](const Result<int>& result) { after = *result; });
  worker.deliver(late + milliseconds(999));
  EXPECT_EQ(heard, "");
  worker.deliver(late + milliseconds(1'000));
  EXPECT_EQ(heard, "create folder /nfs: no answer for 2 s");
  serve(worker);
  EXPECT_EQ(after, 2);
  answer.set_value();
}

TEST(FileWorkerTest, SlowWorkIsWaitedForAsLongAsItGoesOn) {
  FileWorker worker;
  constexpr int kSteps = 3;
  std::promise<void> go_on[kSteps];
  std::promise<void> begun[kSteps];
  std::string heard;
  worker.ask<int>(
      milliseconds(2'000),
      [&] {
        for (int step = 0; step < kSteps; ++step) {
          about_to("create " + std::to_string(step));
          begun[step].set_value();
          go_on[step].get_future().wait();
        }
        return 1;
      },
      [&](const Result<int>& result) { heard = result ? "done" : result.error().what(); });
  auto now = *worker.next_deadline();
  for (int step = 0; step < kSteps; ++step) {
    begun[step].get_future().wait();
    if (step > 0) {
      worker.deliver(now);  // a step has ended since the last look
      now += milliseconds(1'000);
    }
    worker.deliver(now);  // half of the limit is over
    now += milliseconds(900);
    worker.deliver(now);
    EXPECT_EQ(heard, "") << step;
    now += milliseconds(100);
    go_on[step].set_value();
  }
  serve(worker);
  EXPECT_EQ(heard, "done");
}

// The steps of the work before are none of its own.
TEST(FileWorkerTest, WorkThatHangsAfterSlowWorkHasNoMoreTimeThanTheFirst) {
  FileWorker worker;
  std::promise<void> begun[2];
  std::promise<void> end[2];
  for (int work = 0; work < 2; ++work) {
    worker.ask<int>(
        milliseconds(2'000),
        [work, end = end[work].get_future().share(), &begun] {
          for (int step = 0; work == 0 && step < 2; ++step)
            about_to("create folder /nfs");
          begun[work].set_value();
          end.wait();
          return 1;
        },
        [](const Result<int>&) {});
  }
  begun[0].get_future().wait();
  worker.deliver(*worker.next_deadline());  // sees the steps
  end[0].set_value();
  serve(worker);
  begun[1].get_future().wait();
  const auto half = worker.next_deadline();
  worker.deliver(*half);
  worker.deliver(*half + milliseconds(1'000));
  EXPECT_FALSE(worker.next_deadline());
  end[1].set_value();
}

TEST(FileWorkerTest, NobodyWaitsForWorkAtTheEnd) {
  std::promise<void> answer;
  bool done = false;
  {
    FileWorker worker;
    worker.ask<int>(
        kNever,
        [answered = answer.get_future().share()] {
          answered.wait();
          return 1;
        },
        [&](const Result<int>&) { done = true; });
    worker.ask<int>(
        kNever, [] { return 1; }, [&](const Result<int>&) { done = true; });
  }
  answer.set_value();
  EXPECT_FALSE(done);
}

// Nothing can become readable then, so it is the time that tells, and at once.
TEST(FileWorkerTest, WithoutADescriptorWorkFailsAtOnce) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::optional<FileWorker> worker(std::in_place);
  std::string heard;
  worker->ask<int>(
      kNever, [] { return 1; },
      [&](const Result<int>& result) { heard = result ? "done" : result.error().what(); });
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(worker->fd(), -1);
  const auto deadline = worker->next_deadline();
  ASSERT_TRUE(deadline);
  EXPECT_LE(*deadline, std::chrono::steady_clock::now());
  worker->deliver(*deadline);
  EXPECT_EQ(heard, "listen to a thread for files: Too many open files");
}

// The next to hang does not get the name of what somebody else did.
TEST(FileWorkerTest, OutsideItNothingIsNoted) {
  about_to("open /nfs");
  std::promise<void> answer;
  const auto hung = ask_files<int>(milliseconds(1), [released = answer.get_future().share()] {
    released.wait();
    return 1;
  });
  answer.set_value();
  ASSERT_FALSE(hung);
  EXPECT_EQ(hung.error().what().find("/nfs"), std::string::npos) << hung.error().what();
}

}  // namespace
}  // namespace drun
