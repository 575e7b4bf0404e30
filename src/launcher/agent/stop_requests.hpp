// The signals that asked drun to stop, and how urgently. Pure: time comes in as an argument.
#pragma once

#include <chrono>

namespace drun::launcher {

class StopRequests {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // What is one request comes as two signals in a row from some: timeout(1) sends to drun and then
  // to its group, a shell passes on the hang-up that the kernel has told drun of.
  static constexpr std::chrono::milliseconds kSameRequest{500};

  // False where `signal` only repeats the first: the same one within kSameRequest. Those that are
  // keys (Ctrl-C, Ctrl-\) always count: who presses them twice means it.
  bool count(int signal, Time now);
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool any() const { return number_ > 0; }
  // The signal of the latest one; 0: there is none.
  [[nodiscard]] int last() const { return last_; }

 private:
  int number_ = 0;
  int first_ = 0;
  int last_ = 0;
  Time first_at_;
};

}  // namespace drun::launcher
