// The last thing that drun waits for: the reader of its output (docs/output.md, "At the end").
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "launcher/output/flush_policy.hpp"

namespace drun::launcher {

// What is flushed.
struct FlushTarget {
  std::function<void(std::chrono::milliseconds limit)> drain;  // begins; waits no longer than that
  std::function<FlushProgress()> progress;
  std::function<void()> give_up;  // nobody waits for a reader any more
};

// Works in the thread that runs `io`; that thread uses the target, too.
class OutputFlush {
 public:
  OutputFlush(asio::io_context& io, FlushTarget target) : target_(std::move(target)), timer_(io) {}
  OutputFlush(const OutputFlush&) = delete;
  OutputFlush& operator=(const OutputFlush&) = delete;

  // All workers are gone. Calls `over`, perhaps at once, when everything is written or the reader
  // is given up; giving up is reported to the user. Arguments as of FlushPolicy; `over` is told
  // whether output was lost. Only the first call counts.
  void start(int exit_code, bool told_to_stop, std::function<void(bool lost)> over);
  // Gives the reader up ("received SIGINT") if it has not everything by now.
  void give_up(const std::string& why);

 private:
  void look();
  void end(bool lost);

  const FlushTarget target_;
  asio::steady_timer timer_;
  std::optional<FlushPolicy> policy_;
  std::function<void(bool)> over_;
};

}  // namespace drun::launcher
