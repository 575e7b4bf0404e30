// What the leader tells of the nodes' facts: each difference once.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/participant.hpp"

namespace drun::launcher {

// Why nodes must not run, by ticket: with --preflight strict, those that differ in what weighs
// most, each difference with advice. If the first is of the last round, the others must be like it.
[[nodiscard]] std::map<std::string, std::string> unfit_nodes(
    const std::vector<rendezvous::NodeFacts>& nodes);

class FactsReport {
 public:
  // The lines about what was not told before: the same fact of the same nodes is no news.
  [[nodiscard]] std::vector<std::string> news(const rendezvous::CompareFactsAction& action);

 private:
  std::set<std::pair<std::string, std::size_t>> told_;  // fact, hash of the tickets
};

}  // namespace drun::launcher
