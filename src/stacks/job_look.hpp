// How the nodes of a job are asked for their stacks through their store. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stacks/stack_report.hpp"

namespace drun::stacks {

// Of a node's report, in bytes.
inline constexpr std::size_t kLongestAnswer = std::size_t{512} << 10;
// The same of each of so many nodes: their store holds all of them at once.
[[nodiscard]] std::size_t longest_answer(std::size_t nodes);

// The document under rendezvous::Keys::look.
struct JobLook {
  std::string id;                     // of this request: letters and digits
  bool unwind = true;                 // else only what /proc says
  std::chrono::milliseconds limit{};  // for each node
  // The workers are about to be stopped: a node that has looked at them for that says what it saw.
  bool last = false;
  std::size_t longest = kLongestAnswer;
  int round = 0;  // only its nodes are asked: one that was set aside still has an older one
};
[[nodiscard]] std::string encode(const JobLook& look);
// Nothing if it is none.
[[nodiscard]] std::optional<JobLook> decode_job_look(std::string_view text);

// The report of the job from those of its nodes, as JSON by key. How many are none, or are missing
// of all `nodes`, is said in a note, and which, if they are among the `places`.
[[nodiscard]] StackReport fold_answers(const std::map<std::string, std::string>& answers,
                                       std::size_t nodes,
                                       const std::vector<NodeRanks>& places = {});

}  // namespace drun::stacks
