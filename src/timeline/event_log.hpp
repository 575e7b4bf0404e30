// The event files of a job's nodes, read into one log. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "drun/events/event.hpp"

namespace drun::timeline {

enum class LoggedEnd { None, Succeeded, Failed, Terminated };

// One event, as far as a picture needs it: see events::Event for what the numbers mean.
struct LogEntry {
  events::Kind kind = events::Kind::Warning;
  std::string unknown;  // the name of an event that this drun does not know; `kind` is Warning then
  std::size_t agent = 0;  // an index of Log::agents
  // Unix time by the clock of its host, as that stood at the agent's first event; after
  // set_clocks_right() by that of the job.
  std::int64_t at_ns = 0;
  std::int64_t monotonic_ns = 0;  // 0: the line had none
  std::int64_t round = 0;
  std::int64_t restarts = 0;
  std::int64_t group_rank = -1;
  std::int64_t rank = -1;  // of the worker; -1: it is about none
  std::int64_t pid = 0;
  std::int64_t exit_code = 0;
  std::int64_t signal = 0;
  std::int64_t nodes = 0;
  std::int64_t first_rank = 0;
  std::int64_t workers = 0;  // of the node
  std::int64_t world_size = 0;
  LoggedEnd end = LoggedEnd::None;  // of worker_exited and outcome
  bool resize = false;              // of round_stopping: to take in nodes that have joined
  std::string text;                 // how it failed, or a line for people
  std::string peer;
  std::string peer_host;
};

// A drun of one node.
struct LoggedAgent {
  std::string run_id;
  std::string node;  // empty: it never joined
  std::string hostname;
  std::int64_t pid = 0;
  std::int64_t boot_ns = 0;  // Unix time less CLOCK_MONOTONIC at its first event; 0: not known
};

struct Log {
  std::vector<LoggedAgent> agents;
  std::vector<LogEntry> entries;  // ordered by agent, and those of an agent by time
};

// What a file had.
struct FileCount {
  std::size_t events = 0;
  std::size_t repeated = 0;  // events that were read before: a file that is given twice
  std::size_t foreign = 0;   // lines that are no events
  bool torn = false;         // its last line has no end, and is no event
};

// Takes files piece by piece, in any order, also those that were put aside ("FILE.1").
class LogReader {
 public:
  // The next bytes of a file.
  void add(std::string_view bytes);
  // The file is over.
  [[nodiscard]] FileCount end_file();
  [[nodiscard]] Log finish() &&;

 private:
  bool take_line(std::string_view line);
  std::size_t agent_of(const events::Event& event);
  std::size_t new_agent(const events::Event& event);

  std::string line_;       // the beginning of one whose end has not come
  bool too_long_ = false;  // it is longer than any event
  FileCount count_;
  Log log_;
  std::unordered_set<std::uint64_t> seen_;         // hashes of lines
  std::map<std::string, std::size_t> by_process_;  // job, host and pid: who has it now
  std::map<std::string, std::size_t> by_node_;     // job and node
  std::map<std::size_t, std::size_t> same_as_;     // agents that turned out to be another
};

}  // namespace drun::timeline
