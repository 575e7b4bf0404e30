// Which nodes give their places to spares, and what nodes have cost the job. Pure.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/membership.hpp"
#include "rendezvous/rank_assignment.hpp"

namespace drun::rendezvous {

// The round of `state` ended because nodes were lost: counts each host once, in `round`.
void note_lost_hosts(const State& state, RoundDocument& round);

// A restart was spent on the failures of `state`, of which `root` is the cause: counts it if it is
// what one node did by itself. Those that were set aside for the same at the same rank are cleared
// by it; these.
std::vector<SetAside> note_cost(const State& state, const Failure& root, const Config& config,
                                RoundDocument& round);

// Why the node should leave its place to another; empty: it need not.
[[nodiscard]] std::string why_aside(const State& state, const Config& config,
                                    const RoundDocument& round, const std::string& ticket,
                                    const std::string& host);

// Those of the candidates that have had to leave their places to others, unless `round` knows of
// them already; adds them to it.
[[nodiscard]] std::vector<SetAside> take_set_aside(const State& state, const Config& config,
                                                   const std::vector<Candidate>& candidates,
                                                   const std::vector<Candidate>& chosen,
                                                   RoundDocument& round);

}  // namespace drun::rendezvous
