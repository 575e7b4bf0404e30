// How an agent's part in the job ends: what asks it to leave, what it still waits for, and the
// outcome. Pure.
#pragma once

#include <optional>
#include <string>

#include "rendezvous/documents.hpp"

namespace drun::rendezvous {

class Departure {
 public:
  enum class State {
    Staying,
    AskedToStop,   // the job, for all
    StopTold,      // the leader was told, and is to end the job
    AskedToLeave,  // the job goes on
    LeaveTold,     // the leader was told
    Ending,        // it is known how; workers or others may still be waited for
    Gone
  };

  // What matters of the agent around it.
  struct Surroundings {
    bool up = false;             // linked to the store
    bool was_up = false;         // now or before
    bool holds_workers = false;  // some are left
    bool written = false;        // the store has all that the leader must know of it
    bool may_be_heard = false;   // the others may still learn from it that it is to stop
    bool stop_ends_job = false;  // for all: this node has a part in it
    bool had_place = false;      // in a round
    std::optional<Time>
        leads_until{};  // it decides about a further round not before; or not at all
  };

  // The reference must outlive this.
  Departure(const Config& config, Time now) : config_(config), asked_since_(now) {}

  void ask_to_stop(StopRequest request, Time now);
  void ask_to_leave(StopRequest request, Time now);
  // The job goes on without this agent. `unfit`: because of what its machine is like.
  void refuse(std::string reason, bool unfit);
  // The store is lost for good.
  void fail(std::string reason) { failed_ = std::move(reason); }
  // The store is there, but does not do what this agent needs.
  void give_up(std::string reason);
  // How the job ended.
  void on_outcome(Outcome outcome) { outcome_ = std::move(outcome); }
  // It ends like this for want of anything better, because of some trouble. If it stays.
  void end(Outcome outcome);
  // Finds out whether it ends. True: the leader must be told of request() now.
  [[nodiscard]] bool advance(const Surroundings& around, Time now);
  // No workers are left, nor others to wait for.
  void go() { state_ = State::Gone; }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool staying() const { return state_ == State::Staying; }
  [[nodiscard]] bool ending() const { return ending_.has_value(); }
  [[nodiscard]] bool gone() const { return state_ == State::Gone; }
  // Nothing has happened to it.
  [[nodiscard]] bool untouched() const { return staying() && !refused_; }
  // Precondition: ending().
  [[nodiscard]] const Outcome& outcome() const { return *ending_; }
  // The job has ended, and this agent knows how.
  [[nodiscard]] bool job_over() const { return outcome_.has_value(); }
  [[nodiscard]] bool all_heard() const { return outcome_ && outcome_->all_heard; }
  [[nodiscard]] bool refused() const { return refused_.has_value(); }
  [[nodiscard]] const std::optional<std::string>& failed() const { return failed_; }
  [[nodiscard]] const std::optional<std::string>& given_up() const { return given_up_; }
  [[nodiscard]] bool stop_asked() const { return asked_ == Asked::Stop; }
  [[nodiscard]] bool leave_asked() const { return asked_ == Asked::Leave; }
  [[nodiscard]] bool asked() const { return asked_ != Asked::Nothing; }
  // To stop or to leave. Precondition: asked().
  [[nodiscard]] const StopRequest& request() const { return request_; }

  // The workers' stop: its reason, if this agent leaves for one; the signal that asked an agent of
  // the job to stop, or 0; no time for a grace, because the lease runs out.
  [[nodiscard]] const std::string& reason() const;
  [[nodiscard]] int stop_signal() const;
  [[nodiscard]] bool is_hurried() const;

  // A leader that is refused stays until then. It alone knows of those that were told to go and are
  // gone.
  [[nodiscard]] std::optional<Time> refused_until(const Surroundings& around) const;
  // Nothing but the store's answer keeps it any more.
  [[nodiscard]] bool has_left(const Surroundings& around, Time now) const;
  // When advance() finds something new, as far as this is up to time.
  [[nodiscard]] std::optional<Time> next_deadline(const Surroundings& around) const;

 private:
  enum class Asked { Nothing, Stop, Leave };
  struct Refusal {
    std::string reason;
    bool unfit = false;
  };

  [[nodiscard]] bool find_stop(const Surroundings& around, Time now);
  [[nodiscard]] bool find_leave(const Surroundings& around, Time now);
  [[nodiscard]] bool is_foreign_job(const Surroundings& around) const;
  [[nodiscard]] Milliseconds stop_wait(const Surroundings& around) const;
  [[nodiscard]] Time leave_ends(const Surroundings& around) const;

  const Config& config_;
  State state_ = State::Staying;
  Asked asked_ = Asked::Nothing;  // once and for all
  StopRequest request_;
  Time asked_since_;
  std::optional<Time> unheld_since_;  // while it leaves: no workers are left
  std::optional<Refusal> refused_;
  std::optional<std::string> failed_;
  std::optional<std::string> given_up_;
  std::optional<Outcome> outcome_;  // of the job
  std::optional<Outcome> ending_;   // for this agent
};

}  // namespace drun::rendezvous
