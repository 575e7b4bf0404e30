// Values that flags of every program take.
#include "cli/values.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/usage_error.hpp"

namespace drun::cli {
namespace {

using namespace std::chrono_literals;

constexpr Flag kFlag{"flag", 0, "VALUE", "", Origin::Own, "Flags", "red green blue", "a flag"};

Setting given(std::string value) {
  return {&kFlag, Source::Flag, "--flag", std::move(value)};
}

template <typename Parse>
std::string error_of(Parse parse) {
  try {
    (void)parse();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(CliValuesTest, APlainTimeCountsWhatTheFlagSays) {
  EXPECT_EQ(parse_duration(given("90"), false), 90s);
  EXPECT_EQ(parse_duration(given("90"), false, 1ms), 90ms);
  EXPECT_EQ(parse_duration(given(" 1.5 "), false), 1500ms);
  EXPECT_EQ(parse_duration(given("1h30m"), false, 1ms), 90min);
  EXPECT_EQ(parse_duration(given("0"), true), 0ms);
  EXPECT_EQ(error_of([] { return parse_duration(given("0"), false); }),
            "--flag '0': expected a time greater than zero");
  EXPECT_EQ(error_of([] { return parse_duration(given("0.0001"), false); }),
            "--flag '0.0001': expected a time greater than zero");
  EXPECT_EQ(error_of([] { return parse_duration(given("soon"), false, 1ms); }),
            "--flag 'soon': expected a time such as 90 (milliseconds), 5s or 1m30s");
}

TEST(CliValuesTest, AWholeNumberMayHaveBlanksAndASign) {
  for (const char* text : {"12", " 12 ", "+12", "12\r\n"})
    EXPECT_EQ(lenient_integer(text), 12) << text;
  EXPECT_EQ(lenient_integer("-4"), -4);
  for (const char* text : {"", " ", "+", "1.0", "1e3", "0x1", "1 2", "99999999999999999999"})
    EXPECT_EQ(lenient_integer(text), std::nullopt) << text;
}

TEST(CliValuesTest, ASizeIsInPowersOf1024) {
  EXPECT_EQ(parse_size(given("500")), 500U);
  EXPECT_EQ(parse_size(given("8K")), 8U << 10U);
  EXPECT_EQ(parse_size(given("2g")), std::uint64_t{2} << 30U);
  for (const char* text : {"", "0", "-1", "K", "1.5G", "7X"})
    EXPECT_EQ(error_of([text] { return parse_size(given(text)); }),
              "--flag '" + std::string(text) + "': expected a size such as 500K, 100M or 2G");
  EXPECT_EQ(error_of([] { return parse_size(given("5000000000G")); }),
            "--flag '5000000000G': that is too large");
}

TEST(CliValuesTest, AChoiceIsOneOfTheWordsOfTheFlagsRow) {
  EXPECT_EQ(parse_choice(given("red")), 0U);
  EXPECT_EQ(parse_choice(given("blue")), 2U);
  for (const char* text : {"", "gree", "Red", "red green"})
    EXPECT_EQ(error_of([text] { return parse_choice(given(text)); }),
              "--flag '" + std::string(text) + "': expected red, green or blue");
  EXPECT_EQ(parse_choice(given("one"), {"one"}), 0U);
  EXPECT_EQ(error_of([] { return parse_choice(given("two"), {"one"}); }),
            "--flag 'two': expected one");
}

}  // namespace
}  // namespace drun::cli
