// How a job is left, from the first request to stop to the exit code: the job is asked to end, what
// its workers left behind is swept, the outcome is told, the store gets its goodbye (or is served
// until no other job needs it), the output is flushed. Pure: events go in, steps come out.
// docs/architecture.md shows the states ("Life of an agent").
#pragma once

#include <vector>

#include "launcher/signals/stop_requests.hpp"

namespace drun::launcher {

// The most that this agent still owes the others when nothing of the workers is left.
enum class Owed {
  None,        // nobody knows this agent, the store is lost, or somebody is in a hurry
  Goodbye,     // the session at the store is closed
  ServeOthers  // this process carries the store, which other jobs may need: then as None
};

class ShutdownFsm {
 public:
  enum class Phase {
    Running,        // the job has no outcome yet
    Abandoned,      // the same, but when its workers are given up nothing else is waited for
    Unguarded,      // the same, but the guardian was lost, and all workers with it
    Sweeping,       // it has an outcome; processes of the workers may still be there
    Reporting,      // nothing of the workers is left; how it ended is told, also in files
    ServingOthers,  // nothing of the job is left but the store, which other jobs may use
    Goodbye,        // the store is asked to close the session
    Flushing,       // the reader of the output has not taken everything yet
    Gone
  };

  // What to do now. If an event is named, it follows.
  enum class Step {
    StopJob,        // end the job with signal(); on_outcome()
    KillWorkers,    // at once
    GiveUpWorkers,  // wait for no process that hangs; on_guardian_lost(), unless it is over before
    Sweep,          // end what is left of the workers, with the usual grace; on_swept()
    Report,         // tell the user how it ended; on_reported()
    GiveUpReport,   // wait for no file of it that hangs
    ServeOthers,    // serve on while other jobs need the store; on_store_unneeded()
    SayGoodbye,     // on_link_closed()
    Leave,          // drop the store and flush the output; on_flushed()
    GiveUpReader,
    End  // nothing is waited for any more
  };
  using Steps = std::vector<Step>;

  // How the job ended, for this agent. Only the first outcome counts.
  [[nodiscard]] Steps on_outcome(int exit_code, Owed most);
  // No process of the workers is left.
  [[nodiscard]] Steps on_swept();
  // The guardian ended, and everything that it started with it.
  [[nodiscard]] Steps on_guardian_lost();
  // Everybody knows how it ended, or cannot be told.
  [[nodiscard]] Steps on_reported();
  // The link to the store: given up for good, or closed after the goodbye.
  [[nodiscard]] Steps on_link_failed();
  [[nodiscard]] Steps on_link_closed();
  // No other job uses the store, and none can come any more.
  [[nodiscard]] Steps on_store_unneeded();
  // drun was told to stop.
  [[nodiscard]] Steps on_stop(StopLevel level, int signal);
  // Everything is written, or with `reader_lost` a reader did not take it in time.
  [[nodiscard]] Steps on_flushed(bool reader_lost);
  // Output could not be written: no success.
  void on_output_lost();

  [[nodiscard]] Phase phase() const { return phase_; }
  // The outcome is known; whatever the job still does changes nothing.
  [[nodiscard]] bool leaving() const { return phase_ >= Phase::Sweeping; }
  // Of the latest request to stop; 0: there was none.
  [[nodiscard]] int signal() const { return signal_; }
  // drun's own, as far as it is known.
  [[nodiscard]] int exit_code() const { return exit_code_; }

 private:
  [[nodiscard]] Steps report();
  [[nodiscard]] Steps stop_running(StopLevel level);
  [[nodiscard]] Steps stop_leaving(StopLevel level);
  [[nodiscard]] Step take_leave();
  [[nodiscard]] Step leave();
  void owe_at_most(Owed most);
  void cut_short();

  Phase phase_ = Phase::Running;
  Owed owed_ = Owed::ServeOthers;
  int signal_ = 0;
  int exit_code_ = 0;
};

}  // namespace drun::launcher
