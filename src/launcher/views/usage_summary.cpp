#include "launcher/views/usage_summary.hpp"

#include <utility>
#include <variant>

#include "base/random_bytes.hpp"
#include "launcher/views/rank_usage.hpp"
#include "rendezvous/keys.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

// The key needs no more than to be nobody else's: who wrote it stands in the document.
UsageSummary::UsageSummary(asio::io_context& io, const std::string& run_id, std::string host,
                           const WorkerGroup& group, const GpuLedger& gpus)
    : prefix_(rendezvous::Keys(run_id).prefix + std::string(jobs::kUsageKeys)),
      own_key_(prefix_ + random_name(16)),
      host_(std::move(host)),
      group_(group),
      gpus_(gpus),
      timer_(io, [this] { finish(); }) {}

void UsageSummary::set_link(rendezvous::KeyValue* link) {
  link_ = link;
  watching_ = false;
}

bool UsageSummary::tells() const {
  return group_.round() > 0 && group_.assignment().group_rank == 0;
}

bool UsageSummary::complete() const {
  return nodes_.size() >= static_cast<std::size_t>(group_.assignment().group_world_size);
}

void UsageSummary::on_workers(const GroupNews& news) {
  if (news.started && tells() && link_ != nullptr && !std::exchange(watching_, true))
    link_->watch(kWatch, prefix_, true);
  if (news.succeeded || news.stopped) write_own();
}

// All workers of the node have ended.
void UsageSummary::write_own() {
  const rendezvous::Assignment& place = group_.assignment();
  if (link_ == nullptr || written_ == place.round || group_.workers().empty()) return;
  written_ = place.round;
  jobs::NodeUsage usage{place.round, place.group_rank, host_, {}};
  for (const auto& [id, worker] : group_.workers())
    if (worker.pid != 0 && worker.usage != process::Usage())  // else nobody could tell
      usage.ranks.push_back(usage_of_rank(place.first_rank + worker.local_rank, worker.usage,
                                          gpus_.of(place.round, worker.pid)));
  rendezvous::Transaction transaction;
  transaction.writes.push_back({own_key_, encode(usage), true});
  link_->commit(kRequest, std::move(transaction));
}

bool UsageSummary::on_event(const rendezvous::KeyValueEvent& event) {
  bool mine = false;
  if (const auto* snapshot = std::get_if<rendezvous::WatchSnapshot>(&event)) {
    mine = snapshot->watch == kWatch;
    for (const auto& entry : snapshot->entries)
      if (mine) note(entry);
  } else if (const auto* changes = std::get_if<rendezvous::WatchChanges>(&event)) {
    mine = changes->watch == kWatch;
    for (const auto& change : changes->changes)
      if (mine) note(change);
  } else if (const auto* rejected = std::get_if<rendezvous::WatchRejected>(&event)) {
    mine = rejected->watch == kWatch;
  } else if (const auto* result = std::get_if<rendezvous::CommitResult>(&event)) {
    mine = result->request == kRequest;
  } else if (const auto* link = std::get_if<rendezvous::LinkEvent>(&event);
             link != nullptr &&
             (link->link == rendezvous::Link::Closed || link->link == rendezvous::Link::Failed)) {
    link_ = nullptr;
    finish();
  }
  if (mine && done_ && complete()) finish();
  return mine;
}

// What is gone again was told all the same: its agent has left.
void UsageSummary::note(const rendezvous::Change& change) {
  if (!change.value) return;
  auto usage = jobs::decode_usage(*change.value);
  if (!usage || usage->round < group_.round()) return;
  const int node = usage->group_rank;
  nodes_.insert_or_assign(node, std::move(*usage));
}

void UsageSummary::at_end(std::function<void(std::vector<std::string>)> done) {
  done_ = std::move(done);
  const int round = group_.round();
  std::erase_if(nodes_, [round](const auto& each) { return each.second.round != round; });
  if (!tells() || complete() || link_ == nullptr) return finish();
  timer_.set(Clock::now() + kLimit);
}

void UsageSummary::close() {
  timer_.set(std::nullopt);
  done_ = nullptr;
  link_ = nullptr;
}

void UsageSummary::finish() {
  timer_.set(std::nullopt);
  if (!done_) return;
  std::vector<jobs::NodeUsage> nodes;
  for (auto& [rank, node] : nodes_)
    nodes.push_back(std::move(node));
  nodes_.clear();
  const auto done = std::exchange(done_, nullptr);
  const auto ranks = static_cast<std::size_t>(group_.assignment().world_size);
  done(tells() ? usage_table(nodes, ranks) : std::vector<std::string>());
}

}  // namespace drun::launcher
