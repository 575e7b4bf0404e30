// A timeline as one HTML page that asks nobody for anything. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "timeline/timeline.hpp"

namespace drun::timeline {

// Up to so many ranks have a row each; of more, each node has one.
inline constexpr std::size_t kMostRankRows = 512;

// The page, in ASCII but for what its template holds. No text of an event can be taken for markup.
[[nodiscard]] std::string timeline_page(const Timeline& timeline);
// The data in it: JSON in ASCII without "<".
[[nodiscard]] std::string page_data(const Timeline& timeline);

}  // namespace drun::timeline
