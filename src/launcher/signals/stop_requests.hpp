// The signals that asked drun to stop, and how urgently. Pure: time comes in as an argument.
#pragma once

#include <chrono>
#include <optional>

namespace drun::launcher {

// What the latest request asks for: each level asks for more than the one before.
enum class StopLevel {
  Ask,      // end the job, and give the workers their grace
  Kill,     // kill the workers
  Abandon,  // say no goodbye to anybody either
  Force     // an agent that was asked three times hangs: --local-nodes kills it
};

class StopRequests {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Some senders deliver one request as two signals: timeout(1) signals drun and then its group, a
  // shell passes on the hang-up that the kernel has already told drun of.
  static constexpr std::chrono::milliseconds kSameRequest{500};

  // The new level; nullopt if `signal` only repeats the first: the same one within kSameRequest.
  // Keys (Ctrl-C, Ctrl-\) always count, because a user who presses them twice means it. But Force
  // does not come within kSameRequest of the same signal: it takes time to do what was asked.
  std::optional<StopLevel> count(int signal, Time now);
  [[nodiscard]] bool any() const { return level_.has_value(); }

 private:
  [[nodiscard]] bool repeats(int signal, Time now) const;

  struct Request {
    int signal = 0;
    Time at;
  };
  std::optional<StopLevel> level_;  // nullopt: there was no request
  Request first_;
  Request last_;
};

}  // namespace drun::launcher
