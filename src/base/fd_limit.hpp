// The limit of open file descriptors (ulimit -n). The usual soft limit is 1024: too few for a store
// with a thousand peers, or for an agent, to which each worker costs two.
#pragma once

#include <sys/resource.h>

#include <functional>
#include <optional>
#include <string>
#include <system_error>

namespace drun {

// Raises the soft limit to the hard one. Returns what both were before; nullopt: not raised.
std::optional<rlimit> raise_fd_limit();

// The same, then calls `run` with the limit as it was when this program started, for the workers
// (nullopt: unknown). What `run` throws for want of descriptors says what to do about it. One
// thread; a process forked by `run` still knows the first limit.
int with_raised_fd_limit(const std::function<int(const std::optional<rlimit>& before)>& run);

// What to do about it if `code` says that there was no descriptor; else empty.
[[nodiscard]] std::string fd_limit_advice(const std::error_code& code);

}  // namespace drun
