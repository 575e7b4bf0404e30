// Requests as they go through libcurl.
#include "etcd/http_client.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "etcd/curl_library.hpp"
#include "etcd_client.hpp"
#include "http_server.hpp"
#include "support/drun_process.hpp"
#include "support/patience.hpp"

namespace drun::etcd::test {
namespace {

using drun::test::kPatience;
using rendezvous::Link;
using testing::HasSubstr;

class HttpClientTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!curl_library()) GTEST_SKIP() << curl_library().error().what();
  }

  void start(const Tls& tls = {}) {
    HttpClient::Calls calls;
    calls.replied = [this](std::uint64_t call, const EtcdReply& reply, const HttpEnds&) {
      replies_[call] = reply;
    };
    calls.streamed = [](std::uint64_t, std::string_view) {};
    client_ = std::make_unique<HttpClient>(io_, tls, std::move(calls));
  }
  static drun::etcd::HttpServer at(const HttpServer& server) {
    return {{"127.0.0.1", server.port()}, {}};
  }
  EtcdReply ask(const HttpServer& server, const std::string& path, bool once = false) {
    const auto id = ++last_;
    client_->post(at(server), {id, path, "{}", false, once}, "");
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!replies_.contains(id) && std::chrono::steady_clock::now() < deadline) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(100));
    }
    return replies_[id];
  }

  asio::io_context io_;
  std::unique_ptr<HttpClient> client_;
  std::map<std::uint64_t, EtcdReply> replies_;
  std::uint64_t last_ = 0;
};

// A server that has carried it out and dies before it says so.
TEST_F(HttpClientTest, WhatMustNotBeDoneTwiceIsSentOnce) {
  HttpServer server(AF_INET, [](const std::string& path) -> std::optional<std::string> {
    if (path == "/read") return HttpServer::ok("{}");
    return std::nullopt;
  });
  start();
  EXPECT_EQ(ask(server, "/read").status, 200);
  const EtcdReply reply = ask(server, "/commit", true);
  EXPECT_EQ(reply.status, 0);
  EXPECT_TRUE(reply.closed);
  EXPECT_EQ(server.asked("/commit"), 1);
  // The connection of before is there still, and others may go by it.
  EXPECT_EQ(ask(server, "/read").status, 200);
  EXPECT_EQ(server.asked("/read"), 2);
}

// Files may be where nobody answers: here, a pipe that nobody writes into.
TEST_F(HttpClientTest, AFileThatHangsDoesNotHoldTheCaller) {
  HttpServer server(AF_INET, [](const std::string&) { return std::nullopt; });
  const drun::test::TempDir folder;
  const std::string pipe = folder.path() / "ca.pem";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads();
  Tls tls;
  tls.used = true;
  tls.ca_file = pipe;
  start(tls);
  client_->post(at(server), {1, "/read", "{}", false, false}, "");
  FileDescriptor writer;
  ASSERT_TRUE(drun::test::eventually([&] {  // until it is being opened for reading
    writer.reset(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return static_cast<bool>(writer);
  }));
  for (std::uint64_t i = 2; i < 10'000; ++i)
    client_->post(at(server), {i, "/read", "{}", false, false}, "");
  client_.reset();
  // The thread that was left behind ends: there is no more in the pipe, and nothing to open again.
  std::filesystem::remove(pipe);
  writer.reset();
  EXPECT_TRUE(drun::test::eventually([&] { return threads() == before; }));
}

// The end of this process that is connected to this port of its own.
int socket_to(std::uint16_t port) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        peer.sin_family == AF_INET && ntohs(peer.sin_port) == port)
      return fd;
  }
  return -1;
}

// A stream on which nothing comes may have lost its other end.
TEST_F(HttpClientTest, AnEndThatHasVanishedIsFoundOut) {
  HttpServer server(AF_INET, [](const std::string&) { return HttpServer::ok("{}"); });
  start();
  ASSERT_EQ(ask(server, "/").status, 200);
  const int socket = socket_to(server.port());
  ASSERT_GE(socket, 0) << "it is kept for the next request";
  const auto option = [socket](int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    return ::getsockopt(socket, level, name, &value, &size) == 0 ? value : -1;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 5);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPINTVL), 2);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPCNT), 3);
}

// What is spelled in another way than the system does, and what stands for both protocols.
TEST_F(HttpClientTest, EndpointsOfIpv6) {
  HttpServer server(AF_INET6, [](const std::string&) { return HttpServer::ok("nonsense"); });
  if (!server.listens()) GTEST_SKIP() << "this machine has no IPv6";
  for (const char* host : {"::1", "0:0:0:0:0:0:0:1", "0::1", "localhost"}) {
    EtcdOptions options;
    options.cluster.endpoints = {{host, server.port()}};
    options.connect_timeout = std::chrono::seconds(1);
    EtcdClient client(options);
    ASSERT_TRUE(client.until_link(Link::Failed)) << host;
    EXPECT_THAT(client.all<rendezvous::LinkEvent>().back().detail, HasSubstr("malformed lease"))
        << host;
  }
}

}  // namespace
}  // namespace drun::etcd::test
