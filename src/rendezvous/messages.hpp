// Lines for people. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/membership.hpp"

namespace drun::rendezvous {

inline constexpr std::size_t kMaxNames = 8;  // in one line
inline constexpr std::size_t kMaxName = 64;  // of one node or job
// Why a round is stopped, behind the name of a node that was told to go and before its reason.
inline constexpr std::string_view kLeavesTheJob = " leaves the job: ";
// Of a node that is gone, if its helpers have said so. Otherwise nothing was heard of it any more.
inline constexpr std::string_view kAgentDied = "its agent has died (killed, or crashed)";
inline constexpr std::string_view kStoreIsThere = "the store is there";

// "00:42", "1:02:03".
[[nodiscard]] std::string clock_text(Milliseconds elapsed);
// " (09:18 left)": of a time limit. With clock_text() of the time that is over it makes the limit.
[[nodiscard]] std::string left_text(Milliseconds elapsed, Milliseconds limit);
// "600 s", "1.5 s".
[[nodiscard]] std::string duration_text(Milliseconds duration);
// "3", "3, 5", "0-6, 9"; cut with "..." after a few groups.
[[nodiscard]] std::string ranges_text(const std::vector<int>& sorted);
// "4 nodes", "2 to 4 nodes".
[[nodiscard]] std::string nodes_text(const Config& config);
// The time to wait for the others, as the user gave it.
[[nodiscard]] Milliseconds told_join_timeout(const Config& config);

// "node1 (group rank 1)": of a place in the last round. Without a name, that of the node that had
// the store, if it is this one; else `unknown`.
[[nodiscard]] std::string node_name(const State& state, int group_rank, const std::string& host,
                                    std::string_view unknown);

// "node3 asks for node rank 0, which node1 has".
[[nodiscard]] std::string duplicate_text(const MemberDocument& asking,
                                         const MemberDocument& holding);
// Why a second agent has no part in a job of one node.
[[nodiscard]] std::string foreign_job_text(const Config& config);
// "3 of 4 nodes (node[0-2]); missing node rank 3", then who was lost, what is waited for although
// they are enough, the nodes that wait for a taken rank, and the other jobs on this store.
// Bounded, whatever the size of the job.
[[nodiscard]] std::string waiting_text(const State& state, const Config& config, Time now);
// `waiting` with the endpoint. 80 columns show how many nodes there are and what is missing,
// however long the endpoint and the list of hosts are: "3 of 4 nodes; missing node rank 2; at
// node0:29400 and 2 more (node[0-1,3])". If there is nothing but hosts: "3 of 4 nodes at
// node0:29400 (node[0-2])".
[[nodiscard]] std::string with_place(std::string waiting, const Config& config);
// Those that were refused, with the reasons; empty when none was. Bounded.
[[nodiscard]] std::string refused_text(const State& state);
// Why this node was told to go, if the round was stopped for that. Else empty.
[[nodiscard]] std::string said_of_leaving(const State& state, const RankSlot& slot);
// "node0 0-3, node1 4-7"; many nodes are cut in the middle.
[[nodiscard]] std::string rank_map(const State& state, const std::vector<Planned>& plan);

// drun itself could not start its workers, whatever the program: no rank is to blame.
[[nodiscard]] bool is_of_drun(const FailureSummary& failure);
// "rank 3 on node1: exit code 7".
[[nodiscard]] std::string cause_text(const FailureSummary& failure);
// "rank 3 (local rank 1 on node1, pid 4711): exit code 7 after 12.3 s".
[[nodiscard]] std::string failure_text(const FailureSummary& failure);
// "restart 1/3 after rank 3 (local rank 1 ...": `failure` is failure_text().
[[nodiscard]] std::string restart_text(int restart, int max_restarts, std::string_view failure);

// Behind the words about a round of whole steps: "; 3 spares wait (steps of 4)"; empty: none do.
[[nodiscard]] std::string beyond_the_step_text(const Config& config, int spares);
// Of a node that was not in the round before: "gpu3 is taken in from round 2 on, as group rank 1".
[[nodiscard]] std::string taken_in_text(const std::string& host, const Assignment& place);

}  // namespace drun::rendezvous
