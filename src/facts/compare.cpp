#include "facts/compare.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/folded_names.hpp"
#include "facts/fact_table.hpp"

namespace drun::facts {
namespace {

constexpr std::size_t kMostHosts = 8;   // of one group in a line
constexpr std::size_t kMostGroups = 4;  // of values in a line
constexpr std::string_view kNone = "none";

using Nodes = std::vector<NodeSheet>;

struct Group {
  std::string_view value;
  std::vector<std::size_t> members;
};

// By value: that of `model`, then the largest, of one size the one with the earliest node.
std::vector<Group> groups_of(const Nodes& nodes, const std::vector<std::size_t>& able,
                             const Fact& fact, std::optional<std::size_t> model) {
  std::map<std::string_view, std::vector<std::size_t>> by_value;
  for (const std::size_t i : able) {
    const auto found = nodes[i].sheet.find(fact.key);
    const bool told = found != nodes[i].sheet.end();
    if (told || !fact.may_be_unknown)
      by_value[told ? std::string_view(found->second) : kNone].push_back(i);
  }
  std::vector<Group> groups;
  for (auto& [value, members] : by_value)
    groups.push_back({value, std::move(members)});
  const auto is_model = [model](const Group& group) {
    return model && std::binary_search(group.members.begin(), group.members.end(), *model);
  };
  std::sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    if (is_model(a) != is_model(b)) return is_model(a);
    if (a.members.size() != b.members.size()) return a.members.size() > b.members.size();
    return a.members.front() < b.members.front();
  });
  return groups;
}

std::string names_of(const Nodes& nodes, const std::vector<std::size_t>& members) {
  std::vector<std::string_view> names;
  for (const std::size_t i : members)
    names.push_back(nodes[i].node);
  return folded_names(names, kMostHosts);
}

std::string shown(const Group& group, std::size_t at, bool secret) {
  if (!secret || group.value == kNone) return std::string(group.value);
  return {static_cast<char>('A' + at)};
}

std::string describe(const Nodes& nodes, const std::vector<Group>& groups, std::string_view name,
                     bool secret) {
  std::string text;
  if (groups.size() > kMostGroups)
    text = std::to_string(groups.size()) + " different values, as in ";
  const std::size_t told = std::min(groups.size(), kMostGroups);
  for (std::size_t at = 1; at < told; ++at)
    text += names_of(nodes, groups[at].members) + ": " + (at == 1 ? std::string(name) + " " : "") +
            shown(groups[at], at, secret) + ", ";
  const auto& most = groups.front().members;
  if (told < groups.size())
    return text + names_of(nodes, most) + ": " + shown(groups[0], 0, secret);
  const std::string rest =
      most.size() == 1 ? nodes[most.front()].node : "the other " + std::to_string(most.size());
  return text + rest + ": " + shown(groups.front(), 0, secret);
}

void compare_fact(const Nodes& nodes, const std::vector<std::size_t>& able, const Fact& fact,
                  std::optional<std::size_t> model, std::vector<Difference>& found) {
  const auto groups = groups_of(nodes, able, fact, model);
  if (groups.size() < 2) return;
  Difference& difference = found.emplace_back();
  difference.fact = fact.name;
  difference.fatal = fact.weight == Weight::Fatal;
  difference.advice = fact.advice;
  difference.text = describe(nodes, groups, fact.name, fact.secret);
  for (std::size_t at = 1; at < groups.size(); ++at)
    difference.odd.insert(difference.odd.end(), groups[at].members.begin(),
                          groups[at].members.end());
  std::sort(difference.odd.begin(), difference.odd.end());
}

}  // namespace

std::vector<Difference> compare(const Nodes& nodes, std::optional<std::size_t> model) {
  std::vector<Difference> found;
  std::vector<std::size_t> able;
  std::set<std::string_view> variables;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Sheet& sheet = nodes[i].sheet;
    if (const auto trouble = sheet.find(kTrouble); trouble != sheet.end()) {
      found.push_back({std::string(kTrouble),
                       false,
                       nodes[i].node + " could not look at itself: " + trouble->second,
                       {i},
                       "look at its file systems"});
      continue;
    }
    able.push_back(i);
    for (auto each = sheet.lower_bound(kVariablePrefix);
         each != sheet.end() && each->first.starts_with(kVariablePrefix); ++each)
      variables.insert(each->first);
  }
  if (able.size() < 2) return found;
  for (const Fact& fact : fact_table())
    compare_fact(nodes, able, fact, model, found);
  for (const std::string_view key : variables)
    compare_fact(
        nodes, able,
        {key, key.substr(kVariablePrefix.size()), Weight::Warn, true, kVariableAdvice, false},
        model, found);
  return found;
}

}  // namespace drun::facts
