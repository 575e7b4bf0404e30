#include "secure/token.hpp"

#include <cstddef>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::secure {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kText = "0123456789abcde+/=";

TEST(TokenTest, OnlyTheSameBytesAreTheToken) {
  const Token token = Token::from(kText).value();
  EXPECT_TRUE(token.is(kText));
  EXPECT_FALSE(token.is(""));
  EXPECT_FALSE(token.is(kText + kText)) << "each byte of it is right";
  EXPECT_FALSE(token.is(kText + std::string(1, '\0')));
  for (std::size_t at = 0; at < kText.size(); ++at) {
    std::string other = kText;
    other[at] ^= 1;
    EXPECT_FALSE(token.is(other)) << at;
    EXPECT_FALSE(token.is(kText.substr(0, at))) << at;
  }
}

TEST(TokenTest, ItStaysTheSameHoweverItIsPassedOn) {
  Token token = Token::from(kText).value();
  const Token copy = token;
  const Token moved = std::move(token);
  Token assigned = Token::from("another-which-goes-away").value();
  EXPECT_FALSE(assigned.is(kText));
  assigned = moved;
  EXPECT_TRUE(copy.is(kText));
  EXPECT_TRUE(moved.is(kText));
  EXPECT_TRUE(assigned.is(kText));
}

TEST(TokenTest, ItHasALengthAndNoBlanks) {
  EXPECT_TRUE(Token::from(std::string(Token::kShortest, 'a')));
  EXPECT_TRUE(Token::from(std::string(Token::kLongest, '~')));
  const auto what = [](const std::string& text) { return Token::from(text).error().what(); };
  EXPECT_EQ(what("secret"),
            "it has 6 bytes, and a token has 16 to 4096; this makes one: head -c 32 /dev/urandom | "
            "base64");
  EXPECT_THAT(what(std::string(Token::kLongest + 1, 'a')), HasSubstr("it has 4097 bytes"));
  EXPECT_THAT(what(""), HasSubstr("it has 0 bytes"));
  for (const std::string& wrong : {kText + " ", kText + "\n", kText + "\r", kText + "\x7f",
                                   kText + "\xc3\xa9", kText + std::string(1, '\0')}) {
    EXPECT_THAT(what(wrong), HasSubstr("has no spaces, control characters or bytes beyond ASCII"));
    EXPECT_THAT(what(wrong), Not(HasSubstr(kText)));
  }
}

}  // namespace
}  // namespace drun::secure
