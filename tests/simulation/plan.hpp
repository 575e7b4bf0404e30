// What happens in one simulated run: drawn from the seed before it starts, so that the schedule of
// a failing run can be printed and read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/types.hpp"

namespace drun::simulation {

enum class Fault {
  Join,          // one more agent starts
  Crash,         // SIGKILL of an agent; its guardian ends the workers
  PowerOff,      // a host falls silent for good, workers and all
  Pause,         // SIGSTOP of an agent, SIGCONT later; its workers go on
  Partition,     // a host's link is down for a while; nothing is lost that TCP can bring later
  Reset,         // an agent's connection breaks; it reconnects, at once or after an outage
  WorkerFails,   // on one node, sometimes followed by the peers'
  Stop,          // an agent is told to stop
  StoreRestart,  // an external store is down for a while; keeps keys, sessions, or nothing
  HostDies,      // the agent that hosts the store is killed, and the store with it
  Go,            // a node is told to go
  GoAll,         // all are told to go, within two seconds
  StoreFull,     // the store takes no transaction for a while, or none but the smallest
  Busy,          // what an agent does next takes it long: what it decided then is done late
  HostRestarts,  // the host is killed and started again soon: its store is empty
  Stall,         // workers of one node, or of all, make no more progress for a while
  Hang,          // the same for good, and each node finds it; one may know whom all wait for
  Stranger       // somebody writes the leader key, who has no part in the job
};

struct Step {
  int at_ms = 0;
  Fault fault = Fault::Join;
  int node = 0;         // modulo the number of agents then
  int duration_ms = 0;  // of a pause, partition, outage
  int detail = 0;       // which kind
};

struct Plan {
  std::uint64_t seed = 0;
  int min_nodes = 1;
  int max_nodes = 1;
  int node_step = 1;
  int first_nodes = 1;  // start at about the same time; more come with Join
  int start_spread_ms = 0;
  bool hosted = true;  // the first agent hosts the store
  int max_restarts = 0;
  std::optional<int> max_losses;
  int min_runtime_ms = 0;
  bool asked_ranks = false;  // all agents ask for one, replacements for that of the dead
  rendezvous::RankOrder rank_order = rendezvous::RankOrder::Keep;
  rendezvous::Resize resize = rendezvous::Resize::Now;
  int join_timeout_ms = 60'000;
  int work_ms = 0;              // how long the workers need
  int max_delay_ms = 0;         // of a message
  bool loose_sessions = false;  // a session may end before its connection does
  bool reorder = false;         // watches overtake one another
  int slow_stop = 0;            // percent of the nodes whose workers need long to stop
  int cascade = 0;              // percent of the peers that fail when a worker is gone
  int keys_per_request = 0;     // that the store takes; 0: any number
  int snapshot_age_ms = 0;      // a store that keeps its sessions is set back this far; 0: is not
  std::vector<Step> steps;
};

[[nodiscard]] Plan make_plan(std::uint64_t seed, int most_nodes);
[[nodiscard]] std::string describe(const Plan& plan);
[[nodiscard]] const char* name(Fault fault);

}  // namespace drun::simulation
