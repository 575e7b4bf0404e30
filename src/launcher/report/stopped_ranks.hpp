// What a stop found on this node: the ranks that still ran, and those that only SIGKILL ended.
// Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace drun::launcher {

// What a rank does, in words.
struct RankState {
  std::string text;
  bool silent = false;  // for much longer than the others: perhaps it hangs
};

struct StoppedRanks {
  std::vector<int> running;  // when the stop began, those that failed by themselves left out
  // Of these, in their order: since the last output of each, or since its start if there was none;
  // nullopt: nobody knows. May be empty.
  std::vector<std::optional<std::chrono::milliseconds>> silences;
  std::vector<int> killed;     // of these
  std::vector<int> succeeded;  // had ended with 0 when the stop began
  // Processes that workers had started, and needed SIGKILL. Of a rank that was killed its own
  // children are no news.
  std::uint32_t others_killed = 0;
  bool at_once = false;  // SIGKILL came before the grace was over
  std::string silence;   // of a rank that stands out, see describe_silence(); may be empty
  // For how long all that ran had been silent at least; nullopt: nobody knows, or less than a
  // second.
  std::optional<std::chrono::milliseconds> all_silent;
  bool few = false;         // those that ran are no more than half of the node's workers
  std::vector<int> silent;  // of those that ran: who stands out, or all if they are few
  std::string silent_for;   // all of these: "11.0 s"
  // Of a job of several nodes, else 0 and empty: its ranks, and those here that ran and had written
  // nothing for a second or more. They may be few in the job though they are many here.
  int job_ranks = 0;
  std::vector<int> quiet;
  std::string quiet_for;  // all of these
  std::string host;       // this node's name, if the job has several
  bool expected = false;  // that they ran is no news: one rank only, or not all had begun
};

// "ranks 0-2,4 were still running (rank 2 silent the longest, for 11.0 s); rank 2 needed SIGKILL";
// "(silent for at least 6.0 s)", if nobody stands out. Empty if there is nothing to say.
[[nodiscard]] std::string describe_stopped(const StoppedRanks& stopped);

// "on node1, rank 2 ...", if the job has several nodes.
[[nodiscard]] std::string on_host(const StoppedRanks& stopped, const std::string& text);

// "ranks 0-1 had ended with 0": who waits for one of them waits in vain. Empty if there is nothing
// to say.
[[nodiscard]] std::string describe_succeeded(const StoppedRanks& stopped);

// Only who needed SIGKILL: "rank 2 needed SIGKILL"; empty: nobody did.
[[nodiscard]] std::string describe_killed(const StoppedRanks& stopped);

}  // namespace drun::launcher
