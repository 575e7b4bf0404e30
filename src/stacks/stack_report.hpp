// What the ranks of a job are doing: the stacks of their threads, equal ones once. A report of a
// node is folded from single looks, and one of a job from those of its nodes. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/number_ranges.hpp"
#include "drun/base/result.hpp"

namespace drun::stacks {

// What a report may hold, also one from elsewhere: the rest is cut or counted.
inline constexpr std::size_t kMostFrames = 100;
inline constexpr std::size_t kLongestText = 400;  // bytes of a name
inline constexpr std::size_t kMostGroups = 500;
inline constexpr std::size_t kMostNodes = 20'000;
inline constexpr std::size_t kMostRanges = 20'000;  // of one group

enum class Kind {
  Worker,  // the first thread of a worker
  Thread,  // another thread of a worker
  Child    // a thread of a process that a worker has started
};
// "worker", "thread", "child"
[[nodiscard]] std::string_view name_of(Kind kind);

// One look at one thread.
struct Sample {
  int rank = 0;
  Kind kind = Kind::Worker;
  std::string name;                 // of the thread, of the child's program; empty for a worker
  char state = '?';                 // as in /proc: R, S, D, T, t, Z
  std::string wait;                 // where in the kernel it waits; empty: nowhere, or not known
  std::string call;                 // the system call that it is in; empty likewise
  std::vector<std::string> frames;  // innermost first
  std::string problem;              // why there are no frames, or not all
  // Of a worker: since its last output; nullopt: not known.
  std::optional<std::chrono::milliseconds> silence;
  bool never_printed = false;  // of a worker: it has had no output, as far as is known
  bool awaited = false;        // of a child: its worker waits for it, and it hangs itself
};

struct SilenceRange {
  std::chrono::milliseconds shortest{};
  std::chrono::milliseconds longest{};
  bool operator==(const SilenceRange&) const = default;
};

// Workers whose first thread is in the same state.
struct StateRow {
  char state = '?';
  std::string wait;
  std::string call;
  std::vector<NumberRange> ranks;
  std::optional<SilenceRange> silence;
  bool never_printed = false;  // one of them
  bool operator==(const StateRow&) const = default;
};

// Threads with the same stack.
struct StackGroup {
  Kind kind = Kind::Worker;
  std::string name;
  std::vector<std::string> frames;
  std::string problem;
  std::vector<NumberRange> ranks;
  std::size_t threads = 0;
  bool awaited = false;  // as Sample's
  bool operator==(const StackGroup&) const = default;
};

struct NodeRanks {
  std::string host;
  NumberRange ranks;
  bool operator==(const NodeRanks&) const = default;
};

// A few ranks, and what there is to say of them: why nothing is known, what to install.
struct StackNote {
  std::string text;
  std::vector<NumberRange> ranks;
  bool operator==(const StackNote&) const = default;
};

struct StackReport {
  std::vector<NodeRanks> nodes;    // by rank
  std::vector<StateRow> states;    // the fewest ranks first
  std::vector<StackGroup> groups;  // by kind, the fewest ranks first
  std::vector<StackNote> notes;
  std::size_t left_out = 0;  // groups beyond kMostGroups
  bool operator==(const StackReport&) const = default;
};

// Of one node.
[[nodiscard]] StackReport fold(const NodeRanks& node, const std::vector<Sample>& samples);
// Of the nodes of a job; a note of several nodes is there once.
[[nodiscard]] StackReport fold(const std::vector<StackReport>& reports);

// A line of JSON without its end; bytes that are no UTF-8 are replaced. `ascii`: nothing in it can
// act on a terminal. `job`: whose id comes first; empty: it has none.
[[nodiscard]] std::string to_json(const StackReport& report, bool ascii = false,
                                  std::string_view job = {});
// The same, with as many of its groups as fit into so many bytes; the others are counted in it.
[[nodiscard]] std::string to_json_within(StackReport report, std::size_t bytes);
// Ignores members that it does not know. An error: not a report, or one beyond the limits.
[[nodiscard]] Result<StackReport> parse_report(std::string_view json);

// Sorted ranges that neither overlap nor touch.
[[nodiscard]] std::vector<NumberRange> united(std::vector<NumberRange> ranges);
[[nodiscard]] std::size_t count(const std::vector<NumberRange>& ranges);

}  // namespace drun::stacks
