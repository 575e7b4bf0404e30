// The page as it is sent: page.html, compiled in.
#pragma once

#include <string_view>

namespace drun::launcher {

[[nodiscard]] std::string_view page_html();

}  // namespace drun::launcher
