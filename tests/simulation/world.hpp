// One simulated job: agents (the real Participant), their workers, the network, the faults of a
// plan, and the observer. Runs on virtual time, the same for the same plan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/participant.hpp"
#include "simulation/alarm.hpp"
#include "simulation/checker.hpp"
#include "simulation/network.hpp"
#include "simulation/plan.hpp"

namespace drun::simulation {

struct Report {
  std::string violation;           // empty: none
  std::vector<std::string> trace;  // when asked for
  int rounds = 0;
  int agents = 0;
  std::uint64_t inputs = 0;            // that the participants were given
  std::optional<rendezvous::End> end;  // how the job ended; nullopt: nobody could say
};

class World {
 public:
  World(const Plan& plan, bool trace);
  Report run();

 private:
  struct Agent {
    std::unique_ptr<rendezvous::Participant> participant;
    int client = 0;
    std::optional<Alarm> alarm;
    std::vector<std::function<void()>> inbox;  // local events for a stopped process
    enum class Work { None, Starting, Running, Done, Stopping } work = Work::None;
    Milliseconds cost{};     // CPU time of what it does next
    bool late = false;       // what it does was decided before
    bool stops = false;      // it will stop its workers: what becomes of them says nothing any more
    std::uint64_t life = 0;  // of the workers: numbers those that were started
  };

  void start_agent(bool hosts = false);
  void input(int node, std::function<void(rendezvous::Participant&)> what);
  void act(int node);
  void take_long(int node, std::vector<rendezvous::Action> actions);
  void do_action(int node, const rendezvous::Action& action);
  void start_workers(int node, const rendezvous::Assignment& assignment);
  // `hang`: one of them makes no more progress, and the others run on.
  void fail_workers(int node, const std::optional<rendezvous::HangClue>& hang = std::nullopt);
  void hang_workers(int first, const Step& step);
  void stall_workers(int node, Milliseconds duration);
  void stop_workers(int node, bool immediately);
  void end_workers(int node);
  void heartbeat(int node);
  void renew_lease(int node, Time sent);
  void keep_lease(int node);
  void peers_notice(int round, int but);
  void apply(const Step& step);
  [[nodiscard]] Memory memory_of(const Step& step) const;  // of a store that restarts
  void kill(int node, bool silently);
  void tell_to_go(int node);
  void note_stop(Node& node) const;
  void note(int node, const std::string& text);
  [[nodiscard]] int pick(int which) const;  // a living agent, or -1
  [[nodiscard]] bool over() const;

  Agent& agent(int node) { return *agents_[static_cast<std::size_t>(node)]; }
  Node& node(int n) { return *nodes_[static_cast<std::size_t>(n)]; }

  const Plan plan_;
  const bool tracing_;
  Random random_;
  Scheduler scheduler_;
  Network network_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Agent>> agents_;
  Checker checker_;
  Report report_;
  int steps_left_ = 0;
};

}  // namespace drun::simulation
