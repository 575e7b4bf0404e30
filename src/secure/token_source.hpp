// Where a token comes from: a variable of drun's environment, or a file.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_worker.hpp"
#include "drun/base/result.hpp"
#include "secure/token.hpp"

namespace drun::secure {

inline constexpr std::string_view kTokenVariable = "DRUN_TOKEN";
// Set by drun itself for the agents that it starts elsewhere, when it has made the token.
inline constexpr std::string_view kMadeTokenVariable = "DRUN_MADE_TOKEN";
// In place of a file's name: there is none, and drun makes no token either.
inline constexpr std::string_view kNoTokenFile = "none";

// Takes such a variable out of an environment, as `environ` has it: what this process starts does
// not get it, and /proc/PID/environ has zeros in its place. Nullopt: it is not there; an empty one
// is an error, as somebody meant to give one. Of several the first counts. For main(), while there
// is one thread. The error is a sentence that names the variable.
[[nodiscard]] std::optional<Result<Token>> take_token(char** environment,
                                                      std::string_view variable = kTokenVariable);

// The token in a file, without a newline at its end. The file must belong to this user or to root,
// and be nobody else's to read or write. A pipe will do. Comes back after `limit` even if the file
// system hangs. The error is a sentence that names the file and says what mends it.
[[nodiscard]] Result<Token> read_token(const std::string& path,
                                       std::chrono::milliseconds limit = kFilesLimit);

// What a program was given: the variable's, which comes first, or else the file's; an empty `file`
// is none, as kNoTokenFile is. Nullopt: none was given. The error is a sentence for the user.
[[nodiscard]] Result<std::optional<Token>> given_token(std::optional<Result<Token>> variable,
                                                       const std::string& file);

}  // namespace drun::secure
