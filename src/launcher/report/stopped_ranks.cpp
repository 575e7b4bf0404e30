#include "launcher/report/stopped_ranks.hpp"

#include "base/counted.hpp"
#include "base/duration_text.hpp"
#include "base/number_ranges.hpp"

namespace drun::launcher {
namespace {

// What SIGKILL before its time says of nobody is that it was needed.
std::string fate(const StoppedRanks& stopped, bool one) {
  if (!stopped.at_once) return " needed SIGKILL";
  return one ? " was killed" : " were killed";
}

std::string killed_text(const StoppedRanks& stopped) {
  if (!stopped.killed.empty())
    return ranks_text(stopped.killed) + fate(stopped, stopped.killed.size() == 1);
  const auto count = stopped.others_killed;
  if (count == 0) return "";
  return counted(count, "process", "processes") + " that the workers had started" +
         fate(stopped, count == 1);
}

std::string silence_text(const StoppedRanks& stopped, bool one) {
  if (!stopped.silence.empty()) return " (" + stopped.silence + ")";
  if (!stopped.all_silent) return "";
  return std::string(" (silent for ") + (one ? "" : "at least ") +
         describe_duration(stopped.all_silent->count()) + ")";
}

}  // namespace

std::string on_host(const StoppedRanks& stopped, const std::string& text) {
  return stopped.host.empty() || text.empty() ? text : "on " + stopped.host + ", " + text;
}

std::string describe_killed(const StoppedRanks& stopped) {
  return on_host(stopped, killed_text(stopped));
}

std::string describe_succeeded(const StoppedRanks& stopped) {
  if (stopped.succeeded.empty() || stopped.expected) return "";
  return on_host(stopped, ranks_text(stopped.succeeded) + " had ended with 0");
}

std::string describe_stopped(const StoppedRanks& stopped) {
  if (stopped.running.empty() || stopped.expected) return describe_killed(stopped);
  const bool one = stopped.running.size() == 1;
  std::string text = ranks_text(stopped.running) + (one ? " was" : " were") + " still running" +
                     silence_text(stopped, one);
  if (stopped.killed == stopped.running)
    text += " and" + fate(stopped, one);
  else if (const auto killed = killed_text(stopped); !killed.empty())
    text += "; " + killed;
  return on_host(stopped, text);
}

}  // namespace drun::launcher
