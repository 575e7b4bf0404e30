// The page without its data: timeline.html, compiled in.
#pragma once

#include <string_view>

namespace drun::timeline {

[[nodiscard]] std::string_view page_template();

}  // namespace drun::timeline
