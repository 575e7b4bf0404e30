// Notices a program that starts ranks of its own, as with torch.multiprocessing.spawn, while nobody
// comes to the workers' store. PyTorch takes that store for granted under drun, so that ranks with
// a MASTER_PORT of their own are all clients there, nobody serves, and they wait without a word.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace drun::launcher {

class OwnRanks {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // Starts to look; what it returns becomes true if such processes are there. Must not block.
  using Look = std::function<std::shared_ptr<std::atomic<bool>>()>;

  static constexpr std::chrono::seconds kInterval{10};  // from look to look, and to what it found
  static constexpr int kLooks = 6;

  explicit OwnRanks(Look look);

  // The workers run, and nobody has come to their store.
  void begin(Time now);
  // They are gone.
  void end() { next_.reset(); }
  // `awaited`: nobody has come to the workers' store yet. True once: the user should know.
  [[nodiscard]] bool on_time(Time now, bool awaited);
  [[nodiscard]] std::optional<Time> next_deadline() const { return next_; }

 private:
  const Look look_;
  std::optional<Time> next_;
  std::shared_ptr<std::atomic<bool>> found_;  // null: not looked yet
  int looks_ = 0;
};

// In a thread of its own, because /proc may hang with a process: a look at this process's
// descendants.
[[nodiscard]] std::shared_ptr<std::atomic<bool>> look_for_own_ranks();

// A command line as in /proc: of a process that Python's multiprocessing has spawned.
[[nodiscard]] bool is_spawned_by_python(std::string_view command_line);

}  // namespace drun::launcher
