#include "doctor/link_test.hpp"

#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctor/link_server.hpp"

namespace drun::doctor {
namespace {

const std::string kToken(kTokenSize, 't');

std::chrono::steady_clock::time_point soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(60);
}

FileDescriptor link_to(const LinkServer& server) {
  auto links = connect_links({{"127.0.0.1", server.port()}}, soon());
  return std::move(links.front()).value_or(FileDescriptor());
}

TEST(LinkTest, MeasuresAnExchangeAndAStream) {
  const LinkServer server(kToken);
  const auto echo = link_to(server);
  const auto exchange = exchange_bytes(echo.get(), kToken);
  ASSERT_TRUE(exchange) << exchange.error().what();
  EXPECT_GT(exchange->latency_us, 0);
  EXPECT_LT(std::abs(exchange->clock_us), 60'000'000) << "it is one clock";
  const auto sink = link_to(server);
  const auto speed = stream_bytes(sink.get(), kToken);
  ASSERT_TRUE(speed) << speed.error().what();
  EXPECT_GT(*speed, 0);
  EXPECT_GT(path_mtu_of(sink.get()), 0);
}

TEST(LinkTest, AStrangerIsNotServed) {
  const LinkServer server(kToken);
  const auto echo = link_to(server);
  EXPECT_FALSE(exchange_bytes(echo.get(), std::string(kTokenSize, 'x')));
}

// The first node of a large job answers all others: not with a descriptor for each that ever came.
TEST(LinkTest, AServerNeedsNoDescriptorForThoseThatHaveGone) {
  const LinkServer server(kToken);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{64, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  int answers = 0;
  for (int i = 0; i < 200; ++i) {
    const auto echo = link_to(server);
    if (exchange_bytes(echo.get(), kToken)) ++answers;
  }
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(answers, 200);
}

TEST(LinkTest, SaysWhyAWayIsClosed) {
  std::uint16_t port = 0;
  {
    const LinkServer server(kToken);
    port = server.port();
  }
  const auto links = connect_links({{"127.0.0.1", port}, {"no address", 1}}, soon());
  ASSERT_FALSE(links[0]);
  EXPECT_THAT(links[0].error().what(), testing::HasSubstr("refused"));
  EXPECT_FALSE(links[1]);
}

}  // namespace
}  // namespace drun::doctor
