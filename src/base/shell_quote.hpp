// Words as a shell reads them.
#pragma once

#include <string>
#include <string_view>

namespace drun {

// Between single quotes. `quote` is what a single quote inside becomes: the default is right for
// sh, bash and zsh; fish wants "\\'".
[[nodiscard]] std::string single_quoted(std::string_view text, std::string_view quote = "'\\''");

// The same for sh, without quotes if the word needs none.
[[nodiscard]] std::string shell_quoted(std::string_view word);

}  // namespace drun
