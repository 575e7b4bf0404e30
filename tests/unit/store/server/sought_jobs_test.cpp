#include "store/server/sought_jobs.hpp"

#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace drun::store {
namespace {

constexpr Time kStart{std::chrono::hours(1)};

TEST(SoughtJobsTest, AJobIsSoughtUntilItHasNotSaidSoForAWhile) {
  SoughtJobs jobs;
  EXPECT_FALSE(jobs.is_sought("a", kStart));
  EXPECT_FALSE(jobs.next_deadline());
  jobs.hear("a", kStart);
  const Time end = kStart + SoughtJobs::kSought;
  EXPECT_EQ(jobs.until("a"), end);
  EXPECT_EQ(jobs.next_deadline(), end);
  EXPECT_TRUE(jobs.is_sought("a", end - Milliseconds(1)));
  EXPECT_FALSE(jobs.is_sought("a", end));
  jobs.hear("a", kStart + Milliseconds(1));
  EXPECT_TRUE(jobs.is_sought("a", end)) << "it has said so again";
  EXPECT_EQ(jobs.forget(end), 0U);
  EXPECT_EQ(jobs.forget(end + Milliseconds(1)), 1U);
  EXPECT_FALSE(jobs.until("a"));
}

TEST(SoughtJobsTest, HearsOfNoMoreJobsThanThat) {
  SoughtJobs jobs;
  for (std::size_t job = 0; job < SoughtJobs::kMost; ++job)
    jobs.hear(std::to_string(job), kStart);
  jobs.hear("one more", kStart);
  EXPECT_FALSE(jobs.until("one more"));
  jobs.hear("one more", kStart + SoughtJobs::kSought);
  EXPECT_TRUE(jobs.until("one more")) << "the others have gone";
}

}  // namespace
}  // namespace drun::store
