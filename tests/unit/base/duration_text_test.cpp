#include "base/duration_text.hpp"

#include <utility>

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(DurationTextTest, IsAsPreciseAsItMatters) {
  const std::pair<std::int64_t, const char*> cases[] = {
      {-5, "0 ms"},
      {0, "0 ms"},
      {999, "999 ms"},
      {1000, "1.0 s"},
      {12'340, "12.3 s"},
      {119'949, "119.9 s"},
      {119'950, "2 min 0 s"},
      {120'000, "2 min 0 s"},
      {200'400, "3 min 20 s"},
      {7'199'000, "119 min 59 s"},
      {7'200'000, "2 h 0 min"},
      {7'500'000, "2 h 5 min"},
      {360'000'000, "100 h 0 min"},
  };
  for (const auto& [ms, text] : cases)
    EXPECT_EQ(describe_duration(ms), text);
}

}  // namespace
}  // namespace drun
