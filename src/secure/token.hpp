// A secret that the user gives to the agents of a job. A client that has it may ask an agent for
// more than a look at the job.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "drun/base/result.hpp"

namespace drun::secure {

// A command that makes one, for messages.
inline constexpr std::string_view kMakesToken = "head -c 32 /dev/urandom | base64";

// What is said of one that is not long.
inline constexpr std::string_view kShortToken =
    "the token has fewer than 32 characters: who can record a connection may guess it; this makes "
    "one: head -c 32 /dev/urandom | base64";

// A token that follows from a store's, for one of the jobs there, begins so.
inline constexpr std::string_view kJobTokenStart = "drun-job:";

// Overwrites it where it stands, and leaves it empty.
void wipe(std::string& secret);

// Its text comes out for another drun of the same job alone, so nothing can print it by mistake;
// else only a key is made of it. Its bytes are overwritten when it goes.
class Token {
 public:
  static constexpr std::size_t kShortest = 16;  // bytes
  static constexpr std::size_t kLong = 32;
  static constexpr std::size_t kLongest = 4'096;

  // Visible ASCII characters, which a variable, a file and a header of HTTP keep as they are. The
  // error ("it has 3 bytes, ...") says nothing of what they are. `text` is wiped then.
  [[nodiscard]] static Result<Token> from(std::string text);

  // A new one, which nobody guesses.
  [[nodiscard]] static Token made();

  Token(const Token&) = default;
  Token(Token&&) noexcept = default;
  Token& operator=(Token other) noexcept {
    text_.swap(other.text_);
    return *this;
  }
  ~Token() { wipe(text_); }

  // Of a store's token for one of its jobs, "drun-job:NAME:...": the name. Nullopt: it is another.
  [[nodiscard]] std::optional<std::string_view> job() const;
  // Nobody guesses it, however fast.
  [[nodiscard]] bool is_long() const { return text_.size() >= kLong; }
  // "NAME=text", for the environment of another drun of the job, which takes it out there.
  [[nodiscard]] std::string handed_over(std::string_view variable) const;
  // Takes a time that depends on the length of `guess` alone.
  [[nodiscard]] bool is(std::string_view guess) const;

 private:
  friend class TlsContext;  // makes a key of it

  explicit Token(std::string text) : text_(std::move(text)) {}

  std::string text_;
};

}  // namespace drun::secure
