// Where the workers are: of this node, for any request; of the whole job, for the user and before
// its workers are stopped.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>

#include "drun/base/result.hpp"
#include "launcher/job_stacks/job_stacks.hpp"
#include "launcher/job_stacks/last_look.hpp"
#include "launcher/job_stacks/stack_desk.hpp"
#include "launcher/look/take_stacks.hpp"
#include "launcher/options/options.hpp"
#include "launcher/output/output.hpp"
#include "launcher/telling/status_reporter.hpp"
#include "launcher/workers/hung_ranks.hpp"
#include "launcher/workers/worker_group.hpp"
#include "rendezvous/key_value.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class AgentStacks {
 public:
  // All of it must outlive this. `group` may be called from the loop.
  struct Parts {
    asio::io_context& io;
    const Options& options;
    const std::string& host_name;
    Output& output;
    const WorkerOutput& worker_output;
    StatusReporter& status;
    std::function<const WorkerGroup&()> group;
    std::function<void()> resumed;        // as LastLook's
    std::function<void(bool held)> held;  // as StackDesk's
    StackDesk::Look look = take_stacks;
  };
  explicit AgentStacks(Parts parts);

  [[nodiscard]] BeforeStop& before_stop() { return last_look_; }
  // As LastLook's.
  [[nodiscard]] bool hold(const rendezvous::StopAction& action, std::function<void()> go_on) {
    return last_look_.hold(action, std::move(go_on));
  }

  // As JobStacks'.
  void use_store(rendezvous::KeyValue& store) { job_.use_store(store); }
  void listen() { job_.listen(); }
  void forget_store() { job_.forget_store(); }
  [[nodiscard]] bool on_event(const rendezvous::KeyValueEvent& event) {
    return job_.on_event(event);
  }

  enum class Whose { OfJob, OfNode };
  // As lines of drun's own log.
  void show(Whose whose = Whose::OfJob);
  // Of this node or of all, as JSON: `say` is called once, at once or from the loop.
  void answer(bool whole_job, bool unwind, const std::function<void(const std::string& text)>& say);
  // Of all nodes, as `drunctl stacks` shows them: `done` is called once, at once or from the loop.
  void tell(std::function<void(const Result<std::string>& text)> done);
  // Adds to workers of this node that hang where they are, and then calls `done`, at once or from
  // the loop. They are about to be stopped: what was found is kept for the look before that.
  void add_frames(std::vector<WaitingRank> waiting,
                  std::function<void(const std::vector<WaitingRank>&)> done);
  // The longest that takes, unless the machine is very busy.
  [[nodiscard]] std::chrono::milliseconds frames_limit() const;
  // What was shown, in files as text; each has one beside it as JSON.
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  // Nobody is told anything any more.
  void cancel();

 private:
  [[nodiscard]] int nodes_of_round() const;
  void show(const Result<std::string>& report, std::function<void()> shown);

  const Parts parts_;
  StackDesk desk_;
  JobStacks job_;
  LastLook last_look_;
  int shown_ = 0;
  std::vector<std::string> files_;
};

}  // namespace drun::launcher
