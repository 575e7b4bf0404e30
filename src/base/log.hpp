// Writing to drun's own log: log::info("round {}: {} nodes", round, nodes). The format strings are
// fmt's, checked by the compiler. Quiet by default (info: state changes, each once, with its
// reason). Values of keys and environment variables never go here, only names and sizes. Each is
// one line that is safe to print, whatever text it was made of. Any thread.
#pragma once

#include <fmt/core.h>

#include "drun/base/log.hpp"

namespace drun::log {

// Not for callers: all functions below end here, in the one translation unit that sees spdlog.
void write_formatted(Level level, fmt::string_view format, fmt::format_args arguments);

template <typename... T>
void write(Level level, fmt::format_string<T...> format, T&&... arguments) {
  write_formatted(level, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void debug(fmt::format_string<T...> format, T&&... arguments) {
  write_formatted(Level::Debug, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void info(fmt::format_string<T...> format, T&&... arguments) {
  write_formatted(Level::Info, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void warning(fmt::format_string<T...> format, T&&... arguments) {
  write_formatted(Level::Warning, format, fmt::make_format_args(arguments...));
}
template <typename... T>
void error(fmt::format_string<T...> format, T&&... arguments) {
  write_formatted(Level::Error, format, fmt::make_format_args(arguments...));
}

}  // namespace drun::log
