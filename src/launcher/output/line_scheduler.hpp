// Who writes next to a console that several streams share. Keeps lines of different streams apart:
// a stream that has shown the beginning of a line goes on first; another one waits for the end of
// that line, for a while. Pure: learns what there is to write and what time it is, never sees a
// byte.
//
// What a stream may do depends on the last line of the console (LineState) and on its owner:
//
//   last line                       its owner   another stream
//   ended                           -           at once
//   open                            at once     after `quiet` or `patience`, on a new line
//   open, has a carriage return     at once     whole lines: at once, on a new line;
//                                               another bar: at once, over it
//   open, at the start of the line  at once     at once, over it
//   open, too long to be text       at once     after `quiet` or `patience`, on the same line
//   open, its owner has ended       -           at once, on a new line
//
// An unfinished line that has shown nothing yet waits for `hold` or `full_buffer` on top of that.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace drun::launcher {

// The last line of a console, or of what one stream has for it.
struct LineState {
  bool open = false;           // it has no end yet
  bool at_line_start = false;  // but ends with a carriage return: anything may be written over it
  bool has_return = false;     // it holds a carriage return: a progress bar
  bool too_long = false;       // no text: nothing is ever put between its pieces
};

class LineScheduler {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Milliseconds = std::chrono::milliseconds;

  struct Delays {
    // An unfinished line is shown this long after it came, unless it is a progress bar or only one
    // rank prints here. Nearly all lines that arrive in pieces are complete by then, so no line of
    // another rank has to be cut.
    Milliseconds hold{1000};
    // The same for a stream that stopped in a line exactly where its stdio buffer was full.
    Milliseconds full_buffer{1000};
    // Others may cut into a line that was shown unfinished when its stream has been silent for
    // `quiet`, or when they have waited for `patience`.
    Milliseconds quiet{50};
    Milliseconds patience{200};
  };
  // `hold` if somebody may be watching: a prompt appears before a person grows impatient.
  static constexpr Milliseconds kTerminalHold{100};

  static constexpr int kNobody = -1;

  // One stream's place at the console. Owned by the stream; outlives its membership.
  struct Slot {
    int rank = kNobody;               // whose stream it is
    bool has_lines = false;           // whole lines are waiting
    bool has_partial = false;         // an unfinished line may be shown from `due` on
    bool begins_with_return = false;  // what is waiting does
    bool ended = false;               // no more will come
    bool full = false;                // no more of its line comes before the beginning is shown
    bool was_cut = false;  // another cut into its shown line: what follows begins a new one
    Time since{};          // when it began to wait
    Time due{};            // when its unfinished line may be shown
  };

  // Permission to write all that `slot` has now.
  struct Turn {
    Slot* slot = nullptr;
    bool newline_first = false;  // ends another stream's unfinished line
  };

  LineScheduler() = default;
  explicit LineScheduler(Delays delays) : delays_(delays) {}

  // Streams of one rank do not keep each other from showing unfinished lines; those of kNobody keep
  // no rank from it.
  void join(Slot& slot, int rank);
  void leave(Slot& slot);  // forgets it; its unfinished line stays on the console

  // The stream has whole lines.
  void offer_lines(Slot& slot, bool begins_with_return, Time now);
  // The stream has the beginning of a line, or more of one that it has begun to show.
  void offer_partial(Slot& slot, bool begins_with_return, bool full_buffer, Time now);
  // What was offered as partial is not there any more (it became part of whole lines).
  void withdraw_partial(Slot& slot);
  void end(Slot& slot);  // no more will come

  // Nullopt: nothing may be written yet. Call written() before the next call.
  [[nodiscard]] std::optional<Turn> next(Time now);
  void written(Slot& slot, LineState line, Time now);

  // When next() may give a turn that it does not give now.
  [[nodiscard]] std::optional<Time> deadline(Time now) const;

 private:
  [[nodiscard]] Slot* first_waiting(Time now) const;
  [[nodiscard]] Time may_cut_from(const Slot& slot) const;
  Turn give_turn(Slot& slot, bool newline_first);
  void uncount(Slot& slot);
  [[nodiscard]] bool one_rank() const { return streams_of_rank_.size() <= 1; }

  Delays delays_;
  std::map<int, std::size_t> streams_of_rank_;  // that have not ended
  std::deque<Slot*> lines_;                     // in order of arrival
  std::vector<Slot*> partials_;                 // in order of arrival

  LineState line_;                   // the console's last line
  Slot* open_line_owner_ = nullptr;  // has shown it unfinished and may go on
  bool owner_left_ = false;          // it is unfinished, and its stream has left
  int last_rank_ = kNobody;          // whose line it is
  Time owner_wrote_{};
};

}  // namespace drun::launcher
