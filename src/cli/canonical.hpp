// Rewrites a command line into the spelling that CLI11 knows, by the rules of argparse that CLI11
// lacks: unique abbreviations, underscores for dashes, --flag= with an empty value, and a value
// that looks like a flag is a mistake. Pure; knows names and arity only, not what values mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/program.hpp"

namespace drun::cli {

struct Canonical {
  // Flags by their whole names or as letters, each value a word of its own; words as they are.
  std::vector<std::string> arguments;
  // What follows "--" on the command line: CLI11 would take some of it for flags all the same.
  std::vector<std::string> only_words;
  // The flags in the order in which they were given, each with its spelling: "--nnodes", "-r".
  struct Use {
    const Flag* flag;
    std::string shown;
  };
  std::vector<Use> used;
};

// `arguments` without argv[0]. Throws UsageError.
[[nodiscard]] Canonical canonical(const Program& program,
                                  const std::vector<std::string>& arguments);

}  // namespace drun::cli
