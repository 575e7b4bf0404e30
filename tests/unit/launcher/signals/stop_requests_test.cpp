#include "launcher/signals/stop_requests.hpp"

#include <csignal>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;

struct Arrival {
  int signal;
  milliseconds at;
  std::optional<StopLevel> level;  // nullopt: it only repeats a request
};

void expect_levels(const std::vector<std::vector<Arrival>>& cases) {
  for (const auto& arrivals : cases) {
    StopRequests requests;
    EXPECT_FALSE(requests.any());
    for (const auto& [signal, at, level] : arrivals) {
      EXPECT_EQ(requests.count(signal, StopRequests::Time{} + at), level)
          << signal << " at " << at.count();
      EXPECT_TRUE(requests.any());
    }
  }
}

constexpr auto kLimit = StopRequests::kSameRequest;
constexpr auto kJustWithin = kLimit - milliseconds(1);

TEST(StopRequestsTest, OneRequestThatComesTwiceIsOneRequest) {
  using enum StopLevel;
  expect_levels({
      {{SIGTERM, milliseconds(0), Ask}, {SIGTERM, milliseconds(0), {}}},
      {{SIGTERM, milliseconds(7), Ask}, {SIGTERM, milliseconds(7) + kJustWithin, {}}},
      {{SIGTERM, milliseconds(7), Ask}, {SIGTERM, milliseconds(7) + kLimit, Kill}},
      {{SIGTERM, milliseconds(0), Ask},
       {SIGTERM, kJustWithin, {}},
       {SIGTERM, kLimit, Kill},  // counts from the first, so that nobody is ignored for ever
       {SIGTERM, kLimit, Abandon}},
      {{SIGHUP, milliseconds(0), Ask}, {SIGHUP, kJustWithin, {}}, {SIGHUP, kLimit, Kill}},
      {{SIGUSR1, milliseconds(0), Ask}, {SIGUSR1, kJustWithin, {}}},
      {{SIGTERM, milliseconds(0), Ask},
       {SIGHUP, milliseconds(0), Kill},
       {SIGTERM, kJustWithin, {}}},
  });
}

TEST(StopRequestsTest, AKeyThatIsPressedTwiceIsMeant) {
  using enum StopLevel;
  expect_levels({
      {{SIGINT, milliseconds(0), Ask},
       {SIGINT, milliseconds(0), Kill},
       {SIGINT, milliseconds(1), Abandon}},
      {{SIGQUIT, milliseconds(0), Ask}, {SIGQUIT, milliseconds(0), Kill}},
      {{SIGINT, milliseconds(0), Ask},
       {SIGTERM, milliseconds(0), Kill},
       {SIGTERM, kJustWithin, Abandon}},
  });
}

TEST(StopRequestsTest, NobodyIsForcedBeforeTheyHadTheTimeToAct) {
  using enum StopLevel;
  const std::vector<Arrival> abandoned = {{SIGINT, milliseconds(0), Ask},
                                          {SIGINT, milliseconds(0), Kill},
                                          {SIGINT, milliseconds(0), Abandon}};
  std::vector<std::vector<Arrival>> cases;
  for (const auto& later : std::vector<std::vector<Arrival>>{
           {{SIGINT, milliseconds(0), {}}, {SIGINT, kJustWithin, {}}, {SIGINT, kLimit, Force}},
           {{SIGTERM, milliseconds(0), Force}},  // another signal repeats nothing
           {{SIGINT, kLimit, Force}, {SIGINT, kLimit, {}}, {SIGINT, 2 * kLimit, Force}},
       }) {
    cases.push_back(abandoned);
    cases.back().insert(cases.back().end(), later.begin(), later.end());
  }
  expect_levels(cases);
}

}  // namespace
}  // namespace drun::launcher
