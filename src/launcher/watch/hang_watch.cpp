#include "launcher/watch/hang_watch.hpp"

#include <sys/types.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/file_worker.hpp"
#include "base/log.hpp"
#include "hang/connections.hpp"
#include "hang/wait_place.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// A look that gets no answer from the kernel hangs in a thread that is left behind.
constexpr std::chrono::seconds kLookLimit{20};
// After dumps: the first look finds the rest of what was written, so it does not look at
// connections, and the second cannot compare them.
constexpr int kAfterDumps = 2;

// All processes of this node's workers.
std::set<pid_t> processes_of(const hang::NodeLook& look) {
  std::set<pid_t> all;
  for (const auto& [worker, rank] : look.ranks)
    for (const auto& [pid, process] : rank.processes)
      all.insert(pid);
  return all;
}

// In a thread that may wait. Nullopt: it says nothing of these processes. Of those that are behind
// only these are named.
std::optional<hang::RasAnswer> ask_service(const Endpoint& ras, std::chrono::milliseconds limit,
                                           const std::set<pid_t>& ours, int world_size) {
  about_to("ask NCCL's RAS service at " + to_string(ras));
  const auto status = hang::ask_ras(ras, limit);
  if (!status || !hang::speaks_of(*status, ours)) return std::nullopt;
  auto answer = hang::conclude(*status, world_size);
  if (answer.gap)
    std::erase_if(answer.gap->behind, [&](const auto& each) { return !ours.contains(each.pid); });
  return answer;
}

struct Waiter {
  hang::WaitPlace place;
  bool behind = false;
};
using Places = std::map<std::uint32_t, Waiter>;

}  // namespace

HangWatch::HangWatch(asio::io_context& io, std::optional<std::chrono::milliseconds> timeout,
                     Endpoint ras, const WorkerGroup& group, std::function<void(bool)> on_stalled,
                     std::function<void(const std::string&)> on_doubt)
    : io_(io),
      ras_(std::move(ras)),
      group_(group),
      on_stalled_(std::move(on_stalled)),
      on_doubt_(std::move(on_doubt)),
      timer_(io, [this] { look(); }) {
  if (!timeout) return;
  judge_.emplace(*timeout);
  desk_.emplace(io, [] {});
  aside_.emplace(io, [] {});
  places_.emplace(io, [] {});
}

void HangWatch::start() {
  if (desk_) timer_.set(Clock::now() + judge_->interval());
}

void HangWatch::cancel() {
  timer_.set(std::nullopt);
  if (desk_) desk_->cancel();
  if (aside_) aside_->cancel();
  if (places_) places_->cancel();
  if (dumps_) dumps_->cancel();
}

std::vector<hang::WatchedRank> HangWatch::watched() const {
  std::vector<hang::WatchedRank> ranks;
  if (!group_.running() || !group_.all_started()) return ranks;
  for (const auto& [id, worker] : group_.workers())
    if (worker.stage == Worker::Stage::Running) ranks.push_back({id, worker.pid});
  return ranks;
}

void HangWatch::look() {
  auto ranks = watched();
  if (ranks.empty()) {
    on_look({Clock::now(), {}});
    return timer_.set(Clock::now() + judge_->interval());
  }
  // Soon again: looks must not be far from one another.
  const auto again = judge_->interval() / 4;
  if (holders_ > 0) return timer_.set(Clock::now() + again);
  const auto before = std::make_shared<const hang::NodeLook>(judge_->last());
  desk_->ask<hang::NodeLook>(
      kLookLimit,
      [ranks = std::move(ranks), before, port = rendezvous::store_of(group_.assignment()).port,
       disturbed = disturbed_] { return hang::look_at(ranks, *before, port, disturbed); },
      [this, again, holds = holds_](Result<hang::NodeLook> looked) {
        if (holds != holds_) return timer_.set(Clock::now() + again);
        disturbed_ = false;
        timer_.set(Clock::now() + (looked ? judge_->interval() : HangJudge::kAgainAfterHanging));
        if (looked) return on_look(std::move(*looked));
        obey(judge_->on_blind_look());
        log::warning("--hang-timeout: {}", looked.error().what());
      });
}

void HangWatch::on_look(hang::NodeLook look) {
  obey(judge_->on_look(std::move(look), group_.running(), Clock::now()));
}

void HangWatch::ask_nccl() {
  const auto limit = judge_->answer_limit();
  aside_->ask<std::optional<hang::RasAnswer>>(
      2 * limit,
      [ras = ras_, limit, ours = processes_of(judge_->last()),
       world_size = group_.assignment().world_size] {
        return ask_service(ras, limit, ours, world_size);
      },
      [this](Result<std::optional<hang::RasAnswer>> answer) {
        HangJudge::Answer said{answer.ok()};
        if (answer) said.said = std::move(*answer);
        obey(judge_->on_answer(std::move(said), group_.running(), Clock::now()));
      });
}

void HangWatch::obey(const HangJudge::Verdict& verdict) {
  if (verdict.asks_nccl) ask_nccl();
  if (verdict.doubt) {
    const std::string said = collectives().text();
    on_doubt_(doubt_text(*verdict.doubt, group_) + (said.empty() ? "" : "; " + said));
  }
  if (verdict.stalled) on_stalled_(*verdict.stalled);
}

void HangWatch::on_held(bool held) {
  if (held) {
    ++holds_;
    disturbed_ = true;
    if (++holders_ == 1) held_since_ = Clock::now();
  } else if (--holders_ == 0 && judge_) {
    judge_->leave_out(Clock::now() - held_since_);
  }
}

const hang::StuckCollectives& HangWatch::collectives() const {
  static const hang::StuckCollectives kNobodyAsked;
  return judge_ ? judge_->collectives() : kNobodyAsked;
}

void HangWatch::find_places(std::function<void(const std::vector<WaitingRank>&)> told) {
  std::vector<WaitingRank> waiting;
  for (const auto& [id, worker] : group_.workers()) {
    if (worker.stage != Worker::Stage::Running) continue;
    waiting.push_back({id, worker.local_rank, worker.pid, {}});
  }
  const auto last = std::make_shared<const hang::NodeLook>(judge_->last());
  const auto behind =
      collectives().stuck() ? collectives().stuck()->behind : std::vector<hang::RasRank>();
  places_->ask<Places>(
      kPlacesLimit,
      [waiting, last, behind] {
        Places places;
        hang::Connections connections(0);
        for (const WaitingRank& rank : waiting) {
          about_to("look where process " + std::to_string(rank.pid) + " waits");
          const auto look = last->ranks.find(rank.worker);
          if (look == last->ranks.end()) continue;
          Waiter waiter{hang::wait_place(rank.pid, look->second, connections), false};
          waiter.behind = std::any_of(behind.begin(), behind.end(), [&](const auto& each) {
            return look->second.processes.contains(each.pid) && hang::is_one_of(each, {each.pid});
          });
          places.emplace(rank.worker, std::move(waiter));
        }
        return places;
      },
      [waiting, told = std::move(told)](Result<Places> places) mutable {
        for (WaitingRank& rank : waiting) {
          if (!places) break;
          const auto place = places->find(rank.worker);
          if (place == places->end()) continue;
          rank.place = place->second.place;
          rank.behind = place->second.behind;
        }
        told(waiting);
      });
}

void HangWatch::ask_for_dumps(const hang::FlightRecorder& recorder,
                              std::function<void(const Result<hang::Dumps>&)> told) {
  std::vector<int> ranks;
  for (const auto& [id, worker] : group_.workers())
    if (worker.stage == Worker::Stage::Running)
      ranks.push_back(group_.assignment().first_rank + worker.local_rank);
  if (judge_) judge_->begin_to_overlook();
  if (!dumps_) dumps_.emplace(io_, [] {});
  dumps_->ask<hang::Dumps>(
      kDumpsAtMost,
      [recorder, ranks] {
        about_to("ask for dumps by " + recorder.pipe);
        return hang::ask_for_dumps(recorder, ranks, kDumpLimit);
      },
      [this, told = std::move(told)](const Result<hang::Dumps>& dumps) {
        if (judge_) judge_->end_to_overlook(kAfterDumps);
        told(dumps);
      });
}

}  // namespace drun::launcher
