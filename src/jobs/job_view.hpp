// What the documents of a job say about it, for people and programs that ask from outside. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/number_ranges.hpp"
#include "drun/status/job_status.hpp"
#include "jobs/progress.hpp"
#include "jobs/usage.hpp"
#include "rendezvous/documents.hpp"
#include "rendezvous/history.hpp"

namespace drun::jobs {

using status::JobState;

// When a node's agent was last heard from.
struct LastWord {
  std::int64_t age_ms = 0;
  std::int64_t lease_ms = 0;  // the node is lost when it is so old
};

struct NodeView {
  std::string ticket;
  std::string host;
  std::string address;
  std::string role;
  // "running", "succeeded", "failed", "stopping", "stopped", "preparing", "waiting", "spare",
  // "leaving", "refused"; "unknown" if its document is not understood
  std::string state;
  std::string note;  // why it was refused, or leaves, or what failed; may be empty
  std::optional<int> group_rank;
  std::optional<NumberRange> ranks;
  std::vector<NumberRange> failed;  // if it has failed: its ranks that did, in order
  bool hosts = false;               // the store
  bool leads = false;
  std::optional<LastWord> word;  // nullopt: not known
};

// A node that the job knows of, and that is not there.
struct AbsentNode {
  std::string host;  // empty: not known any more
  // "missing": it has a place in the round, or its node rank is waited for; "lost": it had one, and
  // has not come back; "set-aside": it had to give its place to another, and has gone.
  std::string state;
  std::string note;                  // for people
  std::optional<int> group_rank;     // of one that is missing
  std::optional<NumberRange> ranks;  // of the same
  std::string ticket{};              // empty: not known any more
};

// "is furthest behind: step 41, 3.0 s ago"; a step of -1: it does not say.
[[nodiscard]] std::string behind_text(std::int64_t step, std::int64_t age_ms);

struct JobView {
  std::string id;
  JobState state = JobState::Gathering;
  rendezvous::RoundDocument round;  // as it is if there is none yet
  rendezvous::History history;      // empty: there is none
  int max_restarts = 0;
  std::string nnodes;              // "4", "2:8"
  std::vector<NodeView> nodes;     // by group rank, then those without one by host
  std::vector<AbsentNode> absent;  // those that are missing by group rank, then lost, set aside
  std::vector<NodeUsage> usage;    // so far, of nodes whose agents were asked
  std::vector<NodeBeats> beats;    // of this round; empty: nobody looks at heartbeats
  std::string collective;          // who has not come to one; empty: nobody knows of one
  std::optional<rendezvous::Outcome> outcome;
};

// "gathering", "preparing", "running", "stopping", "closed"
[[nodiscard]] std::string_view name_of(rendezvous::Phase phase);

// By key, all that begins with the prefix of all jobs. What cannot be read is passed over.
using Documents = std::map<std::string, std::string, std::less<>>;
// All of them as a line of JSON without its end, for another process of this host.
[[nodiscard]] std::string encode(const Documents& documents);
[[nodiscard]] Result<Documents> decode_documents(std::string_view text);
// `words`: of the documents that go with an agent, by key.
using LastWords = std::map<std::string, LastWord, std::less<>>;
[[nodiscard]] std::vector<JobView> jobs_in(const Documents& documents, const LastWords& words = {});

// A few lines; hosts of one state share one. Nothing in it can act on a terminal.
// `now_ms`: Unix time; 0: nothing is said of how long.
[[nodiscard]] std::string text_of(const JobView& job, std::int64_t now_ms = 0);
// For programs. `now_ms`: Unix time.
[[nodiscard]] status::JobStatus status_of(const JobView& job, std::int64_t now_ms);

}  // namespace drun::jobs
