#include "launcher/process/lease.hpp"

#include <gtest/gtest.h>

namespace drun::process {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock::time_point;

TEST(LeaseTest, HasNoEndBeforeItIsRenewed) {
  const RunLease lease;
  EXPECT_FALSE(lease.over(1000h));
  EXPECT_FALSE(lease.broken(1000h));
  EXPECT_FALSE(lease.next_deadline());
}

TEST(LeaseTest, IsOverAtItsEndAndBrokenLater) {
  RunLease lease(700ms);
  EXPECT_FALSE(lease.renew(10s, 2s));
  EXPECT_EQ(lease.next_deadline(), BootTime(10'700ms));
  EXPECT_FALSE(lease.over(10s - 1ns));
  EXPECT_TRUE(lease.over(10s));
  EXPECT_FALSE(lease.broken(10'700ms - 1ns));
  EXPECT_TRUE(lease.broken(10'700ms));
}

TEST(LeaseTest, IsNeverShortened) {
  RunLease lease;
  (void)lease.renew(10s, 2s);
  (void)lease.renew(9s, 3s);
  EXPECT_FALSE(lease.over(10s - 1ns));
  (void)lease.renew(11s, 4s);
  EXPECT_FALSE(lease.over(11s - 1ns));
}

TEST(LeaseTest, SuspendedWorkersBreakNothing) {
  RunLease lease;
  (void)lease.renew(10s, 2s);
  lease.suspend();
  EXPECT_FALSE(lease.broken(20s));
  EXPECT_FALSE(lease.resume(20s)) << "they wait";
  EXPECT_FALSE(lease.broken(20s));
  EXPECT_FALSE(lease.renew(19s, 20s)) << "over all the same";
  EXPECT_TRUE(lease.renew(30s, 21s)) << "they go on";
  EXPECT_FALSE(lease.renew(31s, 22s)) << "they run already";
  EXPECT_TRUE(lease.broken(31s));
}

TEST(LeaseTest, WorkersResumedInTimeGoOnAtOnce) {
  RunLease lease;
  (void)lease.renew(10s, 2s);
  lease.suspend();
  EXPECT_TRUE(lease.resume(9s));
  EXPECT_TRUE(lease.broken(10s));
}

TEST(LeaseClockTest, AddsWhatTheSteadyClockDoesNotCount) {
  LeaseClock clock(Steady(100s), 500s);
  EXPECT_EQ(clock.at(Steady(101s), Steady(102s), 502s), BootTime(501s));
  EXPECT_EQ(clock.at(Steady(103s), Steady(104s), 504'090ms), BootTime(503s)) << "a busy machine";
}

// The age of what a store says is counted from there.
TEST(LeaseClockTest, KnowsWhatWasBeforeIt) {
  LeaseClock clock(Steady(100s), 500s);
  EXPECT_EQ(clock.at(Steady(99s), Steady(101s), 501s), BootTime(499s));
}

TEST(LeaseClockTest, KnowsNothingFromBeforeASuspension) {
  LeaseClock clock(Steady(100s), 500s);
  EXPECT_FALSE(clock.at(Steady(101s), Steady(102s), 562s)) << "a minute was slept meanwhile";
  EXPECT_FALSE(clock.at(Steady(101s), Steady(103s), 563s)) << "sent before it, too";
  EXPECT_EQ(clock.at(Steady(103s), Steady(104s), 564s), BootTime(563s));
}

}  // namespace
}  // namespace drun::process
