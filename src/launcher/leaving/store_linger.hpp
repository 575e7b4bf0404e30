// After the job: the store that this agent carries is served while jobs with other rendezvous ids
// have agents there. Pure: fed with what the store says.
#pragma once

#include <string>
#include <string_view>

#include "rendezvous/key_value.hpp"
#include "rendezvous/other_jobs.hpp"

namespace drun::launcher {

class StoreLinger {
 public:
  enum class Step {
    None,
    Say,       // others are there: tell the user, once
    StopStore  // nobody seems to need the store any more: stop it unless needs() says
               // otherwise
  };

  // Watch kWatch with all jobs' keys on it, before the first event.
  static constexpr rendezvous::WatchId kWatch = 0xFFFFFFFF;  // the participant counts from 1

  explicit StoreLinger(const std::string& run_id) : others_(rendezvous::Keys(run_id)) {}

  [[nodiscard]] Step on_event(const rendezvous::KeyValueEvent& event);
  // Whether a key of the store says that another job's agent is there. Any thread, while no other
  // member is called.
  [[nodiscard]] bool needs(std::string_view key) const { return others_.names_one(key); }
  // One line for the user.
  [[nodiscard]] std::string text() const;

 private:
  rendezvous::OtherJobs others_;
  bool said_ = false;
};

}  // namespace drun::launcher
