#include "drun/base/result.hpp"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun {
namespace {

Error refused() {
  return Error(std::make_error_code(std::errc::connection_refused),
               "connect to h:1: Connection refused");
}

TEST(ResultTest, AMissingValueIsAnExceptionWithTheErrorsWords) {
  const Result<int> result = refused();
  try {
    (void)result.value();
    FAIL();
  } catch (const ResultError& error) {
    EXPECT_STREQ(error.what(), "connect to h:1: Connection refused");
    EXPECT_EQ(error.code(), std::errc::connection_refused);
  }
  EXPECT_THROW((void)*result, ResultError);
  EXPECT_THROW((void)Result<std::string>(refused())->size(), ResultError);
  EXPECT_THROW((void)Result<int>().value(), std::runtime_error);
  EXPECT_STRNE(ResultError(Error()).what(), "") << "an error without words has its code's";
}

// A loop over what a call gives would otherwise be over what is gone.
TEST(ResultTest, TheValueOfATemporaryLivesOn) {
  const auto words = [] { return Result<std::string>(std::string(100, 'x')); };
  std::string seen;
  for (const char each : words().value())
    seen += each;
  EXPECT_EQ(seen, std::string(100, 'x'));
}

TEST(ResultTest, ValueOrGivesTheOther) {
  const Result<std::string> good = std::string("value");
  const Result<std::string> bad = refused();
  EXPECT_EQ(good.value_or("other"), "value");
  EXPECT_EQ(bad.value_or("other"), "other");
  EXPECT_EQ(*Result<std::unique_ptr<int>>(std::make_unique<int>(3)).value_or(nullptr), 3);
}

TEST(ResultTest, MapMakesSomethingOfTheValueAndKeepsTheError) {
  const Result<int> good = 20;
  const Result<int> bad = refused();
  const auto text = [](int number) { return std::to_string(number); };
  EXPECT_EQ(good.map(text).value(), "20");
  EXPECT_EQ(bad.map(text).error().code(), std::errc::connection_refused);
  int seen = 0;
  EXPECT_TRUE(good.map([&](int number) { seen = number; }).ok()) << "nothing becomes a Status";
  EXPECT_EQ(seen, 20);
  EXPECT_FALSE(bad.map([&](int) { seen = -1; }).ok());
  EXPECT_EQ(seen, 20);
  EXPECT_EQ(Result<std::string>("word").map(&std::string::size).value(), 4U);
  const auto moved =
      Result<std::unique_ptr<int>>(std::make_unique<int>(7)).map([](std::unique_ptr<int> pointer) {
        return *pointer;
      });
  EXPECT_EQ(moved.value(), 7);
}

TEST(ResultTest, AndThenGoesOnOrKeepsTheError) {
  const auto half = [](int number) -> Result<int> {
    if (number % 2 != 0) return Error(std::make_error_code(std::errc::invalid_argument), "odd");
    return number / 2;
  };
  EXPECT_EQ(Result<int>(12).and_then(half).and_then(half).value(), 3);
  EXPECT_EQ(Result<int>(6).and_then(half).and_then(half).error().what(), "odd");
  EXPECT_EQ(Result<int>(refused()).and_then(half).error().code(), std::errc::connection_refused);
}

}  // namespace
}  // namespace drun
