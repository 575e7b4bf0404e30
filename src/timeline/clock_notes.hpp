// What to say of the clocks of a job's hosts: few sentences, however many hosts there are. Pure.
#pragma once

#include <string>
#include <vector>

#include "timeline/clocks.hpp"

namespace drun::timeline {

// `notes`: of set_clocks_right(). Of a clock that was wrong by less than a millisecond nothing is
// said.
[[nodiscard]] std::vector<std::string> sentences_of(const std::vector<ClockNote>& notes);

}  // namespace drun::timeline
