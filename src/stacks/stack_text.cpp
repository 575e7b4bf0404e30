#include "stacks/stack_text.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/counted.hpp"
#include "base/duration_text.hpp"
#include "base/folded_names.hpp"
#include "base/printable.hpp"
#include "stacks/elsewhere.hpp"

namespace drun::stacks {
namespace {

constexpr std::size_t kMostHostGroups = 12;
constexpr std::size_t kMostRankRanges = 16;
constexpr std::size_t kMostRows = 16;

std::string ranks_of(std::vector<NumberRange> ranks) {
  const bool more = ranks.size() > kMostRankRanges;
  if (more) ranks.resize(kMostRankRanges);
  return ranks_text(ranks) + (more ? ",..." : "");
}

bool meet(NumberRange node, const std::vector<NumberRange>& ranks) {
  // The first that does not end before the node begins.
  const auto found =
      std::lower_bound(ranks.begin(), ranks.end(), node.first,
                       [](NumberRange range, int first) { return range.last < first; });
  return found != ranks.end() && found->first <= node.last;
}

std::string hosts_of(const StackReport& report, const std::vector<NumberRange>* ranks) {
  std::vector<std::string> hosts;
  for (const NodeRanks& node : report.nodes)
    if (ranks == nullptr || meet(node.ranks, *ranks)) hosts.push_back(printable(node.host));
  return folded_names({hosts.begin(), hosts.end()}, kMostHostGroups);
}

std::string silence_of(const StateRow& row) {
  const auto& silence = row.silence;
  if (!silence) return row.never_printed ? "none" : "-";
  const std::string shortest = describe_duration(silence->shortest.count());
  const std::string longest = describe_duration(silence->longest.count());
  return (shortest == longest ? shortest : shortest + " - " + longest) +
         (row.never_printed ? ", or none" : "");
}

using Row = std::array<std::string, 5>;

std::string table(const StackReport& report, bool all) {
  if (report.states.empty()) return report.notes.empty() ? "  nothing was found\n" : "";
  std::vector<Row> rows{{"state", "waits in", "system call", "last output", "ranks"}};
  const std::size_t shown = all ? report.states.size() : std::min(report.states.size(), kMostRows);
  for (std::size_t i = 0; i < shown; ++i) {
    const StateRow& row = report.states[i];
    const auto cell = [](const std::string& text) {
      return text.empty() ? std::string("-") : printable(text);
    };
    rows.push_back(
        {std::string(1, is_harmful(static_cast<unsigned char>(row.state)) ? '?' : row.state),
         cell(row.wait), cell(row.call), silence_of(row), ranks_of(row.ranks)});
  }
  std::array<std::size_t, 5> widths{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    text += "  ";
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      text += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    text += row.back() + "\n";
  }
  if (shown < report.states.size())
    text += "  and " + std::to_string(report.states.size() - shown) + " more\n";
  return text;
}

std::string title(const StackReport& report, const StackGroup& group) {
  std::string text = ranks_of(group.ranks);
  if (group.kind != Kind::Worker)
    text += ", " + std::string(name_of(group.kind)) + " " + as_name(group.name);
  if (group.awaited) text += ", for which it waits";
  if (const auto ranks = count(group.ranks); group.threads != ranks)
    text += " (" + counted(group.threads, "thread") + ")";
  if (report.nodes.size() > 1) text += " on " + hosts_of(report, &group.ranks);
  return text;
}

std::string stack(const StackGroup& group, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(group.frames.size(), most); ++i)
    text += "    " + printable(group.frames[i]) + "\n";
  if (group.frames.size() > most)
    text += "    and " + std::to_string(group.frames.size() - most) + " more outside of it\n";
  if (!group.problem.empty()) text += "    (" + printable(group.problem) + ")\n";
  return text;
}

// Without --all, of children only those for which their workers wait.
std::string groups_text(const StackReport& report, Kind kind, const TextOptions& options) {
  const std::size_t most = options.all ? report.groups.size() : options.most_groups;
  const std::size_t frames = options.all ? kMostFrames + 1 : options.most_frames;
  std::string text;
  std::size_t seen = 0;
  for (const StackGroup& group : report.groups) {
    const bool hidden = group.kind == Kind::Child && !options.all && !group.awaited;
    if (group.kind != kind || hidden || seen++ >= most) continue;
    text += "\n" + title(report, group) + ":\n" + stack(group, frames);
  }
  if (seen > most) text += "\nand " + counted(seen - most, "more group") + "\n";
  return text;
}

// How many other threads and children there are, if they are not shown.
std::string others(const StackReport& report, std::string_view shows_all) {
  std::string text;
  for (const auto& [kind, what] :
       {std::pair(Kind::Thread, "other thread"), std::pair(Kind::Child, "thread")}) {
    std::size_t threads = 0;
    std::size_t groups = 0;
    for (const StackGroup& group : report.groups) {
      if (group.kind != kind || group.awaited) continue;
      threads += group.threads;
      ++groups;
    }
    if (groups == 0) continue;
    text += (text.empty() ? "\n" : ", ") + counted(threads, what) +
            (kind != Kind::Child ? ""
             : threads == 1      ? " of a process that a worker has started"
                                 : " of processes that workers have started") +
            " with " + counted(groups, "stack");
  }
  return text.empty() ? text : text.append(": ").append(shows_all).append(" shows them\n");
}

std::string notes(const StackReport& report) {
  std::string text;
  for (const StackNote& note : report.notes)
    text += "  " + (note.ranks.empty() ? "" : ranks_of(note.ranks) + ": ") + printable(note.text) +
            "\n";
  return text.empty() ? text : "\n" + text;
}

std::string heading(const StackReport& report) {
  if (report.nodes.empty()) return "no stacks\n";
  std::vector<NumberRange> ranks;
  for (const NodeRanks& node : report.nodes)
    ranks.push_back(node.ranks);
  const auto elsewhere = find_elsewhere(report);
  return "stacks of " + ranks_of(united(std::move(ranks))) + " on " + hosts_of(report, nullptr) +
         (elsewhere ? ": " + text_of(*elsewhere) : "") + "\n";
}

std::string element(std::string text) {
  std::replace(text.begin(), text.end(), ';', ':');
  return printable(text);
}

}  // namespace

std::string text_of(const StackReport& report, const TextOptions& options) {
  std::string text =
      heading(report) + table(report, options.all) + groups_text(report, Kind::Worker, options);
  if (options.all) text += groups_text(report, Kind::Thread, options);
  text += groups_text(report, Kind::Child, options);
  if (!options.all) text += others(report, options.shows_all);
  if (report.left_out > 0) text += "\n" + counted(report.left_out, "more group") + " left out\n";
  return text + notes(report);
}

std::string collapsed(const StackReport& report) {
  std::string text;
  for (const StackGroup& group : report.groups) {
    text += name_of(group.kind);
    if (!group.name.empty()) text += " " + element(group.name);
    for (auto frame = group.frames.rbegin(); frame != group.frames.rend(); ++frame)
      text += ";" + element(*frame);
    if (group.frames.empty())
      text += ";" + (group.problem.empty() ? "no stack" : element(group.problem));
    text += " " + std::to_string(group.threads) + "\n";
  }
  return text;
}

}  // namespace drun::stacks
