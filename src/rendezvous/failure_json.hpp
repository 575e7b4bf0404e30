// A failure as JSON, with as much of its texts as a document has room for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rendezvous/document_parts.hpp"
#include "rendezvous/failure_merge.hpp"

namespace drun::rendezvous {

// Of a document that tells of a failure. Every member of a large job may have failed, and a leader
// reads the documents of all at once: so many fit 16,384 times into the 256 MiB that a store shows
// of its keys. The outcome goes to every agent.
inline constexpr std::size_t kMaxDocument = 14 * 1024;

// How much of a failure's texts is told.
struct Room {
  std::size_t text = kMaxText;             // bytes of each
  std::size_t groups = kMaxFailureGroups;  // of ranks that failed in the same way
  [[nodiscard]] Room half() const { return {text / 2, groups / 2}; }
};

[[nodiscard]] Json to_json(const FailureSummary& f, const Room& room);
void read(JsonReader& in, FailureSummary& f);

// The last of them.
[[nodiscard]] std::vector<std::string> clip(const std::vector<std::string>& lines,
                                            std::size_t room = kMaxText);

// With as much of a failure's texts as fits.
template <typename Build>
std::string dump_in_room(const Build& build) {
  std::string text;
  Room room;
  do {
    text = json_text(build(room));
    room = room.half();
  } while (text.size() > kMaxDocument && room.text > 0);
  return text;
}

}  // namespace drun::rendezvous
