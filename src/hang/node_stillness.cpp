#include "hang/node_stillness.hpp"

#include <algorithm>
#include <utility>

namespace drun::hang {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortestLook{200};
constexpr milliseconds kLongestLook{60'000};
// So many intervals from one look to the next are nothing special, on a busy machine; after so many
// it is better to begin anew.
constexpr int kLate = 2;
constexpr int kPause = 5;

}  // namespace

NodeStillness::NodeStillness(milliseconds timeout)
    : timeout_(timeout), interval_(std::clamp(timeout / 10, kShortestLook, kLongestLook)) {}

void NodeStillness::judge(std::uint32_t worker, const RankLook& now, Time at, Time counted_from) {
  const auto before = last_.ranks.find(worker);
  const auto [entry, is_new] = records_.try_emplace(worker);
  Record& record = entry->second;
  if (is_new || before == last_.ranks.end()) {
    record = Record{at};
    return;
  }
  // The look that began it has less than others, which is no doubt of the rank.
  const bool first = !std::exchange(record.compared, true);
  const auto elapsed = std::chrono::duration_cast<milliseconds>(at - last_.at);
  const Finding finding = compare(before->second, now, elapsed);
  switch (finding.activity) {
    case Activity::MakesProgress:
      record = Record{at};
      break;
    case Activity::NobodyKnows:
      record.waits_since.reset();
      if (record.doubt.empty() && !first) record.doubt = finding.why;
      break;
    case Activity::Waits:
      if (!record.waits_since) record.waits_since = counted_from;
      break;
  }
}

// Whatever a record has counted began so much later.
void NodeStillness::shift(Time::duration pause) {
  for (auto& [worker, record] : records_) {
    if (record.waits_since) *record.waits_since += pause;
    record.fruitless_since += pause;
  }
}

void NodeStillness::end_to_overlook(int more) {
  --overlookers_;
  overlooked_ = std::max(overlooked_, more);
}

void NodeStillness::on_look(NodeLook look) {
  const bool overlook = overlookers_ > 0 || overlooked_ > 0;
  if (overlookers_ == 0 && overlooked_ > 0) --overlooked_;
  // What the ranks did meanwhile is compared with all of the time, also with what is left out.
  const auto left_out = std::exchange(left_out_, Time::duration(0));
  const auto since = look.at - last_.at - left_out;
  Time counted_from = last_.at;
  if (since > interval_ * kPause) {
    records_.clear();
    last_ = {};
  } else {
    const auto late = since - (overlook ? Time::duration(0) : interval_ * kLate);
    counted_from += left_out + std::max(late, Time::duration(0));
    shift(counted_from - last_.at);
  }
  const auto ended =
      std::erase_if(records_, [&](const auto& each) { return !look.ranks.contains(each.first); });
  for (const auto& [worker, rank] : look.ranks)
    if (!overlook || !records_.contains(worker)) judge(worker, rank, look.at, counted_from);
  // What has waited for a rank may go on only since that has ended.
  if (ended > 0)
    for (auto& [worker, record] : records_)
      record = Record{look.at};
  stalled_ =
      !records_.empty() && std::all_of(records_.begin(), records_.end(), [&](const auto& each) {
        return each.second.waits_since && look.at - *each.second.waits_since >= timeout_;
      });
  last_ = std::move(look);
}

bool NodeStillness::all_fruitless(milliseconds time) const {
  return !records_.empty() && std::all_of(records_.begin(), records_.end(), [&](const auto& each) {
    return last_.at - each.second.fruitless_since >= time;
  });
}

bool NodeStillness::busy_in_vain() const {
  return all_fruitless(timeout_ / 2) &&
         std::any_of(records_.begin(), records_.end(),
                     [](const auto& each) { return !each.second.waits_since; });
}

void NodeStillness::on_stuck_collective() {
  stalled_ = stalled_ || all_fruitless(timeout_);
}

std::optional<Doubt> NodeStillness::take_doubt() {
  if (stalled_ || doubted_ || !all_fruitless(timeout_)) return std::nullopt;
  for (const auto& [worker, record] : records_) {
    if (record.waits_since || record.doubt.empty()) continue;
    doubted_ = true;
    return Doubt{worker, record.doubt};
  }
  return std::nullopt;
}

}  // namespace drun::hang
