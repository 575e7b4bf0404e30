#include "doctor/judge_nodes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/folded_names.hpp"
#include "facts/compare.hpp"

namespace drun::doctor {
namespace {

constexpr std::size_t kMostNamed = 8;
constexpr std::size_t kMostBroken = 16;  // ways that are told of
constexpr std::int64_t kClockLimitUs = 100'000;
// Of an exchange over TCP: below this, noise is more than the network.
constexpr std::int64_t kLatencyNoiseUs = 500;

using Names = std::vector<std::string>;
using Reports = std::vector<NodeReport>;

Names names_of(const Reports& reports) {
  std::map<std::string_view, int> agents;
  for (const NodeReport& report : reports)
    ++agents[report.host];
  Names names;
  for (std::size_t i = 0; i < reports.size(); ++i)
    names.push_back(agents[reports[i].host] == 1
                        ? reports[i].host
                        : reports[i].host + " (group rank " + std::to_string(i) + ")");
  return names;
}

std::string boot_of(const NodeReport& report) {
  const auto boot = report.sheet.find("boot");
  return boot == report.sheet.end() ? "" : boot->second;
}

bool on_one_machine(const NodeReport& a, const NodeReport& b) {
  const std::string boot = boot_of(a);
  return !boot.empty() && boot == boot_of(b);
}

void judge_machines(const Reports& reports, const Names& names, std::vector<Check>& checks) {
  std::map<std::string, std::vector<std::string_view>> machines;
  for (std::size_t i = 0; i < reports.size(); ++i)
    if (const std::string boot = boot_of(reports[i]); !boot.empty())
      machines[boot].push_back(names[i]);
  if (machines.size() == 1 && machines.begin()->second.size() == reports.size()) {
    checks.push_back(
        passed("machines", "these " + std::to_string(reports.size()) + " nodes are one machine"));
    return;
  }
  bool shared = false;
  for (const auto& [boot, nodes] : machines) {
    if (nodes.size() < 2) continue;
    shared = true;
    checks.push_back(warned("machines", folded_names(nodes, kMostNamed) + " are one machine",
                            "start one drun for each machine, if that is not meant"));
  }
  if (!shared)
    checks.push_back(passed("machines", std::to_string(reports.size()) + " different ones"));
}

void judge_sheets(const Reports& reports, const Names& names, std::vector<Check>& checks) {
  std::vector<facts::NodeSheet> sheets;
  for (std::size_t i = 0; i < reports.size(); ++i)
    sheets.push_back({names[i], reports[i].sheet});
  const auto differences = facts::compare(sheets);
  for (const auto& difference : differences)
    checks.push_back({difference.fatal ? Verdict::Fail : Verdict::Warn, "alike", difference.text,
                      std::string(difference.advice)});
  if (differences.empty()) checks.push_back(passed("alike", "the nodes do not differ"));
}

// Equal ones once, with the nodes.
void judge_own_checks(const Reports& reports, const Names& names, std::vector<Check>& checks) {
  std::map<std::tuple<std::string, Verdict, std::string, std::string>,
           std::vector<std::string_view>>
      found;
  std::size_t passes = 0;
  for (std::size_t i = 0; i < reports.size(); ++i)
    for (const Check& check : reports[i].checks) {
      if (check.verdict == Verdict::Pass) {
        ++passes;
      } else {
        found[{check.name, check.verdict, check.reason, check.mend}].push_back(names[i]);
      }
    }
  for (const auto& [what, nodes] : found) {
    const auto& [name, verdict, reason, mend] = what;
    const std::string who =
        nodes.size() == reports.size() ? "all nodes" : folded_names(nodes, kMostNamed);
    checks.push_back({verdict, name, who + ": " + reason, mend});
  }
  checks.push_back(passed("each node", std::to_string(passes) + " checks pass"));
}

std::string way(const Names& names, std::size_t from, const LinkReport& link) {
  const auto to = static_cast<std::size_t>(link.to);
  return names[from] + " to " + (link.to >= 0 && to < names.size() ? names[to] : "nobody");
}

void judge_ports(const Reports& reports, const Names& names, std::vector<Check>& checks) {
  std::size_t ways = 0;
  std::size_t broken = 0;
  for (std::size_t i = 0; i < reports.size(); ++i)
    for (const LinkReport& link : reports[i].links) {
      ++ways;
      if (link.error.empty()) continue;
      if (++broken <= kMostBroken)
        checks.push_back(failed("ports", way(names, i, link) + ": " + link.error,
                                "let the nodes reach one another at all ports above 1023"));
    }
  if (broken > kMostBroken)
    checks.push_back(failed("ports", std::to_string(broken - kMostBroken) + " more ways are broken",
                            "look at the firewall"));
  if (broken == 0)
    checks.push_back(passed("ports", "all of " + std::to_string(ways) + " ways are open"));
}

std::int64_t median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Ways between processes of one machine say nothing of a network.
void judge_speed(const Reports& reports, const Names& names, std::vector<Check>& checks) {
  std::vector<std::pair<std::size_t, const LinkReport*>> measured;
  std::vector<std::int64_t> latencies;
  std::vector<std::int64_t> speeds;
  for (std::size_t i = 0; i < reports.size(); ++i)
    for (const LinkReport& link : reports[i].links) {
      if (link.mbit <= 0 || link.to < 0 || link.to >= static_cast<int>(reports.size())) continue;
      if (on_one_machine(reports[i], reports[static_cast<std::size_t>(link.to)])) continue;
      measured.emplace_back(i, &link);
      latencies.push_back(link.latency_us);
      speeds.push_back(link.mbit);
    }
  if (measured.empty()) return;
  const std::int64_t latency = median(latencies);
  const std::int64_t speed = median(speeds);
  bool slow = false;
  for (const auto& [from, link] : measured) {
    if (link->mbit < speed / 2) {
      slow = true;
      checks.push_back(warned("network",
                              way(names, from, *link) + ": " + std::to_string(link->mbit) +
                                  " Mbit/s, the median is " + std::to_string(speed),
                              "look at this cable, its switch port and what else uses it"));
    }
    if (link->latency_us > 4 * latency + kLatencyNoiseUs) {
      slow = true;
      checks.push_back(warned("network",
                              way(names, from, *link) + ": an answer takes " +
                                  std::to_string(link->latency_us) + " us, the median is " +
                                  std::to_string(latency),
                              "look at the way between them: another rack or site?"));
    }
  }
  if (!slow)
    checks.push_back(passed("network", "between neighbours " + std::to_string(speed) + " Mbit/s, " +
                                           std::to_string(latency) + " us for an answer (median)"));
}

void judge_mtu(const Reports& reports, const Names& names, std::vector<Check>& checks) {
  for (std::size_t i = 0; i < reports.size(); ++i)
    for (const LinkReport& link : reports[i].links) {
      if (link.path_mtu <= 0 || link.path_mtu >= link.interface_mtu) continue;
      if (link.to >= 0 && link.to < static_cast<int>(reports.size()) &&
          on_one_machine(reports[i], reports[static_cast<std::size_t>(link.to)]))
        continue;
      checks.push_back(warned("MTU",
                              way(names, i, link) + ": the way takes packets of " +
                                  std::to_string(link.path_mtu) + " bytes, the interface sends " +
                                  std::to_string(link.interface_mtu),
                              "set one MTU on all interfaces and switches between them"));
    }
}

void judge_clocks(const Reports& reports, const Names& names, std::vector<Check>& checks) {
  std::vector<std::int64_t> clocks;
  for (const NodeReport& report : reports)
    if (report.clock_us) clocks.push_back(*report.clock_us);
  if (clocks.size() < reports.size())
    checks.push_back(warned("clocks",
                            std::to_string(reports.size() - clocks.size()) + " of " +
                                std::to_string(reports.size()) +
                                " nodes got no answer from the first one's clock",
                            "see the lines about ports"));
  if (clocks.size() < 2) return;
  const std::int64_t middle = median(clocks);
  bool odd = false;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    if (!reports[i].clock_us) continue;
    const std::int64_t off = *reports[i].clock_us - middle;
    if (std::abs(off) <= kClockLimitUs) continue;
    odd = true;
    checks.push_back(warned("clocks",
                            names[i] + " is " + std::to_string(std::abs(off) / 1000) + " ms " +
                                (off > 0 ? "ahead" : "behind"),
                            "let chrony or another NTP client keep it"));
  }
  if (!odd)
    checks.push_back(passed("clocks", "within " + std::to_string(kClockLimitUs / 1000) + " ms"));
}

}  // namespace

std::vector<Check> judge_nodes(const std::vector<NodeReport>& reports) {
  const Names names = names_of(reports);
  std::vector<Check> checks;
  judge_machines(reports, names, checks);
  judge_sheets(reports, names, checks);
  judge_own_checks(reports, names, checks);
  judge_ports(reports, names, checks);
  judge_speed(reports, names, checks);
  judge_mtu(reports, names, checks);
  judge_clocks(reports, names, checks);
  return checks;
}

}  // namespace drun::doctor
