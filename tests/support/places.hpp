// Where a test finds what was built and what is in the source tree. Only places.cpp knows the
// folders, so that one compiled test serves every clone.
#pragma once

#include <string>
#include <string_view>

namespace drun::places {

std::string program(std::string_view name);       // what a user runs, e.g. "drun"
std::string test_program(std::string_view name);  // what only tests run, e.g. "survivor"
std::string source(std::string_view path = {});   // below the root of the tree, e.g. "docs/cli.md"

}  // namespace drun::places
