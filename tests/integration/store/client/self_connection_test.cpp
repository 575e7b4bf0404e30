// Where nobody listens, a port that the kernel may give to clients can be given to the very client
// that connects to it: TCP then joins the socket to itself, and the client would talk to itself and
// hold the port that the server wants. All clients take it for refused.
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>

#include "drun/store/client.hpp"
#include "drun/store/control_client.hpp"
#include "store/client/socket.hpp"
#include "support/awaited_client.hpp"
#include "support/in_child.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;

constexpr int kSkipped = 77;

// A network of this process's own, with nothing but loopback.
bool make_network() {
  if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::snprintf(loopback.ifr_name, sizeof loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  return ::ioctl(socket.get(), SIOCSIFFLAGS, &loopback) == 0;
}

// The next connection that is made here comes from this port, whatever it goes to.
bool only_port(int port) {
  const FileDescriptor range(
      ::open("/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(port) + " " + std::to_string(port);
  return ::write(range.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

Endpoint self(int port) {
  return {"127.0.0.1", static_cast<std::uint16_t>(port)};
}

bool connects_to_itself(int port) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress address = literal_addresses(self(port)).at(0);
  return ::connect(socket.get(), address.get(), address.length) == 0;
}

bool refused(const Error& error) {
  std::fprintf(stderr, "%s\n", error.what().c_str());
  return error.code() == std::errc::connection_refused;
}

// 0: all is well; else which part is not.
int try_all_clients() {
  if (!make_network() || !only_port(40'000)) return kSkipped;
  if (!connects_to_itself(40'000)) return 1;
  const ClientOptions once{.retry = false};
  const auto deadline = std::chrono::steady_clock::now() + 60s;

  if (!only_port(40'001)) return 2;
  const auto client = Client::connect(self(40'001), deadline, once);
  if (client || !refused(client.error())) return 3;

  if (!only_port(40'002)) return 4;
  const auto async = test::AwaitedClient::connect(self(40'002), deadline, once);
  if (async || !refused(async.error())) return 5;

  if (!only_port(40'003)) return 6;
  asio::io_context io(1);
  std::string detail;
  ControlOptions options;
  options.endpoint = self(40'003);
  options.connect_timeout = 0ms;
  ControlClient control(io, options, [&](ControlEvent event) {
    if (const auto* link = std::get_if<ControlLink>(&event)) detail = link->detail;
  });
  control.open();
  while (detail.empty() && io.run_one() > 0) {
  }
  std::fprintf(stderr, "%s\n", detail.c_str());
  return detail.find("Connection refused") == detail.npos ? 7 : 0;
}

TEST(SelfConnectionTest, CountsAsRefusedForEveryClient) {
  const int code = process::test::in_child(try_all_clients);
  if (code == kSkipped) GTEST_SKIP() << "no network namespace can be made here";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace drun::store
