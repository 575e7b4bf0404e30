#include "launcher/agent/hang_watch.hpp"

#include <map>
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
constexpr std::chrono::minutes kLookAgain{5};
constexpr std::chrono::seconds kPlacesLimit{3};

using Places = std::map<std::uint32_t, hang::WaitPlace>;

}  // namespace

HangWatch::HangWatch(asio::io_context& io, std::optional<std::chrono::milliseconds> timeout,
                     const WorkerGroup& group, std::function<void(bool)> on_stalled,
                     std::function<void(const std::string&)> on_doubt)
    : group_(group),
      on_stalled_(std::move(on_stalled)),
      on_doubt_(std::move(on_doubt)),
      timer_(io, [this] { look(); }) {
  if (!timeout) return;
  stillness_.emplace(*timeout);
  desk_.emplace(io, [] {});
}

void HangWatch::start() {
  if (desk_) timer_.set(Clock::now() + stillness_->interval());
}

void HangWatch::cancel() {
  timer_.set(std::nullopt);
  if (desk_) desk_->cancel();
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
    return timer_.set(Clock::now() + stillness_->interval());
  }
  const auto before = std::make_shared<const hang::NodeLook>(stillness_->last());
  desk_->ask<hang::NodeLook>(
      kLookLimit,
      [ranks = std::move(ranks), before, port = group_.assignment().master_port] {
        return hang::look_at(ranks, *before, port);
      },
      [this](Result<hang::NodeLook> looked) {
        timer_.set(Clock::now() + (looked ? stillness_->interval() : kLookAgain));
        if (looked) return on_look(std::move(*looked));
        log::warning("--hang-timeout: {}", looked.error().what());
      });
}

void HangWatch::on_look(hang::NodeLook look) {
  stillness_->on_look(std::move(look));
  if (const auto doubt = stillness_->take_doubt()) on_doubt_(doubt_text(*doubt, group_));
  const bool stalled = stillness_->stalled() && group_.running();
  if (std::exchange(stalled_, stalled) != stalled) on_stalled_(stalled);
}

void HangWatch::find_places(std::function<void(const std::vector<WaitingRank>&)> told) {
  std::vector<WaitingRank> waiting;
  for (const auto& [id, worker] : group_.workers()) {
    if (worker.stage != Worker::Stage::Running) continue;
    waiting.push_back({id, worker.local_rank, worker.pid, {}});
  }
  const auto last = std::make_shared<const hang::NodeLook>(stillness_->last());
  desk_->ask<Places>(
      kPlacesLimit,
      [waiting, last] {
        Places places;
        hang::Connections connections(0);
        for (const WaitingRank& rank : waiting) {
          about_to("look where process " + std::to_string(rank.pid) + " waits");
          const auto look = last->ranks.find(rank.worker);
          if (look != last->ranks.end())
            places.emplace(rank.worker, hang::wait_place(rank.pid, look->second, connections));
        }
        return places;
      },
      [waiting, told = std::move(told)](Result<Places> places) mutable {
        for (WaitingRank& rank : waiting) {
          if (!places) break;
          const auto place = places->find(rank.worker);
          if (place != places->end()) rank.place = place->second;
        }
        told(waiting);
      });
}

}  // namespace drun::launcher
