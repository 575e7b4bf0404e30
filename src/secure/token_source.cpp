#include "secure/token_source.hpp"

#include <string.h>

#include <system_error>
#include <utility>

#include "base/printable.hpp"
#include "secure/secret_file.hpp"

namespace drun::secure {

std::optional<Result<Token>> take_token(char** environment, std::string_view variable) {
  std::optional<std::string> found;
  char** kept = environment;
  for (char** entry = environment; *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    if (!text.starts_with(variable) || !text.substr(variable.size()).starts_with('=')) {
      *kept++ = *entry;
      continue;
    }
    text.remove_prefix(variable.size() + 1);
    if (!found) found = text;
    ::explicit_bzero(*entry, variable.size() + 1 + text.size());
  }
  *kept = nullptr;
  if (!found) return std::nullopt;
  auto token = Token::from(std::move(*found));
  if (!token)
    return Error(token.error().code(), std::string(variable) + ": " + token.error().what());
  return token;
}

Result<Token> read_token(const std::string& path, std::chrono::milliseconds limit) {
  // More than the longest token with its newline is an error, however long it is.
  auto text = read_secret(path, {.most = Token::kLongest + 1}, limit);
  if (text && text->ends_with('\n')) text->pop_back();
  auto token = text ? Token::from(std::move(*text)) : Result<Token>(text.error());
  if (!token) return Error(token.error().code(), as_name(path) + ": " + token.error().what());
  return token;
}

Result<std::optional<Token>> given_token(std::optional<Result<Token>> variable,
                                         const std::string& file) {
  if (!variable && (file.empty() || file == kNoTokenFile)) return std::optional<Token>();
  auto token = variable ? std::move(*variable) : read_token(file);
  if (token) return std::optional(std::move(*token));
  return Error(token.error().code(), (variable ? "" : "--token-file ") + token.error().what());
}

}  // namespace drun::secure
