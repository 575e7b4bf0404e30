// An agent's parts, wired as the agent wires them, around workers and a screen that are faked. The
// backend is the real one: a job of one node keeps it in this process, without a socket.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>

#include "drun/base/log.hpp"
#include "launcher/agent/participant_driver.hpp"
#include "launcher/backend/backend_link.hpp"
#include "launcher/leaving/agent_shutdown.hpp"
#include "launcher/telling/event_reporter.hpp"
#include "launcher/telling/status_reporter.hpp"
#include "launcher/workers/worker_supervisor.hpp"
#include "support/fake_workers.hpp"
#include "support/output_rig.hpp"
#include "support/patience.hpp"

namespace drun::launcher::test {

// A job of one node with one worker, which nobody else can take part in.
inline Options lone_job() {
  Options options;
  options.run_id = "own";
  options.command = {"/bin/sh", "-c", "true"};
  options.worker_store = WorkerStore::Rank0;
  options.master_port = 1;  // as said; nothing is bound
  return options;
}

class AgentParts {
 public:
  using Clock = std::chrono::steady_clock;

  explicit AgentParts(Options chosen = lone_job()) : options(std::move(chosen)) {}
  AgentParts(const AgentParts&) = delete;
  AgentParts& operator=(const AgentParts&) = delete;
  ~AgentParts() {
    workers.close();
    backend.leave(false);
    backend.release();
    io.restart();
    io.poll();
  }

  // Runs the loop until the condition holds (true), nothing is left to do or patience is over.
  [[nodiscard]] bool until(const std::function<bool()>& condition) {
    const auto deadline = Clock::now() + drun::test::kPatience;
    io.restart();
    while (!condition())
      if (io.run_one_until(deadline) == 0) return false;
    return true;
  }
  // What is ready by now.
  void turn() {
    io.restart();
    io.poll();
  }

  asio::io_context io{1};
  Options options;
  std::vector<std::string> lines;  // what the user reads
  FakeRunner runner;
  FakeOutput worker_output;
  FakeFiles worker_files;
  StatusReporter status{{false, [this](std::string text) { lines.push_back(std::move(text)); },
                         [](const std::string&) {}, [] { return std::size_t{0}; }},
                        nullptr,
                        options.max_nodes == 1};
  EventReporter events{io, options, "node7"};
  std::function<void(WorkerNews, Clock::time_point)> on_news = [](WorkerNews, auto) {};
  std::function<void()> on_batch = [] {};
  std::function<void(const rendezvous::KeyValueEvent&)> on_event = [](const auto&) {};
  std::function<void()> on_waiting = [] {};  // for the store
  std::function<void()> on_joined = [] {};
  NodeIdentity node;
  bool joined = false;
  WorkerSupervisor workers{io,
                           options,
                           "node7",
                           runner,
                           worker_output,
                           worker_files,
                           {[this](WorkerNews news, auto now) { on_news(std::move(news), now); },
                            [this] { on_batch(); }, [] {}}};
  BackendLink backend{io, options, "node7", backend_calls()};

 private:
  BackendLink::Calls backend_calls() {
    BackendLink::Calls calls;
    calls.waiting = [this](const std::string&) { on_waiting(); };
    calls.joined = [this](const NodeIdentity& identity) {
      node = identity;
      joined = true;
      on_joined();
    };
    calls.dispensable = [](bool) { return false; };
    calls.dropped = [] {};
    calls.gave_up = [](const rendezvous::Outcome&) {};
    calls.session = [](const auto&) {};
    calls.event = [this](const rendezvous::KeyValueEvent& event) { on_event(event); };
    return calls;
  }
};

}  // namespace drun::launcher::test
