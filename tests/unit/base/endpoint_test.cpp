#include "drun/base/endpoint.hpp"

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(EndpointTest, ReadsHostsAddressesAndPorts) {
  const struct {
    const char* text;
    const char* host;
    int port;
  } cases[] = {
      {"node0", "node0", 29400},
      {"node0:1", "node0", 1},
      {"10.0.0.1:65535", "10.0.0.1", 65535},
      {"[::1]:29500", "::1", 29500},
      {"[fe80::1%eth0]", "fe80::1%eth0", 29400},
      {"::1", "::1", 29400},
      {"::1:29500", "::1", 29500},
      {"a.b-c.d:0", "a.b-c.d", 0},
  };
  for (const auto& c : cases) {
    const auto result = parse_endpoint(c.text, 29400);
    ASSERT_TRUE(result) << c.text << ": " << result.error().what();
    EXPECT_EQ(result->host, c.host) << c.text;
    EXPECT_EQ(result->port, c.port) << c.text;
  }
}

TEST(EndpointTest, RefusesWhatIsNoEndpointAndQuotesIt) {
  for (const char* text : {"", ":29500", "host:", "host:70000", "host:-1", "host:1x", "ho st:1",
                           "[::1", "[::1]x", "h/x:1", "1:2:3", "127.1"}) {
    const auto result = parse_endpoint(text, 1);
    ASSERT_FALSE(result) << text;
    EXPECT_NE(result.error().what().find(std::string("'") + text + "'"), std::string::npos)
        << result.error().what();
  }
}

TEST(EndpointTest, SaysWhyItIsNoAddress) {
  EXPECT_EQ(parse_endpoint("1:2:3", 1).error().what(), "'1:2:3': 1:2 is no IPv6 address");
  EXPECT_EQ(parse_endpoint("127.1:5", 1).error().what(),
            "'127.1:5': 127.1 is no IPv4 address, which has four numbers");
  EXPECT_TRUE(parse_endpoint("1a.2", 1));
  EXPECT_TRUE(parse_endpoint("123.456.123.456", 1)) << "nanoGPT's placeholder";
}

TEST(EndpointTest, WritesBracketsAroundIpv6) {
  EXPECT_EQ(to_string(Endpoint{"::1", 5}), "[::1]:5");
  EXPECT_EQ(to_string(Endpoint{"n", 5}), "n:5");
}

}  // namespace
}  // namespace drun
