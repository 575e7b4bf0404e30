#include "launcher/agent/stop_requests.hpp"

#include <csignal>
#include <vector>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;

struct Arrival {
  int signal;
  milliseconds at;
  int number;  // of requests then
};

TEST(StopRequestsTest, OneRequestThatComesTwiceIsOneRequest) {
  const auto limit = StopRequests::kSameRequest;
  const auto just_within = limit - milliseconds(1);
  const std::vector<std::vector<Arrival>> cases = {
      {{SIGTERM, milliseconds(0), 1}, {SIGTERM, milliseconds(0), 1}},
      {{SIGTERM, milliseconds(7), 1}, {SIGTERM, milliseconds(7) + just_within, 1}},
      {{SIGTERM, milliseconds(7), 1}, {SIGTERM, milliseconds(7) + limit, 2}},
      {{SIGTERM, milliseconds(0), 1},
       {SIGTERM, just_within, 1},
       {SIGTERM, limit, 2},  // counts from the first, so that nobody is ignored for ever
       {SIGTERM, limit, 3}},
      {{SIGHUP, milliseconds(0), 1}, {SIGHUP, just_within, 1}, {SIGHUP, limit, 2}},
      {{SIGUSR1, milliseconds(0), 1}, {SIGUSR1, just_within, 1}},
      {{SIGINT, milliseconds(0), 1}, {SIGINT, milliseconds(0), 2}, {SIGINT, milliseconds(1), 3}},
      {{SIGQUIT, milliseconds(0), 1}, {SIGQUIT, milliseconds(0), 2}},
      {{SIGTERM, milliseconds(0), 1}, {SIGHUP, milliseconds(0), 2}, {SIGTERM, just_within, 2}},
      {{SIGINT, milliseconds(0), 1}, {SIGTERM, milliseconds(0), 2}, {SIGTERM, just_within, 3}},
  };
  for (const auto& arrivals : cases) {
    StopRequests requests;
    EXPECT_FALSE(requests.any());
    EXPECT_EQ(requests.last(), 0);
    int before = 0;
    for (const auto& [signal, at, number] : arrivals) {
      EXPECT_EQ(requests.count(signal, StopRequests::Time{} + at), number != before);
      EXPECT_EQ(requests.number(), number) << signal << " at " << at.count();
      EXPECT_TRUE(requests.any());
      if (number != before) {
        EXPECT_EQ(requests.last(), signal);
      }
      before = number;
    }
  }
}

}  // namespace
}  // namespace drun::launcher
