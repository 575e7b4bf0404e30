// Where this agent goes when it was given several endpoints and is at no store yet: to the job's
// store if anybody knows of it, else to the first endpoint whose agent waits for the others. A
// store begins there when most of the endpoints' agents have met. Pure: what the endpoints'
// servers say, and the time, go in; where to go comes out.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "drun/base/endpoint.hpp"
#include "store/client/inquiry_fsm.hpp"

namespace drun::launcher {

// Advice for agents that were given different lists.
inline constexpr const char* kSameList =
    "; give all nodes the same --rdzv-endpoint, in the same order";

class FoundingFsm {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::milliseconds;
  // Go there, in place of any other.
  using Step = std::optional<Endpoint>;

  enum class State {
    Idle,       // not started
    Listening,  // nowhere yet: a job that runs may be about to say where its store is
    Asking,     // nowhere, and heard of no store: the first step waits until all have answered
    Waiting,    // the same, but silent endpoints are waited for no longer
    ToldEarly,  // where the job's store is said to be, while it would still listen
    Told,       // the same, later: if nobody knows of that store any more, one may be founded
    Founding    // where another waits (or this agent itself): a store may begin with its help
  };

  struct Limits {
    Duration turn{1'000};  // an endpoint that is silent is waited for so long before any first step
    // A job that runs tells a new agent within this time where its store is, if it may be told.
    Duration listening{300};
    Duration pause{1'000};  // until a place that has turned this agent away is tried again
    // When a place turns this agent away and points to a store, the endpoints' answers are older
    // than that news. For so long only an endpoint that knows of a store counts.
    Duration stay{1'000};
    int hops = 4;  // from one place that points to another, at a time
  };

  explicit FoundingFsm(std::vector<Endpoint> endpoints, const Limits& limits);
  explicit FoundingFsm(std::vector<Endpoint> endpoints)
      : FoundingFsm(std::move(endpoints), Limits{}) {}

  // The servers are asked from now on. Again: from nowhere, with another port of its own.
  void start(Time now);
  // What the server at this endpoint says.
  Step on_answer(std::size_t endpoint, const store::Whereabouts& answer, Time now);
  // Nothing came of the last step. `moved`: a server there says that the store is at that place.
  Step on_turned_away(const std::optional<Endpoint>& moved, Time now);
  // At or after next_deadline().
  Step on_time(Time now);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool is_started() const { return state_ != State::Idle; }
  // Where it is a store may begin with its help; else it was told that the job's is there.
  [[nodiscard]] bool founds() const { return state_ == State::Founding; }
  [[nodiscard]] std::optional<Time> next_deadline() const;
  // Whom this agent waits for, one line.
  [[nodiscard]] std::string text() const;

 private:
  using enum State;

  // Some states differ only in how long ago the start was: the one of them that holds now.
  [[nodiscard]] State at_time(State state, Time now) const;
  [[nodiscard]] bool is_somewhere() const { return state_ >= ToldEarly; }
  Step decide(Time now);
  Step go(State state, const Endpoint& place, Time now);
  [[nodiscard]] std::optional<Endpoint> job_store(Time now) const;
  [[nodiscard]] std::optional<Endpoint> place_to_found(Time now) const;
  [[nodiscard]] bool is_barred(const Endpoint& place, Time now) const;

  const std::vector<Endpoint> endpoints_;
  const Limits limits_;
  std::vector<store::Whereabouts> answers_;
  Time first_step_;     // is taken then at the latest
  Time listens_until_;  // and no earlier, but to a store that serves
  State state_ = Idle;
  Endpoint at_;  // where it went: of ToldEarly, Told, Founding
  int hops_ = 0;
  // Told by a place that has turned it away, but not yet by an endpoint: none is founded before.
  std::optional<Time> stays_until_;
  std::map<std::string, Time> barred_;  // places, and until when
};

}  // namespace drun::launcher
