#include "secure/token_gate.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace drun::secure {
namespace {

using Answer = TokenGate::Answer;
using std::chrono::milliseconds;

constexpr const char* kRight = "the-right-token-of-all";
constexpr const char* kWrong = "the-wrong-token-of-all";

class TokenGateTest : public ::testing::Test {
 protected:
  void guess_wrong(int times) {
    for (int i = 0; i < times; ++i)
      EXPECT_EQ(gate_.check(kWrong, now_), Answer::Wrong) << i;
  }

  const Token token_ = Token::from(kRight).value();
  TokenGate gate_{token_};
  TokenGate::Time now_ = TokenGate::Time() + std::chrono::hours(1);
};

TEST_F(TokenGateTest, TheRightOneIsNeverCounted) {
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(gate_.check(kRight, now_), Answer::Open);
  guess_wrong(TokenGate::kFree);
}

TEST_F(TokenGateTest, AfterSomeGuessesNobodyLooksForAWhile) {
  guess_wrong(TokenGate::kFree);
  EXPECT_EQ(gate_.check(kWrong, now_), Answer::Later);
  EXPECT_EQ(gate_.check(kRight, now_), Answer::Later) << "or a fast answer would tell";
  now_ += TokenGate::kEach - milliseconds(1);
  EXPECT_EQ(gate_.check(kRight, now_), Answer::Later);
  now_ += milliseconds(1);
  EXPECT_EQ(gate_.check(kRight, now_), Answer::Open);
  guess_wrong(1);
  EXPECT_EQ(gate_.check(kRight, now_), Answer::Later);
}

TEST_F(TokenGateTest, WhoHasALongTokenIsNotKeptOutByTheGuessesOfOthers) {
  const std::string text(Token::kLong, 'x');
  const Token token = Token::from(text).value();
  TokenGate gate(token);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(gate.check(kWrong, now_), i < TokenGate::kFree ? Answer::Wrong : Answer::Later);
  EXPECT_EQ(gate.check(text, now_), Answer::Open);
  EXPECT_FALSE(Token::from(text.substr(1)).value().is_long());
}

TEST_F(TokenGateTest, WhatWasRefusedUnseenCostsNothing) {
  guess_wrong(TokenGate::kFree);
  for (int i = 0; i < 1'000; ++i)
    EXPECT_EQ(gate_.check(kWrong, now_), Answer::Later);
  now_ += TokenGate::kEach;
  EXPECT_EQ(gate_.check(kRight, now_), Answer::Open);
}

TEST_F(TokenGateTest, InTimeAllIsForgotten) {
  guess_wrong(TokenGate::kFree);
  now_ += TokenGate::kEach * TokenGate::kFree;
  guess_wrong(TokenGate::kFree);
  EXPECT_EQ(gate_.check(kWrong, now_), Answer::Later);
}

}  // namespace
}  // namespace drun::secure
