// The failure report: one block that says which rank failed first, how, and what it printed last.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/report/stopped_ranks.hpp"
#include "rendezvous/types.hpp"

namespace drun::launcher {

struct ReportOptions {
  std::string program = "drun";
  std::string title = "job failed";
  // Lines of the whole block. If there is more, the middle of the traceback, the beginning of the
  // stderr lines and the end of the list of other ranks are left out, and the block says so.
  std::size_t lines = 24;
  bool color = false;
};

// The lines of a block with `tail_lines` lines of stderr: a screen, or more if the user wants more.
[[nodiscard]] std::size_t report_lines(std::size_t tail_lines);

// One line without a line end: "rank 3 (local rank 1 on node1, pid 4711): exit code 7 after 12.3
// s".
[[nodiscard]] std::string describe(const rendezvous::FailureSummary& failure);

// The line that tells most: the last line of the traceback, else of stderr.
[[nodiscard]] std::string headline(std::string_view traceback,
                                   const std::vector<std::string>& tail);

// One line for each way in which other ranks failed, the lowest rank first: "ranks 1-7: exit code
// 1, same error", "rank 9: killed by SIGSEGV".
[[nodiscard]] std::vector<std::string> describe_others(const rendezvous::FailureSummary& root);

// If somebody else is the cause (see suspect_hang()): a line before the block, which only the node
// of the suspects has. So the block is the same on all nodes.
[[nodiscard]] std::string render_suspicion(std::string_view suspicion,
                                           const ReportOptions& options);

// The block, every line ended. `notes` come right below the first line ("crash loop ...").
[[nodiscard]] std::string render_failure(const rendezvous::FailureSummary& root,
                                         const std::vector<std::string>& notes,
                                         const ReportOptions& options);

// What was written about a node's ranks while they ran.
struct LeftFiles {
  std::vector<std::string> stacks;  // as text; each has one beside it as JSON
  std::vector<std::string> dumps;   // of PyTorch's flight recorder
};

// How the job ended for the ranks of one node, and of others as far as they have told it.
struct NodeEnd {
  std::vector<std::string>
      at_limit;  // what they did when a time limit was reached; empty: none was
  StoppedRanks stopped;
  LeftFiles files{};
  std::vector<StoppedRanks> others{};
};

// --report: how the job ended, as a JSON object with a line end. `failure` is null if no worker
// failed. Strings that are not UTF-8 are mended.
[[nodiscard]] std::string render_report_json(const rendezvous::Outcome& outcome,
                                             const NodeEnd& node);
// The same while the job runs.
[[nodiscard]] std::string render_running_json();
// Whether such a text says how a job ended: it does not run, and its writer knew.
[[nodiscard]] bool tells_the_end(std::string_view report);

}  // namespace drun::launcher
