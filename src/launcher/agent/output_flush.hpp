// The last thing that an agent waits for: whoever reads its output (docs/output.md, "At the end").
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "launcher/output/output.hpp"

namespace drun::launcher {

// In the thread that runs `io`, which uses `output` too; both outlive it.
class OutputFlush {
 public:
  OutputFlush(asio::io_context& io, Output& output) : output_(output), timer_(io) {}
  OutputFlush(const OutputFlush&) = delete;
  OutputFlush& operator=(const OutputFlush&) = delete;

  // All workers are gone. Calls `over`, which may be now, when everything is written or the reader
  // is given up, which is said; the Output's destructor waits for nobody then. Arguments as of
  // FlushPolicy; `over` is told whether output was lost.
  void start(int exit_code, bool told_to_stop, std::function<void(bool lost)> over);
  [[nodiscard]] bool started() const { return policy_.has_value(); }
  // Gives the reader up ("received SIGINT"), where it has not everything by now.
  void give_up(const std::string& why);

 private:
  void look();
  void end(bool lost);

  Output& output_;
  asio::steady_timer timer_;
  std::optional<FlushPolicy> policy_;
  std::function<void(bool)> over_;
};

}  // namespace drun::launcher
