#include "launcher/telling/status_line.hpp"

#include <algorithm>

#include "base/log_name.hpp"
#include "base/printable.hpp"
#include "base/utf8.hpp"

namespace drun::launcher {
namespace {

constexpr std::chrono::milliseconds kFirst{1'000};
constexpr std::chrono::milliseconds kTerminalInterval{1'000};
constexpr std::chrono::milliseconds kLongestInterval{60'000};

// A line longer than the terminal is wide is cut, and says so: a line that wraps could not be
// removed. The terminal may have become narrower since: it does not wrap what it shows meanwhile.
std::string on_terminal(std::string line, Ink ink, std::size_t columns) {
  constexpr std::string_view kCut = "...";
  if (columns > kCut.size() && line.size() >= columns) {
    line.resize(cut_utf8(line, columns - 1 - kCut.size()).size());
    line += kCut;
  }
  return "\r\033[K\033[?7l" + painted(line, ink) + "\033[?7h";
}

}  // namespace

void StatusLine::show(const std::string& text, Time now, bool at_once, Ink ink) {
  counts_ = false;
  if (text.empty()) {
    counted_ = false;
    clear();
    text_.clear();
    due_.reset();
    interval_ = std::chrono::milliseconds(0);
    return;
  }
  ink_ = ink;
  text_ = printable(text);  // other jobs and hosts are named in it
  if (terminal_ && (visible_ || at_once)) {
    print();
    if (!due_) due_ = now + kTerminalInterval;
  } else if (!due_) {
    due_ = now + kFirst;
  }
}

void StatusLine::count_down(const std::string& text, Time now, bool at_once) {
  if (counted_) return;
  show(text, now, at_once);
  counts_ = true;
}

void StatusLine::on_time(Time now) {
  if (!due_ || now < *due_) return;
  print();
  counted_ = counts_ && !terminal_;
  if (counted_) return due_.reset();
  if (terminal_) {
    interval_ = kTerminalInterval;
  } else {
    interval_ = std::min(kLongestInterval, std::max(interval_ * 2, 2 * kFirst));
  }
  due_ = now + interval_;
}

void StatusLine::print() {
  if (visible_ && text_ == printed_) return;
  printed_ = text_;
  const std::string line = log::own_name() + ": " + text_;
  write_(terminal_ ? on_terminal(line, ink_, columns_()) : painted(line, ink_) + "\n");
  visible_ = terminal_;
}

void StatusLine::clear() {
  if (!visible_) return;
  write_("\r\033[K\r");  // at the margin: what comes next needs no new line
  visible_ = false;
}

std::optional<StatusLine::Time> StatusLine::next_deadline() const {
  return due_;
}

}  // namespace drun::launcher
