#include "store/server/job_places.hpp"

namespace drun::store {

bool JobPlaces::hear(std::string_view job, std::uint64_t generation, const Endpoint& endpoint,
                     Time now) {
  auto found = places_.find(job);
  if (found == places_.end()) {
    if (places_.size() >= kMost)
      std::erase_if(places_, [now](const auto& each) { return each.second.is_old(now); });
    if (places_.size() >= kMost) return false;
    found = places_.emplace(std::string(job), Place{}).first;
  }
  Place& place = found->second;
  const bool own = !place.until && place.generation >= generation;
  if (own || (!place.is_old(now) && place.generation > generation)) return false;
  place = {generation, endpoint, now + kHearsay};
  return true;
}

void JobPlaces::know(std::string_view job, std::uint64_t generation, const Endpoint& endpoint) {
  places_.insert_or_assign(std::string(job), Place{generation, endpoint, std::nullopt});
}

void JobPlaces::forget(std::string_view job) {
  const auto found = places_.find(job);
  if (found != places_.end()) places_.erase(found);
}

void JobPlaces::doubt(std::string_view job, std::uint64_t generation) {
  const auto found = places_.find(job);
  if (found == places_.end() || !found->second.until) return;
  if (found->second.generation <= generation) places_.erase(found);
}

control::Moved JobPlaces::find(std::string_view job, std::uint64_t above, Time now) const {
  const auto found = places_.find(job);
  if (found == places_.end()) return {};
  const Place& place = found->second;
  if (place.generation <= above || place.is_old(now)) return {};
  return {place.generation, place.endpoint.host, place.endpoint.port};
}

control::Moved JobPlaces::any(std::uint64_t above, Time now) const {
  for (const auto& [job, place] : places_)
    if (const control::Moved moved = find(job, above, now); moved.generation > 0) return moved;
  return {};
}

}  // namespace drun::store
