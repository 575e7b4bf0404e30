// Who writes next to a console that several streams share. Keeps lines of different streams apart:
// a stream that has shown the beginning of a line goes on first; another one waits for the end of
// that line, for a while. Pure: told what there is to write and what time it is, never sees a byte.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace drun::launcher {

class LineTurns {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Milliseconds = std::chrono::milliseconds;

  struct Settings {
    // An unfinished line is shown this long after it came, unless it is a progress bar or nobody
    // else prints here: nearly all lines that arrive in pieces are complete by then, and nobody's
    // line need be cut.
    Milliseconds hold{1000};
    // The same for a stream that stopped in a line exactly where its stdio buffer was full.
    Milliseconds full_buffer{1000};
    // Others may cut into a line that was shown unfinished when its stream has been silent for
    // `quiet`, or when they have waited for `patience`.
    Milliseconds quiet{50};
    Milliseconds patience{200};
  };
  // Where somebody may be watching: a prompt comes before one grows impatient.
  static constexpr Milliseconds kTerminalHold{100};

  static constexpr int kNobody = -1;

  // One stream's place at the console. Owned by the stream; outlives its membership.
  struct Seat {
    int owner = kNobody;       // the rank whose stream it is
    bool has_lines = false;    // whole lines are waiting
    bool has_partial = false;  // an unfinished line may be shown from `due` on
    bool returns = false;      // what is waiting begins with a carriage return
    bool ended = false;        // no more will come
    bool cut = false;          // its shown line was cut into: what follows begins a new one
    Time since{};              // when it began to wait
    Time due{};                // when its unfinished line may be shown
  };

  // What a stream has left behind on the console.
  struct Left {
    bool open = false;       // the last line has no end yet
    bool at_margin = false;  // but ends with a carriage return: anything may be written over it
    bool returned = false;   // there is a carriage return in that line: a progress bar
    bool endless = false;    // too long for a line of text: nothing is ever put between
  };

  struct Grant {
    Seat* seat = nullptr;
    bool newline_first = false;  // ends somebody else's unfinished line
  };

  LineTurns() = default;
  explicit LineTurns(Settings settings) : settings_(settings) {}

  // `owner`: the rank. Streams of one rank do not keep each other from showing unfinished lines;
  // kNobody's keep nobody from it.
  void join(Seat& seat, int owner);
  void leave(Seat& seat);  // forgets it; its unfinished line stays on the console

  // The stream has whole lines.
  void offer_lines(Seat& seat, bool returns, Time now);
  // The stream has the beginning of a line, or more of one that it has begun to show.
  void offer_partial(Seat& seat, bool returns, bool full_buffer, Time now);
  // What was offered as partial is not there any more (it became part of whole lines).
  void withdraw_partial(Seat& seat);
  void end(Seat& seat);  // no more will come

  // The seat to write all that it has now; nullopt: nothing may be written yet. Call written()
  // before the next call.
  [[nodiscard]] std::optional<Grant> next(Time now);
  void written(Seat& seat, Left left, Time now);

  // When next() may give something that it does not give now.
  [[nodiscard]] std::optional<Time> deadline(Time now) const;

 private:
  [[nodiscard]] Seat* first_waiting(Time now) const;
  [[nodiscard]] Time may_cut(const Seat& seat) const;
  Grant grant(Seat& seat, bool newline_first);
  void release(Seat& seat);
  [[nodiscard]] bool alone() const { return owners_.size() <= 1; }

  Settings settings_;
  std::map<int, std::size_t> owners_;  // ranks, with how many streams that have not ended
  std::deque<Seat*> lines_;            // in order of arrival
  std::vector<Seat*> partials_;        // in order of arrival
  Seat* holder_ = nullptr;             // has shown an unfinished line
  bool orphaned_ = false;              // the unfinished line's stream has left
  int line_owner_ = kNobody;           // of the last line written
  Left left_;
  Time holder_wrote_{};
};

}  // namespace drun::launcher
