#include "store/server/job_notes.hpp"

#include <algorithm>
#include <string>

namespace drun::store {

void write_gone(KeyTable& table, std::string_view job, const Vote& vote) {
  const auto write = [&](const Place& place) {
    if (place.rank == kNoRank || place.electorate.is_founding()) return;
    const std::string key = std::string(job) + "gone/" + std::to_string(place.electorate.era) +
                            "." + std::to_string(place.electorate.round) + "." +
                            std::to_string(place.rank);
    (void)table.put(key, "");
  };
  if (vote.settled.nodes > 0) write(vote.settled);
  std::for_each(vote.later.begin(), vote.later.end(), write);
  table.publish();
}

void write_silence(KeyTable& table, std::string_view job, Milliseconds silence) {
  (void)table.put(std::string(job) + "silence", std::to_string(silence.count()));
  table.publish();
}

}  // namespace drun::store
