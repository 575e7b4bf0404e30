#include "launcher/signals/stop_requests.hpp"

#include <csignal>

namespace drun::launcher {
namespace {

StopLevel after(std::optional<StopLevel> level) {
  if (!level) return StopLevel::Ask;
  switch (*level) {
    case StopLevel::Ask:
      return StopLevel::Kill;
    case StopLevel::Kill:
      return StopLevel::Abandon;
    case StopLevel::Abandon:
    case StopLevel::Force:
      break;
  }
  return StopLevel::Force;
}

}  // namespace

bool StopRequests::repeats(int signal, Time now) const {
  if (!level_) return false;
  const auto soon_after = [&](const Request& request) {
    return signal == request.signal && now - request.at < kSameRequest;
  };
  const bool key = signal == SIGINT || signal == SIGQUIT;
  return (!key && soon_after(first_)) || (*level_ >= StopLevel::Abandon && soon_after(last_));
}

std::optional<StopLevel> StopRequests::count(int signal, Time now) {
  if (repeats(signal, now)) return std::nullopt;
  last_ = {signal, now};
  if (!level_) first_ = last_;
  level_ = after(level_);
  return level_;
}

}  // namespace drun::launcher
