#include "timeline/clock_notes.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::timeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kMs = 1'000'000;

TEST(ClockNotesTest, AFewClocksHaveASentenceEach) {
  EXPECT_THAT(sentences_of({}), IsEmpty());
  EXPECT_THAT(sentences_of({{"near", 999'999, true}, {"nearer", -999'999, true}}), IsEmpty());
  EXPECT_THAT(
      sentences_of({{"a", 60 * kMs, true}, {"b", -2'000 * kMs, true}, {"c", 0, false}}),
      ElementsAre("the clock of a was 60 ms behind: its times are corrected",
                  "the clock of b was 2.0 s ahead: its times are corrected",
                  "the clock of c is taken as it is: nothing in the files compares it with the "
                  "others"));
}

TEST(ClockNotesTest, ManyShareOne) {
  std::vector<ClockNote> notes;
  for (int i = 0; i < 500; ++i)
    notes.push_back({"gpu" + std::to_string(i), (i == 77 ? -3'000 : 60 + i) * kMs, true});
  for (int i = 0; i < 20; ++i)
    notes.push_back({"spare" + std::to_string(i), 0, false});
  EXPECT_THAT(sentences_of(notes),
              ElementsAre("the clocks of gpu[0-499] were wrong, by up to 3.0 s (gpu77): their "
                          "times are corrected",
                          "the clocks of spare[0-19] are taken as they are: nothing in the files "
                          "compares them with the others"));
}

}  // namespace
}  // namespace drun::timeline
