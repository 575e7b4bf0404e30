// Limits the rate at which tokens can be guessed. Pure.
#pragma once

#include <chrono>
#include <string_view>

#include "secure/token.hpp"

namespace drun::secure {

class TokenGate {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr int kFree = 5;                  // wrong guesses
  static constexpr std::chrono::seconds kEach{2};  // then one more in so long

  enum class Answer {
    Open,   // it is the token
    Wrong,  // it is not
    Later   // too many were wrong: it may be tried again after kEach, even if it is right
  };

  // `token` must outlive this. `guessable`: it is made of one that is not long.
  explicit TokenGate(const Token& token, bool guessable = false)
      : token_(token), guessable_(guessable || !token.is_long()) {}

  [[nodiscard]] Answer check(std::string_view guess, Time now);

 private:
  const Token& token_;
  const bool guessable_;
  // When all wrong guesses so far are forgotten, at one every kEach.
  Time forgotten_{};
};

}  // namespace drun::secure
