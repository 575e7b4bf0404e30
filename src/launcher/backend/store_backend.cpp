#include "launcher/backend/store_backend.hpp"

#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace drun::launcher {
namespace {

std::vector<rendezvous::Change> translate(std::vector<store::ControlChange> changes) {
  std::vector<rendezvous::Change> result;
  result.reserve(changes.size());
  for (auto& change : changes)
    result.push_back({std::move(change.key), std::move(change.value)});
  return result;
}

rendezvous::KeyValueEvent translate(store::ControlSnapshot event) {
  return rendezvous::WatchSnapshot{event.watch, translate(std::move(event.entries))};
}

rendezvous::KeyValueEvent translate(store::ControlChanges event) {
  return rendezvous::WatchChanges{event.watch, translate(std::move(event.changes))};
}

rendezvous::KeyValueEvent translate(store::ControlWatchRejected event) {
  return rendezvous::WatchRejected{event.watch, std::move(event.detail)};
}

rendezvous::KeyValueEvent translate(store::ControlCommit event) {
  switch (event.outcome) {
    case store::ControlOutcome::Committed:
      return rendezvous::CommitResult{event.request, rendezvous::CommitOutcome::Committed};
    case store::ControlOutcome::Refused:
      return rendezvous::CommitResult{event.request, rendezvous::CommitOutcome::Refused};
    case store::ControlOutcome::Rejected:
      return rendezvous::CommitResult{event.request, rendezvous::CommitOutcome::Rejected,
                                      std::move(event.detail)};
    case store::ControlOutcome::Unknown:
      break;
  }
  return rendezvous::CommitResult{event.request, rendezvous::CommitOutcome::Unknown};
}

rendezvous::KeyValueEvent translate(const store::ControlRenewal& event) {
  return rendezvous::Renewed{event.sent, static_cast<std::int64_t>(event.settled.era),
                             static_cast<int>(event.settled.round)};
}

// A rank or nothing.
std::uint32_t rank_of(int rank) {
  return rank < 0 ? store::kNoRank : static_cast<std::uint32_t>(rank);
}

rendezvous::Link translate(store::ControlState state) {
  switch (state) {
    case store::ControlState::Up:
      return rendezvous::Link::Up;
    case store::ControlState::NewSession:
      return rendezvous::Link::NewSession;
    case store::ControlState::Down:
      return rendezvous::Link::Down;
    case store::ControlState::Closed:
      return rendezvous::Link::Closed;
    case store::ControlState::Failed:
      break;
  }
  return rendezvous::Link::Failed;
}

rendezvous::KeyValueEvent translate(store::ControlLink event) {
  rendezvous::LinkEvent result{translate(event.state), std::move(event.detail), event.silent,
                               event.keys_per_request};
  result.generation = static_cast<std::int64_t>(event.generation);
  return result;
}

}  // namespace

StoreBackend::StoreBackend(asio::io_context& io, store::ControlOptions options, Sink sink,
                           std::function<void()> called)
    : votes_(!options.job.empty()),
      sink_(std::move(sink)),
      called_(std::move(called)),
      client_(io, std::move(options),
              [this](store::ControlEvent event) { on_event(std::move(event)); }) {}

void StoreBackend::on_event(store::ControlEvent event) {
  const auto* link = std::get_if<store::ControlLink>(&event);
  if (link != nullptr && link->state == store::ControlState::Down) loss_ = *link;
  std::visit(
      [this](auto& each) {
        if constexpr (std::is_same_v<decltype(each), store::ControlCall&>) {
          if (called_) called_();
        } else {
          tell(translate(std::move(each)));
        }
      },
      event);
}

void StoreBackend::tell(rendezvous::KeyValueEvent event) {
  // A store whose clients do not vote has no successors.
  if (auto* told = std::get_if<rendezvous::LinkEvent>(&event); told != nullptr && !votes_)
    told->generation = 0;
  const auto sink = sink_;  // it may destroy this
  sink(std::move(event));
}

void StoreBackend::open() {
  client_.open();
}

void StoreBackend::watch(rendezvous::WatchId watch, std::string key, bool prefix) {
  client_.watch(watch, std::move(key), prefix);
}

void StoreBackend::unwatch(rendezvous::WatchId watch) {
  client_.unwatch(watch);
}

void StoreBackend::commit(rendezvous::RequestId request, rendezvous::Transaction transaction) {
  store::ControlTransaction result;
  for (auto& guard : transaction.guards) {
    result.guards.push_back({std::move(guard.key), std::move(guard.expected)});
  }
  for (auto& write : transaction.writes) {
    result.writes.push_back({std::move(write.key), std::move(write.value), write.ephemeral});
  }
  client_.commit(request, std::move(result));
}

// What is settled the client keeps itself: it comes with the store's answers.
void StoreBackend::vote(const rendezvous::Vote& vote,
                        const std::vector<rendezvous::Successor>& /*successors*/) {
  const auto& latest = vote.latest;
  if (!latest.exists()) return;
  store::Place place;
  place.electorate = {static_cast<std::uint64_t>(latest.era),
                      static_cast<std::uint64_t>(latest.round)};
  place.rank = rank_of(latest.rank);
  place.nodes = static_cast<std::uint32_t>(latest.nodes);
  place.casting = rank_of(latest.casting);
  client_.vote(place);
}

void StoreBackend::close() {
  client_.close();
}

}  // namespace drun::launcher
