// How long drun stays at the end of a job for a reader that has not taken yet what the workers
// printed. Pure: time comes in as an argument.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace drun::launcher {

// How long the end of the output waits for a reader that takes nothing at all, if nobody has waited
// for it before.
constexpr std::chrono::milliseconds kReaderPatience{1000};

// How much of the output is written.
struct FlushProgress {
  bool all = true;  // is written, or has no reader any more; else:
  bool waits_for_output = false;
  bool waits_for_error = false;
  // Of standard output and of standard error: changes whenever its reader takes something.
  std::array<std::uint64_t, 2> taken{};
};

// Messages: that drun waits, and why it has stopped waiting ("received SIGINT").
[[nodiscard]] std::string waiting_for_reader(const FlushProgress& progress);
[[nodiscard]] std::string lost_at_reader(const FlushProgress& progress, const std::string& why);

class FlushPolicy {
 public:
  using Time = std::chrono::steady_clock::time_point;

  enum class Step {
    Done,
    Wait,
    Tell,  // wait, and say that we do; once
    GiveUp,
  };

  // How often to look.
  static constexpr std::chrono::milliseconds kInterval{50};
  // A reader that takes nothing for this long is named.
  static constexpr std::chrono::milliseconds kTellAfter{5'000};

  // `exit_code` is the job's; `told_to_stop`: by a signal.
  FlushPolicy(int exit_code, bool told_to_stop, Time now);

  [[nodiscard]] Step look(const FlushProgress& progress, Time now);

  // For GiveUp: how long nothing was taken.
  [[nodiscard]] std::string reason() const;

 private:
  // How long to wait for a reader that takes nothing. Nullopt: until it takes something or leaves,
  // as any program waits in a pipeline.
  std::optional<std::chrono::seconds> patience_;
  std::array<std::uint64_t, 2> taken_{};
  Time last_look_;
  // How long nothing was taken. Counts at most a few intervals for each look, so that a suspended
  // machine is not mistaken for a stalled reader.
  Time::duration silent_{};
  bool told_ = false;
};

}  // namespace drun::launcher
