// What NCCL's RAS service tells of a job's collectives: who has begun how many. Each process that
// uses NCCL 2.24 or newer runs it, and one question to one of them is answered for the whole job.
// Source: NCCL, src/ras/client_support.cc (the protocol of clients, and its JSON).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"

namespace drun::hang {

// A member of a communicator that has answered.
struct RasRank {
  int rank = 0;  // in its communicator
  pid_t pid = 0;
  std::string host;                            // an address
  std::map<std::string, std::uint64_t> begun;  // "AllReduce" -> how many
  bool leaving = false;  // it is done with the communicator, or has aborted it

  bool operator==(const RasRank&) const = default;
};

struct RasCommunicator {
  int size = 0;
  std::vector<RasRank> ranks;
  std::vector<RasRank> missing;  // they have not answered; nothing is known of their collectives

  bool operator==(const RasCommunicator&) const = default;
};

using RasStatus = std::vector<RasCommunicator>;

// Ranks that have not come to a collective that others of their communicator have begun.
struct CollectiveGap {
  // "rank 3 has begun 1203 AllReduce, the 31 others 1204"; of 300 bytes at most.
  std::string text;
  std::vector<RasRank> behind;  // who have not come, or not answered

  bool operator==(const CollectiveGap&) const = default;
};

// Of the service's JSON. Members of it that are not known are left out, and so are operations of
// very long names, or more than a few dozen of a rank. What it takes of memory is in proportion to
// the text.
[[nodiscard]] Result<RasStatus> decode_ras_status(std::string_view json);

// Whether it is one of these processes of this machine.
[[nodiscard]] bool is_one_of(const RasRank& rank, const std::set<pid_t>& processes);
// It tells of one of them: it is not another job's.
[[nodiscard]] bool speaks_of(const RasStatus& status, const std::set<pid_t>& processes);

// Of the largest communicator in which there is one. Its ranks are the job's if it has all
// `world_size` of them. Sends and receives do not count: they are not everybody's. Pure.
[[nodiscard]] std::optional<CollectiveGap> collective_gap(const RasStatus& status, int world_size);

// What is kept of an answer, however long that was.
struct RasAnswer {
  std::uint64_t fingerprint = 0;  // the same: it says the same
  std::optional<CollectiveGap> gap;
};

// As collective_gap(). An answer may have so many ranks that this is nothing for a loop. Pure.
[[nodiscard]] RasAnswer conclude(const RasStatus& status, int world_size);

// Whether the gap stays as it is while nobody begins a collective. Pure.
class StuckCollectives {
 public:
  // Nullopt: the service has not answered.
  void on_answer(std::optional<RasAnswer> answer);
  // Two answers in a row said the same, with this gap in both.
  [[nodiscard]] const std::optional<CollectiveGap>& stuck() const { return stuck_; }
  // In the last answer.
  [[nodiscard]] std::optional<CollectiveGap> gap() const;
  // What that said, in words; empty: there was none.
  [[nodiscard]] std::string text() const;

 private:
  std::optional<RasAnswer> last_;
  std::optional<CollectiveGap> stuck_;
};

// Where the service of this machine's processes is, as NCCL_RAS_ADDR says it.
[[nodiscard]] Endpoint ras_endpoint(std::string_view address);

// Asks it, within `limit`; blocks. At an address of this machine only a process of this user or of
// root is asked.
[[nodiscard]] Result<RasStatus> ask_ras(const Endpoint& endpoint, std::chrono::milliseconds limit);

}  // namespace drun::hang
