// This end of the tests between nodes: who can be reached, how fast, and how far clocks are apart.
// Blocks, each call for some seconds at most.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"

namespace drun::doctor {

// Connects to all at once. In their order: the connection, or why there is none by the deadline.
[[nodiscard]] std::vector<Result<FileDescriptor>> connect_links(
    const std::vector<Endpoint>& places, std::chrono::steady_clock::time_point deadline);

struct LinkTiming {
  std::int64_t latency_us = 0;  // of one answer, the median
  std::int64_t clock_us = 0;    // how far this clock is ahead of the other, by the fastest answer
};
// Over a new connection to a LinkServer.
[[nodiscard]] Result<LinkTiming> exchange_bytes(int socket, std::string_view token);

// Megabits a second, of a short stream over a new connection.
[[nodiscard]] Result<std::int64_t> stream_bytes(int socket, std::string_view token);

// Of a connection: what the kernel knows of its way; 0: not known.
[[nodiscard]] int path_mtu_of(int socket);
}  // namespace drun::doctor
