#include "drun/store/values.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::store {
namespace {

using testing::ElementsAre;

struct Point {
  float x = 0;
  float y = 0;
};
enum class Colour : std::uint8_t { Red = 1, Green = 2 };

TEST(ValuesTest, NumbersAreDecimalText) {
  EXPECT_EQ(encode(-17), "-17");
  EXPECT_EQ(encode(std::uint8_t{200}), "200");
  EXPECT_EQ(encode(true), "1");
  EXPECT_EQ(decode<int>("-17").value(), -17);
  EXPECT_EQ(decode<bool>("0").value(), false);
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(decode<std::uint64_t>(encode(kMost)).value(), kMost);
  for (const char* text : {"", "1 ", "+1", "x", "300", "-1"})
    EXPECT_EQ(decode<std::uint8_t>(text).error().code(), Errc::Malformed) << text;
  EXPECT_FALSE(decode<bool>("2"));
}

TEST(ValuesTest, PlainTypesAreTheirBytes) {
  EXPECT_EQ(encode(0.1).size(), sizeof(double));
  EXPECT_EQ(decode<double>(encode(0.1)).value(), 0.1);
  EXPECT_EQ(encode('7'), "7");
  EXPECT_EQ(decode<Colour>(encode(Colour::Green)).value(), Colour::Green);
  const auto point = decode<Point>(encode(Point{1, -2}));
  ASSERT_TRUE(point);
  EXPECT_EQ(point->x, 1);
  EXPECT_EQ(point->y, -2);
  const std::array<std::int32_t, 3> row{1, 2, 3};
  EXPECT_EQ(encode(row).size(), sizeof row);
  EXPECT_EQ((decode<std::array<std::int32_t, 3>>(encode(row)).value()), row);
  const auto misfit = decode<Point>("short");
  ASSERT_FALSE(misfit);
  EXPECT_EQ(misfit.error().code(), Errc::Malformed);
  EXPECT_EQ(misfit.error().what(), "the value, of 5 bytes, is not one of 8");
}

TEST(ValuesTest, SequencesAreTheirValuesInARow) {
  const std::vector<double> weights{0.5, -1, 2};
  const std::string bytes = encode(weights);
  EXPECT_EQ(bytes.size(), 3 * sizeof(double));
  EXPECT_EQ(encode(std::span(weights)), bytes);
  EXPECT_EQ(encode(std::as_bytes(std::span(weights))), bytes);
  EXPECT_THAT(decode<std::vector<double>>(bytes).value(), ElementsAre(0.5, -1, 2));
  EXPECT_EQ(decode<std::vector<std::byte>>(bytes).value().size(), bytes.size());
  EXPECT_TRUE(decode<std::vector<double>>("").value().empty());
  EXPECT_FALSE(decode<std::vector<double>>("123456789"));
}

TEST(ValuesTest, TextStaysText) {
  EXPECT_EQ(decode<std::string>("as it is").value(), "as it is");
}

template <typename T>
constexpr bool kNeither = !Storable<T> && !Readable<T>;

// What means nothing to another process, and what has an overload of its own.
static_assert(kNeither<int*> && kNeither<const char*> && kNeither<void*>);
static_assert(!Storable<std::string> && !Storable<std::string_view> && !Storable<char[4]>);
static_assert(kNeither<std::vector<std::string>> && kNeither<std::vector<int*>>);
static_assert(kNeither<int[3]> && !Plain<std::initializer_list<int>>);
static_assert(Storable<std::span<const int>> && !Readable<std::span<const int>>);
static_assert(Storable<std::span<const std::byte>> && Readable<std::vector<std::byte>>);

}  // namespace
}  // namespace drun::store
