#include "rendezvous/stand_delay.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/fnv1a.hpp"

namespace drun::rendezvous {
namespace {

// More than a round trip, as a rule.
constexpr Milliseconds kStandApart{5};
// Who hosts the store stands at once; if nobody does, the first of the others stands soon.
constexpr Milliseconds kStandBehindTheHost{10};
constexpr unsigned kStandWithin = 100;  // milliseconds, of a round that is not known

Milliseconds spread(const std::string& ticket, unsigned range) {
  const std::uint64_t hash = fnv1a(ticket);
  return Milliseconds((hash ^ (hash >> 32)) % range);
}

}  // namespace

Milliseconds stand_delay(const Config& config, bool is_host, int nodes,
                         std::optional<int> group_rank) {
  if (is_host || config.stands_at_once) return Milliseconds(0);
  const auto range = 4 * std::min(static_cast<unsigned>(config.max_nodes), kStandWithin / 4) +
                     std::min(static_cast<unsigned>(nodes), 100'000U) / 50;
  const auto others = kStandBehindTheHost + spread(config.ticket, range);
  return group_rank ? std::min(kStandApart * *group_rank, others) : others;
}

}  // namespace drun::rendezvous
