// The drun that starts the agents of other hosts, while they run: tells them signals, shows their
// output, hears of their ends, and ends as they do.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "launcher/hosts/edge_wire.hpp"
#include "launcher/hosts/failed_hosts.hpp"
#include "launcher/hosts/host_roll.hpp"
#include "launcher/hosts/start_plan.hpp"
#include "launcher/leaving/parent_shutdown.hpp"
#include "launcher/options/options.hpp"
#include "launcher/output/output_relay.hpp"
#include "launcher/signals/agent_signals.hpp"
#include "launcher/starter/host_outputs.hpp"
#include "launcher/starter/limbs.hpp"
#include "launcher/views/key_door.hpp"
#include "secure/token.hpp"

namespace drun::launcher {

class Starter {
 public:
  // The arguments must outlive this. `relay` has not been started.
  Starter(const Options& options, OutputRelay& relay);
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  // Returns drun's exit code, when nothing of the job is left and its output is written.
  int run();
  // Why no agent was told to begin, once run() is over; "": they were.
  [[nodiscard]] const std::string& nothing_started() const { return nothing_started_; }

 private:
  // What is known of one host.
  struct Remote {
    Remote(asio::io_context& io, std::string of) : name(std::move(of)), retry(io) {}
    std::string name;
    std::optional<hosts::Hello> hello;
    std::string failure;  // the last, as the user was told
    asio::steady_timer retry;
    std::chrono::seconds pause{0};  // before the latest try
  };

  void start();
  void make_token();
  [[nodiscard]] bool is_token_needed() const;
  void drop_token_that_one_cannot_use();
  void on_frame(const hosts::Frame& frame);
  void on_hello(std::size_t host, const std::string& payload);
  void fail(std::size_t host, const std::string& why);
  void say_failures_soon();
  void say_failures();
  void take(hosts::HostRoll::Step step);
  void begin();
  void order(std::size_t host);
  void try_again_later(std::size_t host);
  void await_answers();
  void give_up();
  void hurry(std::chrono::seconds after);
  void stop_agents(int signal);
  void tell_agent(std::size_t host, int signal);
  void show_stacks(int signal);
  void look_whether_over();

  void on_signal(int signal);
  void on_stop(int signal);
  void cancel_timers();

  const Options& options_;
  const hosts::StartPlan& plan_;
  OutputRelay& relay_;
  asio::io_context io_{1};
  CaughtSignals signals_;
  asio::steady_timer answer_limit_;
  asio::steady_timer hurry_limit_;
  asio::steady_timer fold_limit_;
  hosts::HostRoll roll_;
  hosts::FailedHosts failed_;  // of whom the user has not been told yet
  hosts::Meeting meeting_;
  ParentShutdown shutdown_;
  std::vector<std::unique_ptr<Remote>> remotes_;
  std::optional<secure::Token> token_;  // of the job, for all hosts
  KeyDoor key_door_;                    // if it was made here
  Limbs limbs_;
  HostOutputs outputs_;
  std::string nothing_started_ = "stopped before the hosts had answered";
};

}  // namespace drun::launcher
