// What files below /proc/PID say, as text.
#pragma once

#include <string>
#include <string_view>

namespace drun {

// Of the text of a "stat" (proc(5)), from the state on: "S 1 ...". Before it is the program's name,
// which may hold anything, blanks and brackets too. Empty: it is no such text.
[[nodiscard]] std::string_view stat_from_state(std::string_view stat);

// What a link names, as "fd/0" does, without touching that: it may be on a server that gives no
// answer. Cut at 4 KiB. Empty: it cannot be read.
[[nodiscard]] std::string link_target(const std::string& link);

}  // namespace drun
