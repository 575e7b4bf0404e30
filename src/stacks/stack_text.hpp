// A report of stacks for people and for flame graphs. Nothing in it can act on a terminal. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "stacks/stack_report.hpp"

namespace drun::stacks {

struct TextOptions {
  std::size_t most_frames = 40;  // of a stack
  std::size_t most_groups = 12;  // of each kind
  bool all = false;              // other threads and children too, and of everything all
  std::string_view shows_all = "drunctl stacks --all";  // for who reads it; drunctl's own: "--all"
};

// Lines: who was looked at, a table of the states, then the stacks, the one of the fewest ranks
// first.
[[nodiscard]] std::string text_of(const StackReport& report, const TextOptions& options = {});

// "worker;main;step;recv 7": a line for each stack, outermost first, and how many threads have it,
// as the tools for flame graphs read it.
[[nodiscard]] std::string collapsed(const StackReport& report);

}  // namespace drun::stacks
