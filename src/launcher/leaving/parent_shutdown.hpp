// How the parent of a job's agents ends, be they on this machine or on other hosts: as an agent
// does, by the same rules, but it has no workers and no store of its own. One thread: the loop's.
#pragma once

#include <functional>
#include <optional>

#include <asio/io_context.hpp>

#include "launcher/leaving/output_flush.hpp"
#include "launcher/leaving/shutdown_fsm.hpp"
#include "launcher/signals/stop_requests.hpp"

namespace drun::launcher {

class ParentShutdown {
 public:
  struct Calls {
    std::function<void()> sweep;  // ends what the agents left behind; on_swept() follows
    std::function<void()> leave;  // only the reader of the output is still waited for
    std::function<void()> gone;   // nothing is waited for any more: end
  };

  ParentShutdown(asio::io_context& io, FlushTarget output, Calls calls);

  // What the request asks for; nullopt if it only repeats one.
  std::optional<StopLevel> on_stop_signal(int signal);
  // All agents have ended; only the first call counts.
  void on_outcome(int exit_code);
  void on_swept();
  // Output could not be written: no success.
  void on_output_lost() { fsm_.on_output_lost(); }

  [[nodiscard]] bool asked_to_stop() const { return requests_.any(); }
  // Of the latest request to stop; 0: there was none.
  [[nodiscard]] int signal() const { return fsm_.signal(); }
  [[nodiscard]] int exit_code() const { return fsm_.exit_code(); }

 private:
  void perform(const ShutdownFsm::Steps& steps);
  void perform(ShutdownFsm::Step step);

  const Calls calls_;
  StopRequests requests_;
  ShutdownFsm fsm_;
  OutputFlush flush_;
};

}  // namespace drun::launcher
