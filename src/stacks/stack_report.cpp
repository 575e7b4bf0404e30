#include "stacks/stack_report.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace drun::stacks {
namespace {

// Equal keys are one group.
using GroupKey = std::tuple<Kind, std::string, std::vector<std::string>, std::string, bool>;
using RowKey = std::tuple<char, std::string, std::string>;

std::string cut(const std::string& text) {
  return text.size() <= kLongestText ? text : text.substr(0, kLongestText) + "...";
}

// The innermost frames tell what is waited for, the outermost where the program is.
std::vector<std::string> cut(const std::vector<std::string>& frames) {
  std::vector<std::string> result;
  const bool all = frames.size() <= kMostFrames;
  constexpr std::size_t kOutermost = kMostFrames / 4;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (all || i < kMostFrames - kOutermost || i >= frames.size() - kOutermost)
      result.push_back(cut(frames[i]));
    else if (i == kMostFrames - kOutermost)
      result.emplace_back("...");
  }
  return result;
}

// Of a thread without a stack: what the kernel says of it tells more than nothing.
std::string state_text(const Sample& sample) {
  std::string text = std::string("state ") + sample.state;
  if (!sample.wait.empty()) text += ", waits in " + sample.wait;
  if (!sample.call.empty()) text += ", in the system call " + sample.call;
  return text + (sample.problem.empty() ? "" : ": " + sample.problem);
}

std::optional<SilenceRange> joined(std::optional<SilenceRange> left,
                                   const std::optional<SilenceRange>& right) {
  if (!left) return right;
  if (!right) return left;
  return SilenceRange{std::min(left->shortest, right->shortest),
                      std::max(left->longest, right->longest)};
}

void append(std::vector<NumberRange>& ranges, const std::vector<NumberRange>& more) {
  ranges.insert(ranges.end(), more.begin(), more.end());
}

// Takes parts of a report, and gives it in its order.
class Folder {
 public:
  void add(const NodeRanks& node) { report_.nodes.push_back({cut(node.host), node.ranks}); }
  void add(const StateRow& row) {
    StateRow& mine = rows_[{row.state, row.wait, row.call}];
    append(mine.ranks, row.ranks);
    mine.silence = joined(mine.silence, row.silence);
    mine.never_printed |= row.never_printed;
  }
  void add(const StackGroup& group) {
    StackGroup& mine =
        groups_[{group.kind, group.name, group.frames, group.problem, group.awaited}];
    append(mine.ranks, group.ranks);
    mine.threads += group.threads;
  }
  void add(const StackNote& note) { append(notes_[note.text], note.ranks); }
  void leave_out(std::size_t groups) { report_.left_out += groups; }

  StackReport finish() {
    for (auto& [key, row] : rows_) {
      std::tie(row.state, row.wait, row.call) = key;
      row.ranks = united(std::move(row.ranks));
      report_.states.push_back(std::move(row));
    }
    for (auto& [key, group] : groups_) {
      std::tie(group.kind, group.name, group.frames, group.problem, group.awaited) = key;
      group.ranks = united(std::move(group.ranks));
      report_.groups.push_back(std::move(group));
    }
    for (auto& [text, ranks] : notes_)
      report_.notes.push_back({text, united(std::move(ranks))});
    sort();
    if (report_.groups.size() > kMostGroups) {
      report_.left_out += report_.groups.size() - kMostGroups;
      report_.groups.resize(kMostGroups);
    }
    return std::move(report_);
  }

 private:
  void sort() {
    std::stable_sort(report_.nodes.begin(), report_.nodes.end(),
                     [](const NodeRanks& left, const NodeRanks& right) {
                       return left.ranks.first < right.ranks.first;
                     });
    const auto first_of = [](const std::vector<NumberRange>& ranks) {
      return ranks.empty() ? 0 : ranks.front().first;
    };
    std::stable_sort(report_.states.begin(), report_.states.end(),
                     [&](const StateRow& left, const StateRow& right) {
                       return std::pair(count(left.ranks), first_of(left.ranks)) <
                              std::pair(count(right.ranks), first_of(right.ranks));
                     });
    std::stable_sort(
        report_.groups.begin(), report_.groups.end(),
        [&](const StackGroup& left, const StackGroup& right) {
          return std::tuple(left.kind, count(left.ranks), left.threads, first_of(left.ranks)) <
                 std::tuple(right.kind, count(right.ranks), right.threads, first_of(right.ranks));
        });
  }

  StackReport report_;
  std::map<RowKey, StateRow> rows_;
  std::map<GroupKey, StackGroup> groups_;
  std::map<std::string, std::vector<NumberRange>> notes_;
};

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::Worker:
      return "worker";
    case Kind::Thread:
      return "thread";
    case Kind::Child:
      break;
  }
  return "child";
}

std::vector<NumberRange> united(std::vector<NumberRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](NumberRange left, NumberRange right) {
    return std::pair(left.first, left.last) < std::pair(right.first, right.last);
  });
  std::vector<NumberRange> result;
  for (const NumberRange range : ranges) {
    if (!result.empty() && range.first <= result.back().last + 1)
      result.back().last = std::max(result.back().last, range.last);
    else
      result.push_back(range);
  }
  return result;
}

std::size_t count(const std::vector<NumberRange>& ranges) {
  std::size_t result = 0;
  for (const NumberRange range : ranges)
    result += static_cast<std::size_t>(range.last - range.first + 1);
  return result;
}

StackReport fold(const NodeRanks& node, const std::vector<Sample>& samples) {
  Folder folder;
  folder.add(node);
  for (const Sample& sample : samples) {
    const std::vector<NumberRange> rank{{sample.rank, sample.rank}};
    if (sample.kind == Kind::Worker) {
      StateRow row;
      row.state = sample.state;
      row.wait = cut(sample.wait);
      row.call = cut(sample.call);
      row.ranks = rank;
      row.never_printed = sample.never_printed;
      if (sample.silence) row.silence = SilenceRange{*sample.silence, *sample.silence};
      folder.add(row);
    }
    StackGroup group;
    group.kind = sample.kind;
    group.name = cut(sample.name);
    group.frames = cut(sample.frames);
    group.problem = cut(sample.frames.empty() ? state_text(sample) : sample.problem);
    group.ranks = rank;
    group.threads = 1;
    group.awaited = sample.awaited;
    folder.add(group);
  }
  return folder.finish();
}

StackReport fold(const std::vector<StackReport>& reports) {
  Folder folder;
  for (const StackReport& report : reports) {
    for (const NodeRanks& node : report.nodes)
      folder.add(node);
    for (const StateRow& row : report.states)
      folder.add(row);
    for (const StackGroup& group : report.groups)
      folder.add(group);
    for (const StackNote& note : report.notes)
      folder.add(note);
    folder.leave_out(report.left_out);
  }
  return folder.finish();
}

}  // namespace drun::stacks
