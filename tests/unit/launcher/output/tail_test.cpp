#include "launcher/output/tail.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(TailTest, KeepsTheLastLines) {
  Tail tail(3);
  EXPECT_THAT(tail.lines(), IsEmpty());
  tail.append("one\ntwo\n");
  EXPECT_THAT(tail.lines(), ElementsAre("one", "two"));
  tail.append("three\nfour\nfi");
  EXPECT_THAT(tail.lines(), ElementsAre("three", "four", "fi"));
  tail.append("ve\n");
  EXPECT_THAT(tail.lines(), ElementsAre("three", "four", "five"));
  tail.append("\n\n");
  EXPECT_THAT(tail.lines(), ElementsAre("three", "four", "five"));
}

TEST(TailTest, IsTheSameHoweverTheBytesArrive) {
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += "line " + std::to_string(i) + std::string(static_cast<std::size_t>(i % 90), 'x') + '\n';
  for (std::size_t wanted : {1U, 2U, 20U, 50U}) {
    const auto expected = last_lines(text, wanted);
    ASSERT_EQ(expected.size(), wanted);
    for (std::size_t step : {1U, 7U, 100U, 5000U, 40000U, 200000U}) {
      Tail tail(wanted);
      for (std::size_t at = 0; at < text.size(); at += step)
        tail.append(std::string_view(text).substr(at, step));
      EXPECT_EQ(tail.lines(), expected) << wanted << " lines, " << step << " bytes at a time";
    }
  }
}

TEST(TailTest, IsBoundedWhateverComes) {
  Tail tail(20);
  for (int i = 0; i < 100; ++i)
    tail.append(std::string(100'000, 'x'));
  ASSERT_EQ(tail.lines().size(), 1U);
  EXPECT_LT(tail.lines()[0].size(), 600U);

  Tail many(1000);
  for (int i = 0; i < 10'000; ++i)
    many.append(std::string(1000, 'y') + '\n');
  std::size_t total = 0;
  for (const auto& line : many.lines())
    total += line.size();
  EXPECT_LE(total, 8192U);
  EXPECT_GE(many.lines().size(), 10U);
}

TEST(TailTest, NoLinesWantedNoLinesKept) {
  Tail tail(0);
  tail.append("one\n");
  EXPECT_THAT(tail.lines(), IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
