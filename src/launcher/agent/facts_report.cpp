#include "launcher/agent/facts_report.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include "base/printable.hpp"
#include "facts/compare.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kMostLines = 12;  // at once

// Two agents of one host, or two hosts of one name, are told apart by their ranks.
std::vector<facts::NodeSheet> named_sheets(const std::vector<rendezvous::NodeFacts>& nodes) {
  std::map<std::string_view, int> agents;
  for (const auto& node : nodes)
    ++agents[node.host];
  std::vector<facts::NodeSheet> result;
  int spares = 0;
  for (const auto& node : nodes) {
    std::string name = printable(node.host);
    if (agents[node.host] > 1)
      name += node.group_rank >= 0 ? " (group rank " + std::to_string(node.group_rank) + ")"
                                   : " (spare " + std::to_string(++spares) + ")";
    auto sheet = facts::decode(node.sheet);
    result.push_back({std::move(name),
                      sheet ? std::move(*sheet)
                            : facts::Sheet{{std::string(facts::kTrouble), sheet.error().what()}}});
  }
  return result;
}

}  // namespace

std::map<std::string, std::string> unfit_nodes(const std::vector<rendezvous::NodeFacts>& nodes) {
  std::map<std::string, std::string> result;
  const bool has_model = !nodes.empty() && nodes.front().group_rank >= 0;
  for (const auto& difference : facts::compare(
           named_sheets(nodes), has_model ? std::optional<std::size_t>(0) : std::nullopt)) {
    if (!difference.fatal) continue;
    for (const std::size_t i : difference.odd) {
      std::string& why = result[nodes[i].ticket];
      why += (why.empty() ? "--preflight strict: " : ". ") + difference.text + "; " +
             std::string(difference.advice);
    }
  }
  return result;
}

std::vector<std::string> FactsReport::news(const rendezvous::CompareFactsAction& action) {
  std::vector<std::string> lines;
  std::size_t more = 0;
  for (const auto& difference : facts::compare(named_sheets(action.nodes))) {
    std::string odd;
    for (const std::size_t i : difference.odd)
      odd += action.nodes[i].ticket + " ";
    if (!told_.emplace(difference.fact, std::hash<std::string>()(odd)).second) continue;
    if (lines.size() == kMostLines) {
      ++more;
      continue;
    }
    lines.push_back(difference.text + "; " + std::string(difference.advice));
  }
  if (more > 0)
    lines.push_back("the nodes differ in " + std::to_string(more) +
                    " more facts; drunctl doctor tells them all");
  return lines;
}

}  // namespace drun::launcher
