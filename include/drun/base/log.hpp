// Where drun's own log goes: one line each on stderr, "drun: text". The library itself logs next to
// nothing, and only from Warning on unless a program asks for more. Thread-safe, but for
// configure() and redirect(): call them while no other thread logs.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace drun::log {

enum class Level { Debug, Info, Warning, Error, Off };

// `name` goes before each line ("drun", "drun-store"), and before that, with `times`, the local
// time as RFC 3339 writes it. Until this is called, nothing below Warning is shown.
void configure(std::string_view name, Level level, bool times = false);
// From now on each line, with its newline and without the time, goes to `write` instead of stderr;
// an empty function undoes it. For a program that writes other things to stderr and must not mix
// them.
void redirect(std::function<void(std::string line)> write);

}  // namespace drun::log
