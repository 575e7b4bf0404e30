#include "launcher/leaving/store_linger.hpp"

#include <utility>
#include <variant>

namespace drun::launcher {

StoreLinger::Step StoreLinger::on_event(const rendezvous::KeyValueEvent& event) {
  if (const auto* snapshot = std::get_if<rendezvous::WatchSnapshot>(&event)) {
    if (snapshot->watch != kWatch) return Step::None;
    others_.on_snapshot(snapshot->entries);
  } else if (const auto* changes = std::get_if<rendezvous::WatchChanges>(&event)) {
    if (changes->watch != kWatch) return Step::None;
    others_.on_changes(changes->changes);
  } else {
    return Step::None;
  }
  if (others_.empty()) return Step::StopStore;
  return std::exchange(said_, true) ? Step::None : Step::Say;
}

std::string StoreLinger::text() const {
  return "the job has ended; this agent serves the store on for rendezvous id " + others_.text() +
         ", until a signal or their end";
}

}  // namespace drun::launcher
