// What an agent tells the user while it runs: each line once among neighbours, state changes only
// if several machines are involved, and what it waits for.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/output/output.hpp"
#include "launcher/report/stopped_ranks.hpp"
#include "launcher/signals/agent_signals.hpp"
#include "launcher/telling/shared_log_dedup.hpp"
#include "launcher/telling/status_line.hpp"

namespace drun::launcher {

// The places to write to.
struct StatusScreen {
  bool terminal = false;
  std::function<void(std::string text)> message;  // a line
  std::function<void(std::string text)> status;   // a line that is written anew in place
  std::function<std::size_t()> columns;           // of the terminal; 0: not known
};

// drun's own standard error; `output` must outlive it.
[[nodiscard]] StatusScreen standard_error(Output& output);

class StatusReporter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Takes the log over until it is gone. `neighbours` (null: none on this machine) must outlive it.
  StatusReporter(StatusScreen screen, SharedLogDedup* neighbours, bool single_node);
  StatusReporter(const StatusReporter&) = delete;
  StatusReporter& operator=(const StatusReporter&) = delete;
  ~StatusReporter();

  // What is for the workers goes to those of all nodes: who has started this drun passes it on.
  void all_nodes_get_signals() { all_get_signals_ = true; }
  // A message of drun's own, unless a neighbour has said it already.
  void say(std::string text);
  // A line of the log, in whose way no waiting line is.
  void inform(const std::string& text);
  void warn(const std::string& text);
  // A state change: worth a line if several machines are involved, noise if one runs a program.
  void state(const std::string& text) const;
  // The leader's decision to stop and what follows from it on its own node are one thing to the
  // user: the same reason is said once a round.
  void stopping(const std::string& reason);
  void workers_start();

  // What the agent waits for before its workers start.
  void waiting(std::string text, Time now, bool spare = false);
  // What was said last, unless the workers have started since.
  [[nodiscard]] const std::string& waits_for() const { return waiting_; }
  [[nodiscard]] bool spare() const { return spare_; }
  // At a time limit, which may have been noticed by another node first: the state of each rank, or
  // what is waited for. Once.
  void at_limit(const std::vector<RankState>& states);
  // What at_limit() was told; empty: no limit was reached.
  [[nodiscard]] const std::vector<std::string>& states_at_limit() const { return states_; }
  // What became of a signal that is for the workers, if that is news; `nobody`: no worker of this
  // node runs.
  void forwarded(int signal, bool nobody);
  // Reports what a stop could not end, if anything; the same text only once.
  void left_behind(const std::string& what);

  [[nodiscard]] StatusLine& line() { return line_; }

 private:
  void write(std::string_view text);

  const StatusScreen screen_;
  SharedLogDedup* const neighbours_;
  const bool single_node_;
  bool all_get_signals_ = false;
  StatusLine line_;
  std::string waiting_;
  bool spare_ = false;
  std::string last_stop_;  // the last reason given for the end of this round
  std::string left_behind_;
  bool states_told_ = false;
  std::vector<std::string> states_;
  ForwardedSignals forwarded_;
};

}  // namespace drun::launcher
