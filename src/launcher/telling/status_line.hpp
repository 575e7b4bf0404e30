// The one line that says what drun is waiting for: updated in place on a terminal, else repeated
// with backoff.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/ink.hpp"

namespace drun::launcher {

class StatusLine {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `write` gets the bytes for stderr. `columns` tells how wide the terminal is now; 0: not known.
  using Write = std::function<void(std::string_view)>;
  using Columns = std::function<std::size_t()>;
  StatusLine(bool terminal, Write write, Columns columns)
      : terminal_(terminal), write_(std::move(write)), columns_(std::move(columns)) {}

  // Nothing is shown for a wait that is over within a second; with `at_once` a terminal shows it
  // now. An empty text ends the wait.
  void show(const std::string& text, Time now, bool at_once = false, Ink ink = Ink::Plain);
  // The same of what only counts the seconds: elsewhere than on a terminal it is written once.
  void count_down(const std::string& text, Time now, bool at_once);
  void on_time(Time now);
  // Removes the line, so that other output starts at the margin.
  void clear();
  [[nodiscard]] std::optional<Time> next_deadline() const;

 private:
  void print();

  bool terminal_;
  Write write_;
  Columns columns_;
  bool visible_ = false;
  bool counts_ = false;   // the text counts the seconds
  bool counted_ = false;  // that has been written, and is not to be written again
  std::string text_;
  Ink ink_ = Ink::Plain;
  std::string printed_;  // the text that stands there, while visible
  std::optional<Time> due_;
  std::chrono::milliseconds interval_{0};
};

}  // namespace drun::launcher
