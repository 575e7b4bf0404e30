// How the job of hosts that drun starts itself stands: who is there, when all may begin, what the
// end of one means for the others, and which exit code drun gives. Pure: events go in, a step comes
// out.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/exit_codes.hpp"

namespace drun::launcher::hosts {

class HostRoll {
 public:
  enum class State {
    Gathering,  // not all have answered
    Begun,
    TooFew,  // the others were stopped, because one was lost
    GivenUp  // nothing was started
  };

  // `min_nodes` of the hosts make a job.
  HostRoll(std::size_t hosts, int min_nodes)
      : phases_(hosts, Phase::Starting), min_nodes_(min_nodes), ended_(hosts) {}

  enum class Step {
    None,
    Begin,      // all have answered, and enough are there: those get their orders
    Join,       // this one has come back: it gets its order
    GiveUp,     // all have answered, and too few are there: no agent has been started
    Hurry,      // the job ends on one host; a host that has not ended in a while never took part
    Outlast,    // it has succeeded: likewise, but the others may have much to say still
    StopOthers  // those that are left are no job any more
  };
  // The drun there is ready.
  [[nodiscard]] Step on_ready(std::size_t host);
  // It was not reached, its agent could not be started, or it was cut off with its agent.
  [[nodiscard]] Step on_failed(std::size_t host);
  // Its agent gave this exit code.
  [[nodiscard]] Step on_ended(std::size_t host, int code);
  // A host that is gone may be tried again: the job runs without it, and could have it.
  [[nodiscard]] bool may_return(std::size_t host) const;
  // It is.
  void on_retry(std::size_t host) { phases_[host] = Phase::Starting; }
  // drun was told to stop.
  [[nodiscard]] Step on_stop(int signal);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool begun() const { return state_ == State::Begun || state_ == State::TooFew; }
  [[nodiscard]] bool is_gone(std::size_t host) const { return phases_[host] == Phase::Gone; }
  // No agent runs any more, and none will.
  [[nodiscard]] bool over() const;
  // Each agent gives the job's outcome, unless it was lost or left alone: if enough of them
  // succeeded, the job has.
  [[nodiscard]] int exit_code() const;

 private:
  enum class Phase { Starting, Ready, Running, Gone };
  [[nodiscard]] std::size_t count(Phase phase) const;
  [[nodiscard]] Step settle();
  [[nodiscard]] bool succeeded() const { return successes_ >= min_nodes_; }

  std::vector<Phase> phases_;
  const int min_nodes_;
  State state_ = State::Gathering;
  int stopped_by_ = 0;       // a signal
  std::vector<bool> ended_;  // an agent there gave an exit code
  int successes_ = 0;
  std::optional<int> outcome_;
};

}  // namespace drun::launcher::hosts
