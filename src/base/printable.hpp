// Text of others made safe for a terminal and for a log. Pure.
#pragma once

#include <string>
#include <string_view>

namespace drun {

// Control characters but the tab, those of C1 too; characters that reverse the direction of text,
// end a line, or hide what they stand for.
[[nodiscard]] bool is_harmful(char32_t character);

// Harmful characters and bytes that are not UTF-8 as "\x1b", a line's end as "\n": one line, that
// changes nothing but where it stands.
[[nodiscard]] std::string printable(std::string_view text);

// As printable(), and reversible: a tab is "\t", a backslash "\\".
[[nodiscard]] std::string escaped(std::string_view text);

// 'text' for a message: printable, and cut if it is long.
[[nodiscard]] std::string in_quotes(std::string_view text);

// The name of a file for a message: printable, and 'in quotes' if it would not be seen where it
// begins and ends: it has a blank or a character that was made visible, or it is empty.
[[nodiscard]] std::string as_name(std::string_view text);

}  // namespace drun
