// --exclude-file: hosts that other jobs have set aside, a line each: "HOST TIME REASON". A line
// counts for a day. Jobs that write it at one moment may lose one another's line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"

namespace drun::launcher {

inline constexpr std::int64_t kExcludedFor = 86'400;  // seconds
inline constexpr std::size_t kMostExcluded = 1'000;   // hosts that are kept, the newest
inline constexpr std::size_t kMaxExcludeFile = 1'048'576;

using ExcludedHosts = std::map<std::string, std::string>;  // host -> why

// Of the file's text at a time, in Unix seconds; what is not understood is left out. Pure.
[[nodiscard]] ExcludedHosts parse_excluded_hosts(std::string_view text, std::int64_t now);
// The number of the first line that is neither a comment nor understood, from 1 on; 0: none. Pure.
[[nodiscard]] std::size_t odd_line(std::string_view text);
// The text with one more; lines of this host and those that count no more are gone. What somebody
// else has written there, as comments, stays. Pure.
[[nodiscard]] std::string with_excluded_host(std::string_view text, const std::string& host,
                                             std::string_view why, std::int64_t now);

// The text without the line that with_excluded_host() has added for this host and reason. Pure.
[[nodiscard]] std::string without_excluded_host(std::string_view text, std::string_view host,
                                                std::string_view why);

// Before a job: waits for the file system, but not for long. A file that is not there is empty; its
// folder must be there. The error names the flag.
[[nodiscard]] Result<ExcludedHosts> ask_excluded_hosts(const std::string& file);
// Both wait for the file system, in a thread for that, and throw.
void add_excluded_host(const std::string& file, const std::string& host, const std::string& why);
void remove_excluded_host(const std::string& file, const std::string& host, const std::string& why);

}  // namespace drun::launcher
