// The keys of the workers' store by which the nodes of a round exchange texts, one exchange after
// the other. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace drun::launcher {

struct ExchangeKeys {
  std::string kind;  // of the exchanges of one purpose
  int group_rank = 0;
  int nodes = 1;

  // Of exchange number 0, 1, 2 ...: what this node says, and what all say, by group rank.
  [[nodiscard]] std::string own(int number) const { return of(number, group_rank); }
  [[nodiscard]] std::vector<std::string> all(int number) const;
  // Nobody reads it any more: whoever is in this exchange has done with the one before.
  [[nodiscard]] std::optional<std::string> done_with(int number) const;

 private:
  [[nodiscard]] std::string of(int number, int rank) const;
};

}  // namespace drun::launcher
