// Where this agent goes when its store is lost: to the nodes that the round names as successors,
// one after the other, until a majority of the round's nodes has met at one of them. Any number of
// agents that ask the same successors in the same order meet, though they notice the loss at
// different times. Pure: what happened and the time go in, the next step comes out.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "drun/base/endpoint.hpp"

namespace drun::launcher {

// What the round says about the time after its store.
struct SuccessionPlan {
  std::vector<Endpoint> successors;  // in the order in which they are asked
  std::optional<std::size_t> own;    // which of them this agent is
  int nodes = 0;                     // of the round
  // The store is not run by the job itself (a drun-store): whoever runs it may start it again, so
  // the agents wait for it even if nothing listens there.
  bool store_may_return = false;

  bool operator==(const SuccessionPlan&) const = default;
};

enum class SuccessionState {
  Settled,   // in touch with a store
  Retrying,  // the link is broken, and tries to mend itself
  Visiting,  // at a successor, which serves when a majority has come
  Standing,  // this agent is the successor: it waits for the others
  Pausing,   // before successors are asked again: all of them were refused, or one was early
  Over       // gave up, or the job is over for this agent
};

// ---- steps ----

// Go to the store there, in place of any other; an own candidacy is over.
struct Visit {
  Endpoint endpoint;
};
// Serve a fresh store at the port that this agent has held for it, and go there; or call
// on_stand_failed().
struct Stand {};
// Go nowhere any more; one line for the user.
struct GiveUpSearch {
  std::string text;
};

using SuccessionStep = std::variant<std::monostate, Visit, Stand, GiveUpSearch>;

class SuccessionFsm {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::milliseconds;

  struct Limits {
    Duration keep_alive{6'000};  // how long a store that breaks is waited for if there is no other
    Duration silence{6'750};     // how long it may have said nothing before it is left for another
    // How long each successor is asked in the first pass over all of them. In each later pass a
    // turn is as long as the whole pass before, and at least twice as long as a turn of that. So an
    // agent that is still in the pass before comes to a successor while those ahead of it are
    // there, or at most half a turn later: agents that began at different times meet, even if
    // messages are slow.
    Duration turn{2'000};
    Duration longest_turn{8'000};
    Duration pause{100};
    // This agent may only have been cut off, and the others may be with the store still. So it
    // looks for so long whether the store answers again: at the end of each turn, but not in the
    // first pass, where each moment counts; when a successor's agent says that it is in touch with
    // the store, and in the end. Not more often: those who are just enough for a majority must be
    // there at one moment. Of two nodes each looks after the length of a first turn, also where it
    // is the successor itself.
    Duration glance{300};
    Duration search{20'000};  // of all attempts together
  };
  // How the link broke.
  struct Break {
    bool refused = false;  // nobody listens there any more: the process is dead
    bool over = false;     // and it does not try to mend itself, or no majority is at the store
    Duration silent{0};  // since the store was last heard, or a majority was last known to be there
    std::string cause{};              // for the user
    std::optional<Endpoint> moved{};  // it says that the job's store is there
    bool early = false;               // its agent has not lost the store yet
  };

  // `first`: where the store is, for the user.
  SuccessionFsm(const Limits& limits, Endpoint first) : limits_(limits), store_(std::move(first)) {}

  // Inputs. One that means nothing in the present state changes nothing and asks for nothing.
  // Counts from the next search on.
  void set_plan(SuccessionPlan plan);
  // A store knows this agent.
  void on_link_up();
  // The connection to the store broke, or that to a successor was refused or broke.
  SuccessionStep on_link_down(const Break& how, Time now);
  SuccessionStep on_stand_failed(Time now);
  // While it searches: somebody says that the job's store is there, and it is later than the last.
  SuccessionStep on_found(const Endpoint& store, Time now);
  // At or after next_deadline(). `cause`: why the link has not mended, as far as it knows.
  SuccessionStep on_time(const std::string& cause, Time now);
  void leave() { state_ = SuccessionState::Over; }

  [[nodiscard]] std::optional<Time> next_deadline() const;
  [[nodiscard]] SuccessionState state() const { return state_; }
  // The link is broken, and whoever needs to know that has been told.
  [[nodiscard]] bool is_broken() const {
    return state_ == SuccessionState::Retrying || is_searching();
  }
  // It looks for another store than the one that it has lost.
  [[nodiscard]] bool is_searching() const;
  // The present store, or the last one.
  [[nodiscard]] const Endpoint& store() const { return store_; }
  // There is somebody to go to.
  [[nodiscard]] bool has_successors() const { return !plan_.successors.empty(); }

 private:
  using enum SuccessionState;

  [[nodiscard]] bool has_been_at(const Endpoint& store) const;
  [[nodiscard]] SuccessionPlan to_be_asked() const;
  SuccessionStep search(Time now);
  SuccessionStep next(Time now);
  SuccessionStep ask(Time now);
  SuccessionStep ask_again(Time now);
  [[nodiscard]] bool are_two() const { return asked_.nodes == 2; }
  [[nodiscard]] bool may_glance() const;
  SuccessionStep glance(Time now);
  SuccessionStep resume(Time now);
  SuccessionStep wait_there(Time now);
  SuccessionStep visit(const Endpoint& store, Time now);
  SuccessionStep wait_or_search(const Break& how, Time now);
  SuccessionStep give_up_waiting(const std::string& cause);
  SuccessionStep end_search(Time now);
  SuccessionStep give_up_search();
  SuccessionStep pause(Time now);

  const Limits limits_;
  SuccessionPlan plan_;
  SuccessionState state_ = SuccessionState::Settled;
  Endpoint store_;                 // the present one, or the last
  std::vector<Endpoint> been_at_;  // successors that have served this agent since they were named
  Time due_;                       // of Retrying, Visiting, Standing, Pausing

  // The search.
  SuccessionPlan asked_;  // as it was when the search began
  Time search_end_;
  Time pass_began_;          // over all successors
  Duration turn_{0};         // in this pass
  std::size_t at_ = 0;       // which of them
  bool any_waited_ = false;  // in this pass: one of them took time
  Time asked_at_ = Time::min();
  Time turn_end_;                  // of the one that is asked
  bool is_early_ = false;          // it is to be asked again before that
  bool is_glance_ = false;         // the lost store is asked meanwhile
  bool was_glance_ = false;        // that found the store which is lost again
  bool is_last_ = false;           // and then no more
  bool is_dead_ = false;           // the lost store's process
  std::optional<Endpoint> found_;  // where it is, if that is none of the successors
  int hops_ = 0;                   // in this search: from one place that points to another
};

}  // namespace drun::launcher
