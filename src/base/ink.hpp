// Colour for the few words of drun's own that a reader is to find first. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace drun {

enum class Ink {
  Plain,
  Cause,    // of a failure: red
  Silence,  // of a rank that may hang: yellow
  Aside,    // what concerns nobody now, as a spare that waits: dim
};

// `text`, which has neither a line's end nor escape sequences, in that ink; the terminal is as
// before at its end.
[[nodiscard]] std::string painted(std::string_view text, Ink ink);

enum class ColorChoice { Auto, Always, Never };

// Whether to paint. Auto: on a terminal that is not a dumb one, unless NO_COLOR says no
// (no-color.org). `term`, `no_color`: these variables; nullopt: not set.
[[nodiscard]] bool wants_color(ColorChoice choice, bool terminal,
                               const std::optional<std::string>& term,
                               const std::optional<std::string>& no_color);

}  // namespace drun
