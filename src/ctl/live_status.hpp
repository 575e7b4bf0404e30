// drunctl status --watch: the jobs of a store, shown again whenever something has changed, wherever
// the store goes.
#pragma once

#include <optional>
#include <string>

#include "ctl/drunctl.hpp"
#include "ctl/drunctl_jobs.hpp"
#include "store/client/control_query.hpp"

namespace drun::ctl {

// How long one of several places is asked whether a store is there.
inline constexpr std::chrono::milliseconds kPlaceLimit{2'000};

// " 'ID'", if one was asked for.
[[nodiscard]] std::string named(const CtlOptions& options);
// Of the keys of a job; of all jobs.
[[nodiscard]] std::string prefix_of(const std::optional<std::string>& job);

// Until the jobs have ended, or `end`; the exit code. Throws NoReader. A store goes with the job,
// whose end was shown by then; for one that is lost there may be another.
int watch_at(const CtlOptions& options, const Endpoint& endpoint,
             const std::optional<std::string>& job, store::ControlQuery query,
             WatchedDocuments watched, std::optional<Deadline> end);

}  // namespace drun::ctl
