// Looks at the workers before they are stopped: their stacks are shown, and the stop waits for
// that, for a while.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "drun/base/result.hpp"
#include "launcher/job_stacks/stack_desk.hpp"
#include "launcher/options/options.hpp"
#include "launcher/workers/before_stop.hpp"
#include "launcher/workers/worker_group.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class LastLook final : public BeforeStop {
 public:
  // The references must outlive this. `take_own` and `take_all` take the stacks of this node, as
  // StackDesk does, and of the nodes of the job, as JobStacks. `show` gets, on the first node of a
  // round, the report of the job or why there is none, and calls `shown` when it has said so.
  // `group` may be called from the first look on.
  struct Parts {
    asio::io_context& io;
    const StopPolicy& policy;
    std::function<void(const StackWish& wish, StackDesk::Done done)> take_own;
    std::function<void(const StackWish& wish, int nodes, StackDesk::Done done)> take_all;
    std::function<const WorkerGroup&()> group;
    std::function<void(const Result<std::string>& report, std::function<void()> shown)> show;
    std::function<void()> resumed;  // after a stop that was held goes on
  };
  explicit LastLook(Parts parts);

  // After a failure on this node.
  [[nodiscard]] std::optional<Time> begin(bool hangs, Time now,
                                          std::function<void()> over) override;
  // The round's workers are to be stopped. True: `go_on` is called later, unless another stop
  // overtakes this one.
  [[nodiscard]] bool hold(const rendezvous::StopAction& action, std::function<void()> go_on);
  void cancel();

 private:
  [[nodiscard]] bool wanted(const rendezvous::StopAction& action) const;
  [[nodiscard]] bool look();
  void take(int round, const Result<std::string>& report);
  void on_limit();
  void end();

  const Parts parts_;
  DeadlineTimer limit_;
  int round_ = 0;  // which was looked at last
  bool looking_ = false;
  bool begins_ = false;         // inside of look()
  bool shows_ = false;          // what is found, or that nothing was
  std::function<void()> own_;   // the group's own stop
  std::function<void()> held_;  // that of the rendezvous
};

}  // namespace drun::launcher
