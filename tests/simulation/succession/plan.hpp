// What happens in one simulated job whose store may be succeeded: drawn from the seed before it
// starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace drun::simulation {

enum class Harm {
  Kill,      // an agent; its guardian ends the workers, and says so
  PowerOff,  // a machine, workers and all: nobody says so
  Stop,      // SIGSTOP of an agent and the store in it, SIGCONT later
  Cut,       // a machine from all others, for a while
  Split,     // some machines from the others, for a while: in both directions, or in one
  OneWay,    // what one machine sends to another is held for a while
  Fail,      // a worker
  Join,      // `detail` more agents start; of_host: on machines of endpoints, if nobody is there
  Go,        // an agent is told to go
  Return,    // the first agent is killed; then one starts on its machine, with an empty store
  Called,    // the next agent that another one calls to its store is killed when it has said so
  End        // an agent is told to end the job
};

struct Blow {
  int at_ms = 0;
  Harm harm = Harm::Kill;
  bool of_host = false;  // whoever hosts the store then
  int node = 0;          // else this one, modulo the living
  int duration_ms = 0;
  int detail = 0;
};

// What must come of it.
enum class Promise {
  Nothing,     // but that two rounds never run at once, and that the job ends
  Success,     // at each moment a majority of the nodes that are left is there, and enough of them:
               // the job succeeds on all that nothing happened to
  NoNewRound,  // and its workers are not touched
  Soon,        // and who is left has new workers within seconds
  InTime,      // the same, after the last blow, as soon as the lease of a silent node is over
  Ended,       // all that nothing happened to end as the last blow says
  Returns      // a supervisor on each machine starts agents again until one has succeeded; MIN do
};

struct SuccessionPlan {
  std::uint64_t seed = 0;
  int nodes = 3;  // that start
  int min_nodes = 1;
  int max_nodes = 3;
  int endpoints = 1;  // on the first machines
  bool host_is_spare = false;
  int successors = 3;
  int max_restarts = 3;
  int work_ms = 20'000;
  int max_delay_ms = 2;
  Promise promise = Promise::Nothing;
  std::vector<Blow> blows;
};

[[nodiscard]] SuccessionPlan make_succession_plan(std::uint64_t seed);
[[nodiscard]] std::string describe(const SuccessionPlan& plan);

}  // namespace drun::simulation
