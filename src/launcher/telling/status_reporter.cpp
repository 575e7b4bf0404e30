#include "launcher/telling/status_reporter.hpp"

#include <unistd.h>

#include <utility>

#include "base/log.hpp"
#include "base/terminal_size.hpp"

namespace drun::launcher {

StatusScreen standard_error(Output& output) {
  return {::isatty(STDERR_FILENO) == 1,
          [&output](std::string text) { output.message(std::move(text)); },
          [&output](std::string text) { output.status(std::move(text)); },
          [] { return terminal_size(STDERR_FILENO).columns; }};
}

StatusReporter::StatusReporter(StatusScreen screen, SharedLogDedup* neighbours, bool single_node)
    : screen_(std::move(screen)),
      neighbours_(neighbours),
      single_node_(single_node),
      line_(
          screen_.terminal, [this](std::string_view text) { write(text); }, screen_.columns) {
  log::redirect([this](std::string line) { say(std::move(line)); });
}

StatusReporter::~StatusReporter() {
  log::redirect({});
}

void StatusReporter::say(std::string text) {
  if (neighbours_ == nullptr || neighbours_->first_to_say(text)) screen_.message(std::move(text));
}

void StatusReporter::inform(const std::string& text) {
  line_.clear();
  log::info("{}", text);
}

void StatusReporter::warn(const std::string& text) {
  line_.clear();
  log::warning("{}", text);
}

void StatusReporter::state(const std::string& text) const {
  log::write(single_node_ ? log::Level::Debug : log::Level::Info, "{}", text);
}

void StatusReporter::stopping(const std::string& reason) {
  if (reason != last_stop_) state("stopping the workers: " + reason);
  last_stop_ = reason;
}

void StatusReporter::workers_start() {
  line_.show("", {});
  waiting_.clear();
  spare_ = false;
  last_stop_.clear();
}

void StatusReporter::waiting(std::string text, Time now, bool spare) {
  waiting_ = std::move(text);
  spare_ = spare;
  line_.show(waiting_, now, false, spare && log::uses_color() ? Ink::Aside : Ink::Plain);
}

void StatusReporter::at_limit(const std::vector<RankState>& states) {
  if (std::exchange(states_told_, true)) return;
  for (const auto& state : states) {
    states_.push_back(state.text);
    log::write(log::Level::Warning, state.silent ? Ink::Silence : Ink::Plain, "{}", state.text);
  }
  if (states_.empty() && waiting_.empty()) waiting_ = "no worker of this node was started yet";
  if (!waiting_.empty()) log::warning("{}", waiting_);
}

void StatusReporter::forwarded(int signal, bool nobody) {
  const auto text = forwarded_.describe(signal, nobody, !single_node_ && !all_get_signals_);
  if (!text) return;
  line_.clear();
  log::write(nobody ? log::Level::Warning : log::Level::Info, "{}", *text);
}

void StatusReporter::left_behind(const std::string& what) {
  if (what.empty() || what == left_behind_) return;
  left_behind_ = what;
  warn(what);
}

// Text that begins with a carriage return is written over what another agent shows there.
void StatusReporter::write(std::string_view text) {
  if (text.starts_with('\r')) {
    screen_.status(std::string(text));
  } else {
    say(std::string(text));
  }
}

}  // namespace drun::launcher
