// Writing to drun's own log: log::info("round {}: {} nodes", round, nodes). The format strings are
// fmt's, checked by the compiler. Quiet by default (info: state changes, each once, with its
// reason). Values of keys and environment variables never go here, only names and sizes. Each is
// one line that is safe to print, whatever text it was made of. Any thread.
#pragma once

#include <fmt/core.h>

#include "base/ink.hpp"
#include "drun/base/log.hpp"

namespace drun::log {

// Whether errors are painted, and what asks for an ink; not before this is called. As configure().
void use_color(bool color);
[[nodiscard]] bool uses_color();

// Not for callers: all functions below end here, in the one translation unit that sees spdlog.
void write_formatted(Level level, Ink ink, fmt::string_view format, fmt::format_args arguments);

template <typename... T>
void write(Level level, fmt::format_string<T...> format, T&&... arguments) {
  write_formatted(level, Ink::Plain, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void write(Level level, Ink ink, fmt::format_string<T...> format, T&&... arguments) {
  write_formatted(level, ink, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void debug(fmt::format_string<T...> format, T&&... arguments) {
  write_formatted(Level::Debug, Ink::Plain, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void info(fmt::format_string<T...> format, T&&... arguments) {
  write_formatted(Level::Info, Ink::Plain, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void warning(fmt::format_string<T...> format, T&&... arguments) {
  write_formatted(Level::Warning, Ink::Plain, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void error(fmt::format_string<T...> format, T&&... arguments) {
  write_formatted(Level::Error, Ink::Cause, format, fmt::make_format_args(arguments...));
}

}  // namespace drun::log
