// The load: many connections to one server from one thread, on epoll.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "bench/histogram.hpp"
#include "bench/limit_server.hpp"
#include "bench/server_process.hpp"
#include "drun/store/client.hpp"

namespace drun::bench {

// What one connection asks again and again.
struct Workload {
  std::string name;
  std::size_t connections = 1;
  std::size_t depth = 1;  // requests in flight on each connection
  // A request of connection `number`; of the same size for all.
  std::function<std::string(std::size_t number, store::TcpStoreVersion version)> request;
  std::size_t operations = 1;  // that one request counts for
  std::size_t reply_bytes = 0;
  // What a store's reply begins with; empty: anything.
  std::string reply_begins{};
  // Sent once by one connection beforehand; has no reply.
  std::function<std::string(store::TcpStoreVersion version)> prepare{};
};

struct Measurement {
  bool ok = false;
  std::string problem;  // if not ok
  double seconds = 0;
  std::uint64_t operations = 0;
  std::uint64_t server_cpu = 0;      // nanoseconds
  Histogram latency;                 // of a request
  double memory_per_connection = 0;  // bytes; of storms only
  double barrier_seconds = 0;        // of storms only

  [[nodiscard]] double rate() const { return static_cast<double>(operations) / seconds; }
  [[nodiscard]] double cpu_per_operation() const {  // microseconds
    return operations == 0
               ? 0
               : static_cast<double>(server_cpu) / 1e3 / static_cast<double>(operations);
  }
};

using Duration = std::chrono::steady_clock::duration;

// Requests without a pause for `time`, after a fifth of it to warm up.
[[nodiscard]] Measurement run_requests(const ServerProcess& server, LimitSizes& sizes,
                                       const Workload& workload, Duration time);

// Rounds of: all connections wait for a key, one more sets it. An operation is a released wait; its
// latency counts from the set.
[[nodiscard]] Measurement run_waits(const ServerProcess& server, LimitSizes& sizes,
                                    std::size_t connections, Duration time);

// All connect at once, greet, count themselves with an ADD, and then pass a barrier: each waits for
// a key, one more sets it. An operation is a connection; its latency counts from the beginning to
// its ADD's reply. Gives up after `limit`.
[[nodiscard]] Measurement run_storm(const ServerProcess& server, LimitSizes& sizes,
                                    std::size_t connections, Duration limit);

}  // namespace drun::bench
