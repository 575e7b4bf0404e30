// The thread that an OutputLoop runs in, and how it ends: it may be stuck in a write that never
// returns.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "launcher/output/flush_policy.hpp"
#include "launcher/output/output_loop.hpp"

namespace drun::launcher {

// drun's own words, as they are.
[[nodiscard]] std::unique_ptr<OutputCommand> message_command(std::string text);

// One thread uses it: the one that made it.
class OutputThread {
 public:
  explicit OutputThread(const OutputLoopOptions& options);
  OutputThread(const OutputThread&) = delete;
  OutputThread& operator=(const OutputThread&) = delete;
  ~OutputThread();  // stop() with no streams and kReaderPatience, if it was not called

  // Streams may be made and watched before; nothing is read until now.
  void start();
  [[nodiscard]] OutputLoop& loop() { return *loop_; }

  // Returns at once; the loop executes commands in order.
  void post(std::unique_ptr<OutputCommand> command);
  // The same, and waits for the answer; null when there is none within `limit`.
  std::unique_ptr<OutputAnswer> ask(std::unique_ptr<OutputCommand> command,
                                    std::chrono::milliseconds limit);
  // drun's terminal has a new size: those of `streams` have it too when this returns.
  void resize(const std::vector<std::unique_ptr<Stream>>& streams);
  [[nodiscard]] bool lost_output() const { return loop_ != nullptr && loop_->lost_output(); }
  [[nodiscard]] std::string lost_logs() const { return loop_ ? loop_->lost_logs() : ""; }

  // Reads what is left of `streams`, writes everything, forgets the streams. False if that is not
  // done within `limit`; it goes on in the background.
  bool drain(std::vector<std::unique_ptr<Stream>> streams, std::chrono::milliseconds limit);
  // How far the last drain has come.
  [[nodiscard]] FlushProgress flush_progress() const;

  // Reads what is left of `streams`, writes everything, ends the thread. Gives up on a reader that
  // takes nothing for `patience`. Afterwards only lost_output() and the destructor may be called.
  void stop(std::vector<std::unique_ptr<Stream>> streams, std::chrono::milliseconds patience);

 private:
  std::unique_ptr<OutputAnswer> wait_answer(std::uint64_t id, std::chrono::milliseconds limit);

  std::unique_ptr<OutputLoop> loop_;
  std::thread thread_;
  std::uint64_t last_id_ = 0;
  std::uint64_t last_drain_ = 0;  // its id
};

}  // namespace drun::launcher
