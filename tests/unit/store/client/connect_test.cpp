// How long clients pause between attempts, and which names they need not look up.
#include <algorithm>
#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "store/client/backoff.hpp"
#include "store/client/resolve.hpp"

namespace drun::store {
namespace {

TEST(BackoffTest, GrowsToItsLimitAndStaysWithinHalfOfThePlan) {
  using std::chrono::milliseconds;
  Backoff backoff(milliseconds(10), milliseconds(100), 7);
  double planned = 10;
  for (int i = 0; i < 40; ++i) {
    const auto pause = backoff.next();
    EXPECT_GE(pause, std::chrono::microseconds(static_cast<int>(planned * 500) - 2));
    EXPECT_LE(pause, std::chrono::microseconds(static_cast<int>(planned * 1500) + 2));
    planned = std::min(planned * 1.5, 100.0);
  }
  backoff.reset();
  EXPECT_LE(backoff.next(), milliseconds(15));
}

TEST(ResolveTest, NumericAddressesAndLocalhostNeedNoLookUp) {
  const struct {
    const char* host;
    std::vector<const char*> addresses;
  } cases[] = {
      {"127.0.0.1", {"127.0.0.1"}}, {"::1", {"::1"}}, {"localhost", {"127.0.0.1", "::1"}},
      {"10.1.2.3", {"10.1.2.3"}},   {"node7", {}},    {"node7.example", {}},
  };
  for (const auto& c : cases) {
    const Addresses found = literal_addresses({c.host, 29500});
    ASSERT_EQ(found.size(), c.addresses.size()) << c.host;
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(to_endpoint(found[i]), (Endpoint{c.addresses[i], 29500}));
    }
  }
}

}  // namespace
}  // namespace drun::store
