// When to look for what the workers of a round leave behind, when to remove it, and what the next
// round waits for. Pure: events and times go in, steps come out.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <vector>

namespace drun::launcher {

class LeftoversFsm {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Between two looks of a round: more and more, since most files are made at its start, as by
  // workers that then fail at once, and a look at many processes has its price.
  static constexpr std::chrono::milliseconds kFirstPause{100};
  static constexpr std::chrono::seconds kLongestPause{60};
  // For so long the next round waits for a sweep, and for GPUs that still list processes of the
  // last one: the driver's limit, and what it takes to start a helper and to wake a driver.
  static constexpr std::chrono::seconds kSweepLimit{1};
  static constexpr std::chrono::seconds kGpuLimit{10};
  static constexpr std::chrono::seconds kHelperMargin{5};
  // After its start. A round that ends before had no time to use GPUs.
  static constexpr std::chrono::seconds kGpuQuestion{2};

  // The files of the workers in /dev/shm.
  enum class Files {
    Ignored,  // the user wants to keep them all, or work on them has hung: nobody looks any more
    Unnoted,  // what was there before the first worker is not known
    Noting,
    Noted
  };
  // What a thread is asked to do about them.
  enum class Work {
    None,
    Looking,
    LookingFirst,  // and then sweeping
    Sweeping
  };
  // Whether their driver lists processes.
  enum class Gpus {
    Unknown,
    Asked,
    Useless,  // it does not, or there is no second round
    Useful,   // it does
    Awaited   // to list none of the last round any more
  };

  // What to do now. If an event is named, it follows.
  enum class Step {
    NoteFiles,     // that are there; on_noted()
    Look,          // on_looked()
    Sweep,         // after that look, if one is under way; on_swept()
    AskAboutGpus,  // on_gpus_known()
    AwaitGpus,     // which list take_gone(); on_gpus_awaited()
    GoOn           // the round that waits need not wait any longer
  };
  using Steps = std::vector<Step>;

  // `keeps_files`: nobody looks at files. `restarts`: there may be a second round.
  LeftoversFsm(bool keeps_files, bool restarts)
      : files_(keeps_files ? Files::Ignored : Files::Unnoted),
        gpus_(restarts ? Gpus::Unknown : Gpus::Useless) {}

  // A round is about to begin; held_until() says whether it waits.
  [[nodiscard]] Steps on_round();
  // Its workers run.
  void on_started(Time now);
  // They are about to be killed: this is the last moment at which they can be asked.
  [[nodiscard]] Steps on_doomed();
  // None is left. `ended_well`: each with 0. Then their libraries had the time to remove what is
  // theirs, and what is left may be meant for somebody.
  [[nodiscard]] Steps on_gone(const std::vector<pid_t>& workers, bool ended_well);
  // At or after next_look().
  [[nodiscard]] Steps on_time(Time now);

  struct Seen {
    std::size_t known = 0;  // files that are the workers'
    std::vector<pid_t> processes;
  };
  // Answers; false, or nullopt: there was none in time.
  void on_noted(bool in_time);
  void on_looked(const std::optional<Seen>& seen, Time now);
  [[nodiscard]] Steps on_swept(bool in_time);
  // `tells`: it lists processes, or still does.
  void on_gpus_known(bool tells);
  [[nodiscard]] Steps on_gpus_awaited(bool tells);

  // When the round that is about to begin starts at the latest; nullopt: it has nothing to wait
  // for.
  [[nodiscard]] std::optional<Time> held_until(Time now) const;
  [[nodiscard]] std::optional<Time> next_look() const { return next_look_; }
  // A look is to find the processes, too.
  [[nodiscard]] bool wants_processes() const {
    return gpus_ == Gpus::Useful || gpus_ == Gpus::Awaited;
  }
  // Processes of the last round.
  [[nodiscard]] std::vector<pid_t> take_gone();
  // A sweep will soon be over, and nothing else is waited for.
  [[nodiscard]] bool sweep_ends_soon() const { return sweeping() && gpus_ != Gpus::Awaited; }

  [[nodiscard]] Files files() const { return files_; }
  [[nodiscard]] Work work() const { return work_; }
  [[nodiscard]] Gpus gpus() const { return gpus_; }

 private:
  [[nodiscard]] bool sweeping() const {
    return work_ == Work::Sweeping || work_ == Work::LookingFirst;
  }
  [[nodiscard]] Steps look();
  [[nodiscard]] Steps sweep();
  [[nodiscard]] Steps go_on() const;
  void look_later(Time now);

  Files files_;
  Work work_ = Work::None;
  Gpus gpus_;
  std::size_t known_ = 0;
  bool running_ = false;
  std::chrono::milliseconds pause_ = kFirstPause;
  Time started_{};
  std::optional<Time> next_look_;
  std::set<pid_t> gone_;
};

}  // namespace drun::launcher
