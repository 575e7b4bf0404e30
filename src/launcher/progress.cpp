#include "launcher/progress.hpp"

#include <unistd.h>

#include <algorithm>

namespace drun::launcher {
namespace {

constexpr std::chrono::milliseconds kFirst{1'000};
constexpr std::chrono::milliseconds kTerminalInterval{1'000};
constexpr std::chrono::milliseconds kLongestInterval{60'000};

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(descriptor, text.data(), text.size());
    if (written < 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Progress Progress::on_stderr() {
  return Progress(::isatty(STDERR_FILENO) == 1,
                  [](std::string_view text) { write_all(STDERR_FILENO, text); });
}

void Progress::show(const std::string& text, Time now) {
  if (text.empty()) {
    clear();
    text_.clear();
    due_.reset();
    interval_ = std::chrono::milliseconds(0);
    return;
  }
  text_ = text;
  if (terminal_ && visible_) {
    print();
  } else if (!due_) {
    due_ = now + kFirst;
  }
}

void Progress::on_time(Time now) {
  if (!due_ || now < *due_) return;
  print();
  if (terminal_) {
    interval_ = kTerminalInterval;
  } else {
    interval_ = std::min(kLongestInterval, std::max(interval_ * 2, 2 * kFirst));
  }
  due_ = now + interval_;
}

void Progress::print() {
  write_(terminal_ ? "\r\033[Kdrun: " + text_ : "drun: " + text_ + "\n");
  visible_ = terminal_;
}

void Progress::clear() {
  if (!visible_) return;
  write_("\r\033[K");
  visible_ = false;
}

std::optional<Progress::Time> Progress::next_deadline() const {
  return due_;
}

}  // namespace drun::launcher
