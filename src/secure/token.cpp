#include "secure/token.hpp"

#include <string.h>

#include <algorithm>
#include <system_error>

#include "base/random_bytes.hpp"

namespace drun::secure {
namespace {

// Of 36 different characters each: more than 256 bits.
constexpr std::size_t kMadeLength = 52;

bool is_visible(char c) {
  return c > ' ' && c < 0x7f;
}

}  // namespace

void wipe(std::string& secret) {
  ::explicit_bzero(secret.data(), secret.size());
  secret.clear();
}

Result<Token> Token::from(std::string text) {
  const std::size_t size = text.size();
  std::string wrong;
  if (size < kShortest || size > kLongest) {
    wrong = "it has " + std::to_string(size) + " bytes, and a token has " +
            std::to_string(kShortest) + " to " + std::to_string(kLongest);
  } else if (!std::all_of(text.begin(), text.end(), is_visible)) {
    wrong = "a token has no spaces, control characters or bytes beyond ASCII, and it has";
  }
  if (wrong.empty()) return Token(std::move(text));
  wipe(text);
  wrong += "; this makes one: ";
  return Error(std::make_error_code(std::errc::invalid_argument), wrong.append(kMakesToken));
}

Token Token::made() {
  return Token(random_name(kMadeLength));
}

std::string Token::handed_over(std::string_view variable) const {
  std::string entry(variable);
  return entry.append("=").append(text_);
}

std::optional<std::string_view> Token::job() const {
  std::string_view rest = text_;
  if (!rest.starts_with(kJobTokenStart)) return std::nullopt;
  rest.remove_prefix(kJobTokenStart.size());
  const auto end = rest.find(':');
  if (end == rest.npos || end == 0) return std::nullopt;
  return rest.substr(0, end);
}

// A loop of our own, as glibc has no timingsafe_memcmp() and nothing else here needs OpenSSL. The
// compiler may not end it early: it has to write to the volatile each time.
bool Token::is(std::string_view guess) const {
  volatile unsigned char differs = guess.size() == text_.size() ? 0 : 1;
  for (std::size_t i = 0; i < guess.size(); ++i)
    differs = differs | static_cast<unsigned char>(guess[i] ^ text_[i % text_.size()]);
  return differs == 0;
}

}  // namespace drun::secure
