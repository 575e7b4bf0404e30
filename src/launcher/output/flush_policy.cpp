#include "launcher/output/flush_policy.hpp"

#include <algorithm>
#include <utility>

namespace drun::launcher {
namespace {

constexpr auto kLongestLook = 4 * FlushPolicy::kInterval;
// The user is to learn soon that the job failed.
constexpr std::chrono::seconds kAfterFailure{10};
constexpr std::chrono::seconds kAfterRequest{1};

std::string unread(const FlushProgress& progress) {
  if (progress.waits_for_output && progress.waits_for_error) return "standard output and error";
  if (progress.waits_for_output) return "standard output";
  return progress.waits_for_error ? "standard error" : "the output";  // a write hangs
}

}  // namespace

std::string waiting_for_reader(const FlushProgress& progress) {
  return "the job has ended; waiting for the reader of " + unread(progress) +
         ", which takes nothing (Ctrl-C or SIGTERM ends the wait)";
}

std::string lost_at_reader(const FlushProgress& progress, const std::string& why) {
  return "the rest of " + unread(progress) + " is lost: " + why;
}

FlushPolicy::FlushPolicy(int exit_code, bool told_to_stop, Time now) : last_look_(now) {
  if (told_to_stop)
    patience_ = kAfterRequest;
  else if (exit_code != 0)
    patience_ = kAfterFailure;
}

FlushPolicy::Step FlushPolicy::look(const FlushProgress& progress, Time now) {
  if (progress.all) return Step::Done;
  const auto before = std::exchange(taken_, progress.taken);
  if ((progress.waits_for_output && taken_[0] != before[0]) ||
      (progress.waits_for_error && taken_[1] != before[1]))
    silent_ = {};
  silent_ += std::min<Time::duration>(now - std::exchange(last_look_, now), kLongestLook);
  if (patience_ && silent_ >= *patience_) return Step::GiveUp;
  if (told_ || silent_ < kTellAfter) return Step::Wait;
  told_ = true;
  return Step::Tell;
}

std::string FlushPolicy::reason() const {
  return "nothing was read for " +
         std::to_string(patience_.value_or(std::chrono::seconds{}).count()) + " s";
}

}  // namespace drun::launcher
