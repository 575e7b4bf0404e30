// What happens in a job, as drun tells it: drun --events writes one event a line, as JSON. This is
// for programs that read such lines. Needs C++20. Plain data and functions without state: any
// thread.
//
//   std::string line;
//   while (std::getline(std::cin, line))
//     if (const auto event = drun::events::parse_event(line))
//       if (event->kind == drun::events::Kind::WorkerExited)
//         std::cout << event->global_rank << ": " << event->exit_code << '\n';
#pragma once

#if __cplusplus < 202002L
#error "drun needs C++20: compile with -std=c++20"
#endif

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "drun/base/result.hpp"

namespace drun::events {

// docs/events.md says what each means and which fields it has, and so does every_kind().
enum class Kind {
  AgentStarted,
  StoreHosted,
  StoreFound,
  StoreLost,
  LeaderElected,
  NodeJoined,
  NodeGone,
  NodeRefused,
  RoundBegun,
  WorkerStarted,
  WorkersRunning,
  WorkerExited,
  Failure,
  RoundStopping,
  RoundEnded,
  Restart,
  Signal,
  Limit,
  Hang,
  Warning,
  EventsLost,
  Outcome,
  AgentEnded
};

// One event. The first group of fields stands in every line and says where and when; of the others
// only those that the kind has (KindInfo::fields) mean something. Texts are UTF-8, without control
// characters, and at most kLongestText bytes long.
struct Event {
  Kind kind = Kind::Warning;
  std::int64_t time_ns = 0;       // Unix time in nanoseconds, by this node's clock
  std::int64_t monotonic_ns = 0;  // this host's CLOCK_MONOTONIC: for differences on one host
  std::string run_id;
  std::int64_t agent_restarts = 0;  // restarts of the job so far, the same on all nodes
  std::int64_t round = 0;           // 0: no round has begun for this node
  std::string node;                 // unique for each agent process; empty until it has a place
  std::string hostname;
  std::int64_t agent_pid = 0;
  std::int64_t group_rank = -1;  // of this node in the round; -1: none

  std::string name;            // torchelastic's name of the same event
  std::string source;          // torchelastic's: "AGENT" or "WORKER"
  std::int64_t timestamp = 0;  // torchelastic's: Unix time in milliseconds
  std::string role;
  std::string state;  // "SUCCEEDED", "FAILED", "TERMINATED": torchelastic's words
  std::int64_t global_rank = 0;
  std::int64_t local_rank = 0;
  std::int64_t pid = 0;  // of the worker; 0: it never began. torchelastic's worker_id
  std::int64_t exit_code = 0;
  std::int64_t signal = 0;            // that ended the worker, or was sent to drun; 0: none
  std::string raw_error;              // how the worker failed: "killed by SIGSEGV"
  std::int64_t duration_ms = 0;       // of what has ended: the worker, the round
  std::int64_t cpu_ms = 0;            // used by the worker, and what it has waited for
  std::int64_t peak_kib = 0;          // of memory, of the largest of these processes
  std::int64_t read_kib = 0;          // from storage
  std::int64_t written_kib = 0;       // to storage
  std::int64_t switches = 0;          // of context
  std::int64_t gpu_peak_kib = -1;     // of memory of GPUs, of all below it; -1: not known
  std::int64_t gpu_percent = -1;      // of the time it kept its GPUs busy; -1: not known
  std::int64_t total_run_time = 0;    // of this agent, in seconds
  std::int64_t group_world_size = 0;  // nodes of the round
  std::int64_t first_rank = 0;        // of this node
  std::int64_t local_world_size = 0;  // workers of this node
  std::int64_t world_size = 0;        // workers of the round
  std::string master_endpoint;        // the workers' MASTER_ADDR:MASTER_PORT
  std::string rdzv_backend;           // "c10d", "static", "etcd", "standalone"
  std::string endpoint;               // of the store
  std::string nnodes;                 // "4", "2:4"
  std::int64_t max_restarts = 0;
  std::string version;    // of drun
  std::string peer;       // another node's `node`
  std::string peer_host;  // and its host name
  std::string reason;     // one line for people
  std::string cause;      // of a round's end: "failure", "time-limit", "resize"; empty: another
  std::int64_t lost = 0;  // events that were not written

  bool operator==(const Event&) const = default;
};

// No text of an event is longer; the end of one that was is left out.
inline constexpr std::size_t kLongestText = 512;
// No line is longer, its end included: what a pipe takes whole.
inline constexpr std::size_t kLongestLine = 4096;

// Where a field lies in an Event.
using Member = std::variant<std::int64_t Event::*, std::string Event::*>;
struct Field {
  std::string_view name;  // in the JSON object
  Member member;
  std::string_view meaning;
};
struct KindInfo {
  Kind kind;
  std::string_view name;  // "worker_exited"
  std::span<const Field> fields;
  std::string_view meaning;
};
// All kinds, in the order of Kind; and the fields of every line, but "event" and "time".
[[nodiscard]] std::span<const KindInfo> every_kind();
[[nodiscard]] std::span<const Field> common_fields();
[[nodiscard]] const KindInfo& info_of(Kind kind);
// Of a name; nullopt: there is no such kind.
[[nodiscard]] std::optional<Kind> kind_of(std::string_view name);

// The value of a field as text: a number in decimal digits.
[[nodiscard]] std::string text_of(const Event& event, const Field& field);

// "2026-11-28T14:30:00.123456789Z"
[[nodiscard]] std::string rfc3339(std::int64_t time_ns);

// The line without its end: an object, in ASCII. At most kLongestLine - 1 bytes.
[[nodiscard]] std::string to_json(const Event& event);
// Reads such a line. Fields that are unknown are ignored, those that are missing keep their
// defaults. Errors: it is no object, its kind is unknown, or a field has another type.
[[nodiscard]] Result<Event> parse_event(std::string_view line);

}  // namespace drun::events
