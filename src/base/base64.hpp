// Bytes as text of letters, digits, '+', '/' and '='. By hand: no library that drun needs anyway
// has it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace drun {

[[nodiscard]] std::string base64(std::string_view bytes);

// The inverse; nullopt: it is none.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace drun
