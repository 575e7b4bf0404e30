#include "doctor/link_test.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/tcp_calls.hpp"
#include "doctor/link_server.hpp"

namespace drun::doctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kAnswerLimit{10};
constexpr int kExchanges = 65;
constexpr std::chrono::milliseconds kStreamTime{200};
constexpr std::size_t kStreamBytes = std::size_t{64} * 1'048'576;  // at most

std::int64_t stamp_of(const std::array<char, kStampSize>& bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes)
    value = value << 8U | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::vector<Result<FileDescriptor>> connect_links(const std::vector<Endpoint>& places,
                                                  Clock::time_point deadline) {
  std::vector<Result<FileDescriptor>> links;
  for (const Endpoint& place : places)
    links.push_back(begin_connect(place));
  for (auto& link : links) {
    if (!link) continue;
    if (auto connected = end_connect(link->get(), deadline); !connected) link = connected.error();
  }
  return links;
}

Result<LinkTiming> exchange_bytes(int socket, std::string_view token) {
  const int on = 1;
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto deadline = Clock::now() + kAnswerLimit;
  if (const auto sent = send_all(socket, std::string(token) + kLinkEcho, deadline); !sent)
    return sent.error();
  std::vector<std::int64_t> times;
  std::int64_t fastest = 0;
  LinkTiming result;
  for (int i = 0; i < kExchanges; ++i) {
    const std::int64_t wall = wall_clock_us();
    const auto start = Clock::now();
    if (const auto sent = send_all(socket, "e", deadline); !sent) return sent.error();
    std::array<char, kStampSize> stamp{};
    if (const auto got = receive_all(socket, stamp.data(), stamp.size(), deadline); !got)
      return got.error();
    const auto took =
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
    times.push_back(took);
    if (i > 0 && took >= fastest) continue;
    fastest = took;
    result.clock_us = wall + took / 2 - stamp_of(stamp);
  }
  std::nth_element(times.begin(), times.begin() + kExchanges / 2, times.end());
  result.latency_us = std::max<std::int64_t>(1, times[kExchanges / 2]);
  return result;
}

Result<std::int64_t> stream_bytes(int socket, std::string_view token) {
  const std::string block(std::size_t{256} * 1024, '\x5a');
  const auto start = Clock::now();
  const auto deadline = start + kAnswerLimit;
  if (const auto sent = send_all(socket, std::string(token) + kLinkSink, deadline); !sent)
    return sent.error();
  std::size_t bytes = 0;
  while (bytes < kStreamBytes && Clock::now() < start + kStreamTime) {
    if (const auto sent = send_all(socket, block, deadline); !sent) return sent.error();
    bytes += block.size();
  }
  (void)::shutdown(socket, SHUT_WR);
  // Until all has come there, not only left here.
  char last = 0;
  if (const auto got = receive_all(socket, &last, 1, deadline); !got) return got.error();
  const auto took =
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(bytes) * 8 / std::max<std::int64_t>(1, took));
}

int path_mtu_of(int socket) {
  int mtu = 0;
  socklen_t size = sizeof mtu;
  if (::getsockopt(socket, IPPROTO_IP, IP_MTU, &mtu, &size) == 0) return mtu;
  size = sizeof mtu;
  return ::getsockopt(socket, IPPROTO_IPV6, IPV6_MTU, &mtu, &size) == 0 ? mtu : 0;
}

}  // namespace drun::doctor
