// The synchronous client of the control protocol where there is no store.
#include "store/client/control_query.hpp"

#include <chrono>
#include <ctime>

#include <gtest/gtest.h>

namespace drun::store {
namespace {

using namespace std::chrono_literals;

std::chrono::nanoseconds used_time() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

// A machine that runs drunctl has other things to do.
TEST(ControlQueryTest, BetweenTwoAttemptsItSleeps) {
  const auto start = std::chrono::steady_clock::now();
  const auto before = used_time();
  EXPECT_FALSE(ControlQuery::open({"127.0.0.1", 1}, start + 500ms, true, nullptr));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 500ms);
  EXPECT_LT(used_time() - before, 50ms);
}

}  // namespace
}  // namespace drun::store
