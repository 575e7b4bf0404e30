#include "hang/heartbeats.hpp"

#include <algorithm>
#include <utility>

#include "base/duration_text.hpp"

namespace drun::hang {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortestInterval{20};
constexpr milliseconds kLongestInterval{5'000};

std::string limit_text(milliseconds limit) {
  return describe_duration(limit.count());
}

}  // namespace

Heartbeats::Heartbeats(const HeartbeatLimits& limits)
    : limits_(limits), interval_(kLongestInterval) {
  for (const auto& limit : {limits.first, limits.next, limits.last})
    if (limit) interval_ = std::min(interval_, *limit / 10);
  interval_ = std::max(interval_, kShortestInterval);
}

void Heartbeats::count(Record& record, const Seen& seen, Time now) const {
  record.quiet += std::min<std::chrono::nanoseconds>(now - record.looked_at, interval_ * 2);
  record.looked_at = now;
  if (!seen.heartbeat || seen.heartbeat == record.heartbeat) return;
  record.heartbeat = seen.heartbeat;
  if (seen.heartbeat->step) record.step = seen.heartbeat->step;
  record.quiet = {};
  record.told = false;
}

std::string Heartbeats::why_late(const Record& record) const {
  const auto over = [&](std::optional<milliseconds> limit) {
    return limit && record.quiet > *limit;
  };
  if (!record.heartbeat) {
    if (!over(limits_.first)) return {};
    return "gave no heartbeat within " + limit_text(*limits_.first) +
           " of its start (--heartbeat-start-timeout)";
  }
  if (record.heartbeat->last) {
    if (!over(limits_.last)) return {};
    return "still ran " + limit_text(*limits_.last) +
           " after its last heartbeat (--heartbeat-end-timeout)";
  }
  if (!over(limits_.next)) return {};
  return "gave no heartbeat for " + limit_text(*limits_.next) +
         (record.step ? " after step " + std::to_string(*record.step) : "") +
         " (--heartbeat-timeout)";
}

std::vector<Heartbeats::Late> Heartbeats::on_look(const std::vector<Seen>& seen, Time now) {
  std::map<std::uint32_t, Record> records;
  std::vector<Late> late;
  std::optional<std::int64_t> lowest;
  bool all_say_steps = true;
  bool over = false;
  for (const Seen& each : seen) {
    const auto known = records_.find(each.worker);
    Record& record = records[each.worker];
    if (known == records_.end()) {
      record.looked_at = each.started;
    } else {
      record = known->second;
    }
    count(record, each, now);
    over |= record.told;
    std::string cause = why_late(record);
    if (cause.empty()) continue;
    if (record.step) lowest = std::min(lowest.value_or(*record.step), *record.step);
    all_say_steps = all_say_steps && record.step;
    late.push_back({each.worker, std::move(cause), record.step});
  }
  records_ = std::move(records);
  // One rank was reported already: others that are late now only wait for it, or are being stopped
  // with it.
  if (over) return {};
  // The others wait for those behind.
  if (all_say_steps)
    std::erase_if(late, [&](const Late& each) { return records_[each.worker].step != lowest; });
  for (const Late& each : late)
    records_[each.worker].told = true;
  return late;
}

std::optional<Heartbeats::Span> Heartbeats::span() const {
  std::vector<std::pair<std::uint32_t, const Record*>> beating;
  for (const auto& [worker, record] : records_)
    if (record.heartbeat && !record.heartbeat->last) beating.emplace_back(worker, &record);
  const bool all_say_steps = std::all_of(beating.begin(), beating.end(),
                                         [](const auto& each) { return each.second->step; });
  const auto [ahead, behind] = std::minmax_element(
      beating.begin(), beating.end(), [all_say_steps](const auto& a, const auto& b) {
        if (all_say_steps && a.second->step != b.second->step)
          return *a.second->step > *b.second->step;
        return a.second->quiet < b.second->quiet;
      });
  if (behind == beating.end()) return std::nullopt;
  const auto reached = [](const auto& worker) {
    const Record& record = *worker.second;
    return Reached{worker.first, record.step,
                   std::chrono::duration_cast<milliseconds>(record.quiet)};
  };
  return Span{reached(*behind), reached(*ahead)};
}

}  // namespace drun::hang
