// What the ranks of several hosts did at the job's end, for the one report of a drun that has
// started an agent on each: the agents hand it over in place of a line of their own. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/report/stopped_ranks.hpp"

namespace drun::launcher {

// Of `ranks` what describe_stopped() and describe_succeeded() tell, without the node and the rank
// that stands out; no other text of drun's begins as this does. Ends with a line feed.
[[nodiscard]] std::string packed_ranks(const StoppedRanks& ranks);
// Nullopt: it is some other text, or damaged.
[[nodiscard]] std::optional<StoppedRanks> unpacked_ranks(std::string_view text);

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
