// Who takes part in a round, and in which order. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/documents.hpp"

namespace drun::rendezvous {

// node7 before node66, node07 beside node7: runs of digits compare as numbers.
[[nodiscard]] std::strong_ordering natural_order(std::string_view a, std::string_view b);

// A member that may take part. Points into the leader's state, for the length of a call.
struct Candidate {
  const std::string* ticket = nullptr;
  const MemberDocument* document = nullptr;
  std::uint64_t arrival = 0;     // order in which the leader saw it
  std::optional<int> last_rank;  // group rank in the last round that ran
  bool aside = false;            // takes part only if it must
};

// As many of them as a round takes, in the order of their new group ranks. Those that are set aside
// come last; those of the last round go before others, then those that ask for a rank, the host
// agent, the lower ranks of the last round, the earlier arrivals. Asked-for ranks are distinct and
// below max_nodes. With fewer nodes than max_nodes the ranks close up, in order.
[[nodiscard]] std::vector<Candidate> place(std::vector<Candidate> candidates, const Config& config);

// The places of `ordered`, without master address and port.
[[nodiscard]] std::vector<Assignment> assign(const std::vector<Candidate>& ordered, int round,
                                             int restart_count);

}  // namespace drun::rendezvous
