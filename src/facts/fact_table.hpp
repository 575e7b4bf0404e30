// Which facts matter: what nodes of a job should have alike, and what to do if they do not.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace drun::facts {

enum class Weight {
  Fatal,  // with --preflight strict an odd node does not start
  Warn,   // told, never more
};

struct Fact {
  std::string_view key;   // in a sheet
  std::string_view name;  // for people: "GPU driver"
  Weight weight = Weight::Warn;
  bool secret = false;  // a digest, shown as a letter
  std::string_view advice;
  bool may_be_unknown = false;  // a node that does not tell has none to compare
};

// What is compared, in the order in which it is told.
[[nodiscard]] std::span<const Fact> fact_table();

// ---- environment variables: facts of their own, with digests as values ----

inline constexpr std::string_view kVariablePrefix = "env ";
inline constexpr std::string_view kVariableAdvice = "set it alike on all nodes";

// Programs read it, and it should be the same on all nodes.
[[nodiscard]] bool is_compared_variable(std::string_view name);

}  // namespace drun::facts
