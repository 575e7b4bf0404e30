#include "hang/file_timers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>

#include "base/json.hpp"
#include "base/printable.hpp"

namespace drun::hang {
namespace {

constexpr std::size_t kLongestRequest = 4'096;  // torch sends no longer ones
constexpr std::size_t kMostTimers = 10'000;
constexpr int kLastSignal = 64;

}  // namespace

void FileTimers::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    // The end of one that is too long makes it no request.
    if (rest_.size() <= kLongestRequest) rest_ += bytes.substr(0, std::min(end, kLongestRequest));
    if (end == std::string_view::npos) return;
    take_line(std::exchange(rest_, {}));
    bytes.remove_prefix(end + 1);
  }
}

void FileTimers::take_line(std::string_view line) {
  const auto request = parse_json(line);
  if (!request.is_object()) return;
  const auto pid = request.find("pid");
  const auto scope = request.find("scope_id");
  const auto expires = request.find("expiration_time");
  const auto signal = request.find("signal");
  if (pid == request.end() || !pid->is_number_integer() || scope == request.end() ||
      !scope->is_string() || expires == request.end() || !expires->is_number() ||
      signal == request.end() || !signal->is_number_integer())
    return;
  const auto number = pid->get<std::int64_t>();
  if (number <= 1 || number > std::numeric_limits<pid_t>::max()) return;
  std::pair key(static_cast<pid_t>(number), scope->get<std::string>());
  const auto time = expires->get<UnixTime>();
  if (time < 0) {
    timers_.erase(key);
    return;
  }
  if (timers_.size() >= kMostTimers && !timers_.contains(key)) return;
  const auto wanted = signal->get<std::int64_t>();
  timers_[std::move(key)] = {time, wanted > kLastSignal ? 0 : static_cast<int>(wanted)};
}

std::vector<FileTimers::Expired> FileTimers::take_expired(UnixTime now) {
  struct Over {
    UnixTime since;
    Expired timer;
  };
  std::vector<Over> over;
  std::set<pid_t> whose;
  for (const auto& [key, timer] : timers_) {
    if (timer.expires > now) continue;
    whose.insert(key.first);
    if (timer.signal > 0)
      over.push_back({timer.expires, {key.first, printable(key.second), timer.signal}});
  }
  std::erase_if(timers_, [&](const auto& each) { return whose.contains(each.first.first); });
  std::stable_sort(over.begin(), over.end(),
                   [](const Over& a, const Over& b) { return a.since < b.since; });
  std::vector<Expired> expired;
  for (Over& each : over)
    if (whose.erase(each.timer.pid) > 0) expired.push_back(std::move(each.timer));
  return expired;
}

std::optional<FileTimers::UnixTime> FileTimers::next() const {
  const auto first = std::min_element(
      timers_.begin(), timers_.end(),
      [](const auto& a, const auto& b) { return a.second.expires < b.second.expires; });
  return first == timers_.end() ? std::nullopt : std::optional(first->second.expires);
}

void FileTimers::clear() {
  timers_.clear();
  rest_.clear();
}

}  // namespace drun::hang
