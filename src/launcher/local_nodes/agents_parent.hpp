// The parent of the agents of --local-nodes, or of replica groups, while they run: passes signals
// on to them, hears of their ends, and ends as they do: by the same machine, with the same rules
// for requests to stop and for the reader of the output.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "launcher/leaving/parent_shutdown.hpp"
#include "launcher/local_nodes/child_ends.hpp"
#include "launcher/options/options.hpp"
#include "launcher/output/output_relay.hpp"
#include "launcher/process/exit_status.hpp"
#include "launcher/signals/agent_signals.hpp"
#include "launcher/telling/shared_array.hpp"
#include "launcher/telling/shared_stop_reason.hpp"

namespace drun::launcher {

// What this process blocks until run(): the agents' ends, and what it passes on to them.
[[nodiscard]] std::vector<int> signals_of_parent(const Options& options);
void block_signals(const std::vector<int>& signals);

// What a process that `parent` has forked does: it dies with it, has these streams, the descriptor
// that its --events names and no other, and ends with what `run` gives, or with kDrunFailed and a
// line for its exception.
[[noreturn]] void live_as_child(const Options& options, const WorkerStreams& streams, pid_t parent,
                                const std::function<int()>& run);

class AgentsParent {
 public:
  // One flag per agent: it left, and the others cannot know.
  using Unannounced = SharedArray<std::atomic<bool>>;

  // The arguments must outlive this. `agents`: their processes, in the order of the nodes, of one
  // job unless `ends` says otherwise. `why_stopped`: where they look for the reason when they are
  // stopped for a lost one; null: they do not. `adopts_orphans`: what a killed agent leaves behind
  // becomes a child of this process, which has no others.
  AgentsParent(const Options& options, std::vector<pid_t> agents, Unannounced& unannounced,
               OutputRelay& relay, bool adopts_orphans, std::unique_ptr<ChildEnds> ends = nullptr,
               SharedStopReason* why_stopped = nullptr);

  // Waits for all of them, then for the reader of their output; gives drun's exit code. The log
  // goes through the relay meanwhile, which is finished afterwards.
  int run();

 private:
  void on_signal(int signal);
  void on_stop(int signal);
  void kill_agents(int signal);
  void signal_all(int signal) const;
  void show_stacks(int signal) const;
  void stop(pid_t agent) const;
  void suspend_all(int signal);
  void wait_until_suspended() const;
  void collect();
  void on_end(std::size_t node, const process::ExitStatus& status);
  void sweep();

  const Options& options_;
  std::vector<pid_t> agents_;  // -1: it has ended
  Unannounced& unannounced_;
  SharedStopReason* const why_stopped_;
  OutputRelay& relay_;
  const bool adopts_orphans_;
  bool agent_killed_ = false;  // one of them ended by a signal
  asio::io_context io_{1};
  CaughtSignals signals_;
  asio::steady_timer sweep_limit_;
  std::unique_ptr<ChildEnds> ends_;
  ParentShutdown shutdown_;
};

}  // namespace drun::launcher
