// Files that a user, or a variable of his environment, names.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/file_worker.hpp"
#include "drun/base/result.hpp"

namespace drun {

// More than any list of hosts or switches has.
inline constexpr std::size_t kMostOfGivenFile = 16 * 1024 * 1024;

// All of it: also of a pipe, once all of its writers have closed it. It comes back whatever the
// file is: a pipe that nobody writes to and a file server that is gone get `limit`, and of what has
// no end no more is read than kMostOfGivenFile. The error says why, but not the name: "No such file
// or directory". A signal does what it would do without.
[[nodiscard]] Result<std::string> read_given_file(const std::string& path,
                                                  std::chrono::milliseconds limit = kFilesLimit);

}  // namespace drun
