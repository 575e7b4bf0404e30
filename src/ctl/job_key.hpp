// The keys of jobs for which drun has made the token, as their agents on this host, and the drun
// that has started them from here, give them to their user.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "ctl/drunctl.hpp"
#include "drun/base/endpoint.hpp"
#include "secure/tls_context.hpp"

namespace drun::ctl {

using Tls = std::shared_ptr<const secure::TlsContext>;

// Of this job, whose agents here say that its store is at `place`; null: nobody has made one.
[[nodiscard]] Tls made_key(const std::string& job, const std::string& place,
                           std::chrono::steady_clock::time_point deadline);

// Of the job whose store is there.
[[nodiscard]] Tls made_key_at(const Endpoint& store,
                              std::chrono::steady_clock::time_point deadline);

// Prints the token of a job at a store that has the token given.
int job_token(const CtlOptions& options);

// Prints what the status page asks for, of the token that was given, or else of the job.
int page_key(const CtlOptions& options, std::chrono::steady_clock::time_point deadline);

}  // namespace drun::ctl
