// The invariants of the rendezvous (docs/architecture.md), as an all-seeing observer checks them.
// Sees what is written to the store and what each node does.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/documents.hpp"
#include "rendezvous/keys.hpp"
#include "simulation/network.hpp"
#include "simulation/plan.hpp"

namespace drun::simulation {

// One agent and its workers, as the observer sees them.
struct Node {
  int number = 0;
  rendezvous::Config config;
  bool running = true;  // the agent's process exists
  bool paused = false;
  bool slow_stop = false;
  bool told_to_stop = false;
  Time stop_told{};  // when
  std::optional<Time> told_to_go;
  std::optional<Time> leave_said;  // its wish to go is in the store since
  bool leave_heard = false;        // somebody led then, and had begun to listen
  std::optional<Time> registered;  // its member key was first written
  int restart_count = 0;           // the highest that its workers were started with
  bool came_through = false;       // has ever reached the store
  bool was_in_trouble = false;     // was ever paused, cut off or reset
  std::optional<rendezvous::Outcome> outcome;

  // The workers that exist on the node, from the order to start them until the last is gone.
  std::optional<rendezvous::Assignment> workers;
  Time renewed{};                 // the lease, by which they may run
  Time session_ended{};           // last
  Time link_up{};                 // since
  Time awake{};                   // neither paused nor busy since
  Time linked{};                  // not cut off since
  Time said{};                    // what it runs: first since then
  std::optional<Time> link_lost;  // the agent knows that it is out of touch since
  int stalls = 0;                 // the round in which they make no more progress, now
  int stalled = 0;                // the last in which they did not, for a while
  Time stall_changed{};           // they make no more progress, or again, since
  int told_of_hang = 0;           // the last round that its agent was told to hang
};

class Checker {
 public:
  Checker(const Plan& plan, const Scheduler& scheduler, const Network& network,
          const std::vector<std::unique_ptr<Node>>& nodes);

  void on_applied(int writer, const rendezvous::Transaction& transaction);
  void on_failure_reported(int node, int round, bool hung);
  void on_success_reported(int node, int round);
  // The node is told that its round hangs.
  void on_hang(Node& node);
  // Its workers make no more progress, and are about to again.
  void check_hang(const Node& node);
  // The lease of its workers is renewed.
  void on_renewed(const Node& node);
  // Before the node's workers are noted.
  void on_start(const Node& node, const rendezvous::Assignment& assignment);
  void on_finish(const Node& node, const rendezvous::Outcome& outcome);
  void on_store_restart(Memory memory);
  void on_store_full(bool full);
  // The store did not take what a node asked for; `known`: for a limit that it had told.
  void on_rejected(int node, bool known);
  // All nodes that run are told to go, within two seconds from now.
  void on_cancel();
  void fail(std::string what);
  // All is over, or the time is.
  void on_end(bool all_finished);

  // The first thing that was wrong; empty: nothing.
  [[nodiscard]] const std::string& violation() const { return violation_; }
  [[nodiscard]] int rounds() const { return static_cast<int>(rounds_.size()); }
  // How the job ended; nullopt: without a word in the store.
  [[nodiscard]] const std::optional<rendezvous::Outcome>& outcome() const { return outcome_; }

 private:
  struct Seat {
    rendezvous::Assignment assignment;
    SessionId session = 0;  // of its agent when the round was published
    int node = -1;
    Time written{};
    std::optional<Time> lost;  // since then the store has forgotten it
    std::set<int> seen;        // by these nodes, which were in touch until then
  };
  struct ToldHang {
    Time at{};
    rendezvous::HangClue clue;
  };
  struct Round {
    std::map<std::string, Seat> seats;  // by ticket
    int nodes = 0;
    int restart_count = 0;
    int losses = 0;
    Time planned{};
    int leader = -1;  // the node that began it
    Time began{};     // it was written
    std::optional<Time> stopped;
    rendezvous::Cause cause = rendezvous::Cause::None;  // of that
    std::optional<Time> over;                           // all have left it
    // Until then:
    bool lost_a_node = false;
    // When it was begun, nodes had told of these, which the store has forgotten: others of them may
    // have workers.
    std::vector<rendezvous::Assignment> warned;
    bool spared = false;                 // the leader knew of a node that goes: no failure counts
    std::set<int> failed;                // nodes that reported a failure
    std::set<int> hung;                  // those of them whose ranks hang
    std::map<int, ToldHang> told_hangs;  // by node, as the store has them
    std::string root;                    // the ticket of the node that it was stopped for
    std::set<int> succeeded;
    std::set<int> started;
  };

  void check_round(const Node& writer, const rendezvous::RoundDocument& document);
  void check_network(const Round& before, const Round& after, int number);
  void check_order(const Round& before, const Round& after, int number);
  void check_stop(const rendezvous::RoundDocument& document);
  void check_hang_stop(const Round& round, const std::string& root);
  void check_outcome(const std::string& writer);
  // Nothing but what its ranks do ends it.
  [[nodiscard]] bool is_calm(const Round& round) const;
  void check_leaves(const Node& writer, const Round& before, const Round& after, int number);
  void note_end(const Node& writer, Round& round);
  // It ran for less than the job's min_runtime: for certain, or perhaps.
  [[nodiscard]] bool is_brief(const Round& round) const;
  [[nodiscard]] bool may_be_brief(const Round& round) const;
  [[nodiscard]] std::optional<Time> said_leave(const Node& node) const;
  [[nodiscard]] bool was_writable() const;
  [[nodiscard]] const Node* leader() const;
  [[nodiscard]] bool is_led() const;
  [[nodiscard]] bool was_outcome(const rendezvous::Outcome& outcome) const;
  [[nodiscard]] rendezvous::Milliseconds writing_time() const;
  [[nodiscard]] bool knew_of_leave(const Node& writer, const Node& node) const;
  void check_told(const Node& node);
  [[nodiscard]] bool is_shown(const Node& node) const;
  void note_place(const std::string& ticket, const std::string& value);
  void note_forgotten(const Node& node, const rendezvous::MemberDocument& document);
  void forget_since(Time since);
  void note_refusal(const Node& writer, const std::string& ticket, const std::string& value);
  [[nodiscard]] bool was_given(const Node& node, const rendezvous::Assignment& place) const;
  [[nodiscard]] bool runs_published(const Node& node) const;
  [[nodiscard]] bool has_published_place(const Node& node) const;
  [[nodiscard]] bool is_known(const Node& node, const Round& next) const;
  [[nodiscard]] bool is_published(const Node& node, const rendezvous::Assignment& place) const;
  [[nodiscard]] bool lost_a_node(const Round& round) const;
  // Long enough ago that all could know.
  [[nodiscard]] bool long_before(std::optional<Time> time, Time other) const;
  [[nodiscard]] const Node* find(const std::string& ticket) const;
  [[nodiscard]] int ms() const;

  const Plan& plan_;
  const Scheduler& scheduler_;
  const Network& network_;
  const std::vector<std::unique_ptr<Node>>& nodes_;
  const rendezvous::Keys keys_;
  std::map<int, Round> rounds_;          // that were published
  std::multimap<int, Round> forgotten_;  // by the store, before others got their numbers
  std::map<int, int> known_losses_;      // by node: the most when its workers were started
  int started_ = 0;                      // the highest round in which any worker was started
  bool forgetful_ = false;               // the store has lost what it knew
  bool strangers_ = false;               // a node has told of workers of a round that was forgotten
  // By nodes with workers of rounds that the store has lost; of each round, when it was first said.
  std::vector<std::pair<rendezvous::Assignment, Time>> told_of_forgotten_;
  int last_ran_ = 0;       // as the store has it
  std::set<int> silent_;   // have written nothing since the store was set back
  bool set_back_ = false;  // the same, but only the last moments
  bool store_failed_ = false;
  bool full_ = false;  // the store is, or was last, from and until:
  Time full_since_{};
  Time full_until_{};
  std::set<std::string> expelled_;              // tickets of those that a leader has left behind
  std::set<std::string> refused_;               // tickets
  std::set<std::string> refused_in_doubt_;      // of these: a full store may have cut them short
  std::map<int, std::deque<Time>> rejections_;  // the last few of each node
  std::optional<rendezvous::Outcome> outcome_;
  Time ended_{};  // it was written
  std::vector<rendezvous::Outcome> forgotten_outcomes_;
  std::optional<Time> led_since_;  // the last leader was elected
  const Node* elected_ = nullptr;  // that one
  std::optional<Time> cancelled_;  // at that time there were so many nodes:
  std::size_t cancelled_nodes_ = 0;
  std::set<int> has_said_leave_;   // ever
  std::set<int> asked_to_end_;     // nodes whose request to end the job is in the store
  Time planned_{};                 // the last plan was written
  std::optional<Time> ran_until_;  // the last round
  rendezvous::Phase last_phase_ = rendezvous::Phase::Gathering;
  std::string violation_;
};

}  // namespace drun::simulation
