#include "base/shell_words.hpp"

#include <optional>

namespace drun {
namespace {

Error incomplete(const std::string& what) {
  return Error(std::make_error_code(std::errc::invalid_argument), what);
}

// Between double quotes a backslash makes only these plain.
bool is_escaped_in_quotes(char c) {
  return c == '"' || c == '\\' || c == '$' || c == '`';
}

}  // namespace

Result<std::vector<std::string>> shell_words(std::string_view text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote == 0 && std::string_view(" \t\r\n").find(c) != std::string_view::npos) {
      if (word) words.push_back(std::move(*word));
      word.reset();
      continue;
    }
    if (!word) word.emplace();
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'') {
      if (at + 1 == text.size()) return incomplete("nothing stands behind the last backslash");
      if (quote == '"' && !is_escaped_in_quotes(text[at + 1])) *word += c;
      *word += text[++at];
    } else {
      *word += c;
    }
  }
  if (quote != 0) return incomplete(std::string("a ") + quote + " is not closed");
  if (word) words.push_back(std::move(*word));
  return words;
}

}  // namespace drun
