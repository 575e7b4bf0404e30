// The one line that says what drun is waiting for: updated in place on a terminal, else repeated
// with backoff.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace drun::launcher {

class StatusLine {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `write` gets the bytes for stderr.
  using Write = std::function<void(std::string_view)>;
  StatusLine(bool terminal, Write write) : terminal_(terminal), write_(std::move(write)) {}

  // Nothing is shown for a wait that is over within a second; with `at_once` a terminal shows it
  // now. An empty text ends the wait.
  void show(const std::string& text, Time now, bool at_once = false);
  void on_time(Time now);
  // Removes the line, so that other output starts at the margin.
  void clear();
  [[nodiscard]] std::optional<Time> next_deadline() const;

 private:
  void print();

  bool terminal_;
  Write write_;
  bool visible_ = false;
  std::string text_;
  std::string printed_;  // the text that stands there, while visible
  std::optional<Time> due_;
  std::chrono::milliseconds interval_{0};
};

}  // namespace drun::launcher
