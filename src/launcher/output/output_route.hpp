// Where one stream of one worker goes, from the user's choices. Pure.
#pragma once

#include "launcher/options/options.hpp"

namespace drun::launcher {

struct Route {
  bool console = false;   // shown, through drun
  bool log = false;       // kept in a log file
  bool direct = false;    // the log file is the worker's own descriptor
  bool nothing = false;   // it goes nowhere: the worker gets /dev/null
  bool prefix = false;    // each line shown begins with the rank's prefix
  bool filter = false;    // lines are looked through for --duplicate-*-filters
  bool terminal = false;  // may be a pseudo-terminal

  bool operator==(const Route&) const = default;
};

// `keeps_logs`: there is a --log-dir. `error`: stderr, whose end is always kept for the failure
// report.
[[nodiscard]] Route route_of(const OutputChoices& choices, int local_rank, bool error,
                             bool keeps_logs);

}  // namespace drun::launcher
