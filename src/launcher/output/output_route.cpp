#include "launcher/output/output_route.hpp"

#include <algorithm>

namespace drun::launcher {

Route route_of(const OutputChoices& choices, int local_rank, bool error, bool keeps_logs) {
  const int bit = error ? StreamChoice::kErr : StreamChoice::kOut;
  const bool tee = (choices.tee.of(local_rank) & bit) != 0;
  const bool redirect = !tee && (choices.redirects.of(local_rank) & bit) != 0;
  const auto& shown = choices.local_ranks_filter;
  const auto& texts = error ? choices.duplicate_stderr_filters : choices.duplicate_stdout_filters;

  Route route;
  route.console =
      !redirect && (!shown || std::find(shown->begin(), shown->end(), local_rank) != shown->end());
  route.log = keeps_logs && (tee || redirect);
  route.direct = route.log && redirect && choices.log_max_size == 0;
  route.prefix = tee;
  route.filter = tee && keeps_logs && !texts.empty();
  route.nothing = !error && !route.console && !route.log && !route.filter;
  route.terminal = route.console && !tee && !choices.fold;
  return route;
}

}  // namespace drun::launcher
