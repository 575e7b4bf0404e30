// What the ranks of several hosts did at the job's end, for the one report of a drun that has
// started an agent on each: the agents hand it over in place of a line of their own. And through
// the store, for the node that leaves last: its --report has the ranks of all. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/report/stopped_ranks.hpp"

namespace drun::launcher {

// Of `ranks` what describe_stopped() and describe_succeeded() tell, without the node and the rank
// that stands out; no other text of drun's begins as this does. Ends with a line feed.
[[nodiscard]] std::string packed_ranks(const StoppedRanks& ranks);
// Nullopt: it is some other text, or damaged.
[[nodiscard]] std::optional<StoppedRanks> unpacked_ranks(std::string_view text);

// A failure report that the drun above says last, behind what single hosts say of ranks that seem
// to hang; no other text of drun's begins as this does.
[[nodiscard]] std::string kept_for_last(const std::string& report);
// The report; nullopt: it is some other text.
[[nodiscard]] std::optional<std::string> said_last(std::string_view text);

// All of `ranks` that a report or a suspicion needs, in at most so many bytes: of very many ranks
// some of it is left out. Empty if there is nothing to tell.
[[nodiscard]] std::string packed_end(const StoppedRanks& ranks, std::size_t most);
[[nodiscard]] std::optional<StoppedRanks> unpacked_end(std::string_view text);

// The ranks of all nodes, in their order.
[[nodiscard]] StoppedRanks ranks_of_all(const StoppedRanks& own,
                                        const std::vector<StoppedRanks>& others);

// Those of all hosts so far.
class GatheredRanks {
 public:
  void add(const StoppedRanks& host);
  // Lines for the user, in their order; empty: there is nothing to say.
  [[nodiscard]] std::string stopped() const { return describe_stopped(in_order()); }
  [[nodiscard]] std::string succeeded() const { return describe_succeeded(in_order()); }

 private:
  [[nodiscard]] StoppedRanks in_order() const;

  StoppedRanks all_;  // as they came: of thousands of hosts
};

}  // namespace drun::launcher
