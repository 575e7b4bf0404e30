// One simulated job whose store may be succeeded: agents (the real Participant), their workers and
// leases, the stores, and an observer that excuses nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/participant.hpp"
#include "simulation/alarm.hpp"
#include "simulation/scheduler.hpp"
#include "simulation/succession/plan.hpp"
#include "simulation/succession/stores.hpp"

namespace drun::simulation {

struct SuccessionReport {
  std::string violation;  // empty: none
  std::vector<std::string> trace;
  int stores = 0;  // that there were
  int rounds = 0;
  int succeeded = 0;  // agents
  // From the first blow until the last workers were started: what went between machines.
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  Milliseconds fail_over{};
};

class SuccessionWorld {
 public:
  SuccessionWorld(const SuccessionPlan& plan, bool trace);
  SuccessionReport run();

 private:
  struct Agent {
    int number = 0;
    rendezvous::Config config;
    bool is_newcomer = false;
    std::unique_ptr<rendezvous::Participant> participant;
    bool running = true;  // the process
    bool paused = false;
    bool harmed = false;  // something happened to it, or to its link
    std::vector<std::function<void()>> inbox;
    std::optional<Alarm> alarm;
    bool hosts = false;
    bool up = false;
    std::int64_t generation = 0;  // of its store
    // The workers, from the order to start them until the last is gone.
    std::optional<rendezvous::Assignment> workers;
    bool working = false;    // none has ended
    bool is_done = false;    // all have succeeded
    std::uint64_t life = 0;  // numbers them
    Time lease{};            // until then they may run
    int restarts = 0;        // the most that they were started with
    std::optional<rendezvous::Outcome> outcome;
    // What it ran last: the round and its rank there.
    std::optional<std::pair<std::string, int>> before, present;
  };

  Agent& agent(int number) { return *agents_[static_cast<std::size_t>(number)]; }
  void note(int number, const std::string& text);
  void fail(const std::string& what);
  void start_agent(int machine, bool newcomer = true);
  void start_newcomers(int count, bool at_endpoints);
  // As a supervisor of its machine does.
  void start_again(int machine, Milliseconds pause);
  void join(int number, const launcher::NodeIdentity& identity);
  void finish(int number, const rendezvous::Outcome& outcome);
  void drop(int number);
  void on_event(int number, const rendezvous::KeyValueEvent& event);
  void check_one_job(int number, const rendezvous::Assignment& assignment);
  void input(int number, std::function<void(rendezvous::Participant&)> what);
  void act(int number);
  void do_action(int number, const rendezvous::Action& action);
  void start_workers(int number, const rendezvous::Assignment& assignment);
  void check_start(const Agent& a, const rendezvous::Assignment& assignment);
  void stop_workers(int number, bool immediately);
  void end_workers(int number);
  void fail_worker(int number);
  void watch_lease(int number);
  void note_cost();
  void strike(const Blow& blow);
  void kill(int number, bool silently);
  void pause(int number, Milliseconds duration);
  enum class Way { Both, In, Out };  // of those that are separated
  void separate(const std::set<int>& some, Way way, Milliseconds duration);
  void on_serving(int number, std::int64_t generation);
  void check_renewal(const Agent& a, Time sent);
  [[nodiscard]] int pick(const Blow& blow) const;
  [[nodiscard]] bool over() const;
  [[nodiscard]] bool is_known() const;
  void check_end();

  const SuccessionPlan plan_;
  const bool tracing_;
  Random random_;
  Scheduler scheduler_;
  Stores stores_;
  std::vector<std::unique_ptr<Agent>> agents_;
  int machines_ = 0;
  std::set<std::string> rounds_;         // that were started
  std::map<std::int64_t, Time> served_;  // by generation: since when there was a store of it
  Time struck_{};                        // first; so far there were so many:
  std::uint64_t messages_then_ = 0;
  std::uint64_t bytes_then_ = 0;
  std::string present_round_;  // the one that was started last
  std::string last_round_;     // the one before, if none was begun in between
  int present_number_ = 0;
  int failures_ = 0;  // of workers, so far
  int steps_left_ = 0;
  SuccessionReport report_;
};

}  // namespace drun::simulation
