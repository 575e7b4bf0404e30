// The limit of open descriptors: each worker takes two of this process, and the usual soft limit is
// 1024.
#pragma once

#include <sys/resource.h>

#include <functional>
#include <optional>
#include <string>
#include <system_error>

namespace drun {

// Raises the soft limit to the hard one and calls `run` with the limit as it was when this program
// started, for the workers (nothing: unknown). What `run` throws for want of descriptors says what
// to do about it. One thread; a process forked by `run` still knows the first limit.
int with_raised_open_files(const std::function<int(const std::optional<rlimit>& before)>& run);

// What to do about it where `code` says that there was no descriptor; else empty.
[[nodiscard]] std::string open_files_advice(const std::error_code& code);

}  // namespace drun
