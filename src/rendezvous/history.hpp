// history: what became of the last rounds of a job. The leader writes it with the round's document,
// for people and programs that ask later; nothing is decided by it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"
#include "rendezvous/documents.hpp"

namespace drun::rendezvous {

// More are forgotten, the oldest first.
inline constexpr std::size_t kMaxHistory = 16;
// Of each reason, in bytes.
inline constexpr std::size_t kMaxPastReason = 300;

// Times are Unix milliseconds by the leader's clock; 0: not yet, or not known.
struct PastRound {
  int number = 0;
  int nodes = 0;
  int world_size = 0;
  std::int64_t waited_ms = 0;    // since when its nodes were waited for
  std::int64_t began_ms = 0;     // its workers were told to start
  std::int64_t stopping_ms = 0;  // they were told to stop
  std::int64_t ended_ms = 0;     // the job has gone on, or has ended
  Cause cause = Cause::None;     // why it was stopped; None: it was not, or its workers succeeded
  std::string reason;            // one line for people
  int restart = 0;               // the restart that it led to; 0: none was spent

  bool operator==(const PastRound&) const = default;
};

struct History {
  int max_restarts = 0;           // of the job
  std::string nnodes;             // of the job: "2:8"; empty: not known
  std::vector<PastRound> rounds;  // the youngest last
  bool operator==(const History&) const = default;

  void begin(PastRound round);
  // Of the youngest, once: a later cause is a consequence. Nothing if there is none that runs.
  void stop(Cause cause, const std::string& reason, std::int64_t now_ms);
  void end(int restart, std::int64_t now_ms);
};

[[nodiscard]] std::string encode(const History& history);
[[nodiscard]] Result<History> decode_history(std::string_view text);

}  // namespace drun::rendezvous
