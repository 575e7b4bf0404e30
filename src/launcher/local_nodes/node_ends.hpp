// What the ends of the agents mean for the job that they form (--local-nodes): whether enough are
// left, and which exit code drun gives. Pure.
#pragma once

#include <optional>

#include "launcher/process/exit_status.hpp"

namespace drun::launcher {

class NodeEnds {
 public:
  NodeEnds(int nodes, int min_nodes) : left_(nodes), min_nodes_(min_nodes) {}

  enum class Step {
    None,
    StopOthers  // too few are left for the job, and none can take the place of the lost one
  };
  // One more agent has ended. `unannounced`: the rest of the job may wait for it or go on without
  // it, because it never joined, was refused or was told to go; a killed agent is lost to the job
  // in any case.
  [[nodiscard]] Step on_end(const process::ExitStatus& status, bool unannounced);
  // drun was told to stop: nobody has to be stopped for a lost one any more.
  void on_stop() { told_to_stop_ = true; }
  // The agents that are left were killed for this signal, which was one request too many.
  void on_killed(int signal) { killed_by_ = signal; }

  [[nodiscard]] int left() const { return left_; }
  [[nodiscard]] bool killed() const { return killed_by_ != 0; }
  // Each agent gives the job's outcome, unless it was lost.
  [[nodiscard]] int exit_code() const;

 private:
  [[nodiscard]] Step on_lost(int code);

  int left_;
  const int min_nodes_;
  std::optional<int> outcome_;  // of the job, as the agents say that took part to the end
  bool over_ = false;           // the job, of which one has said so
  int lost_ = 0;                // the first code of those that did not
  bool too_few_ = false;        // the others were stopped for it
  bool told_to_stop_ = false;
  int killed_by_ = 0;
};

}  // namespace drun::launcher
