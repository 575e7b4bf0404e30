#include "base/socket_address.hpp"

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(SocketAddressTest, NumbersThereAndBack) {
  for (const Endpoint& each : {Endpoint{"127.0.0.1", 80}, Endpoint{"2001:db8::1", 65'535}})
    EXPECT_EQ(to_endpoint(numeric_address(each)), each);
  EXPECT_EQ(to_endpoint(numeric_address({"::ffff:10.0.0.1", 7})), (Endpoint{"10.0.0.1", 7}));
}

TEST(SocketAddressTest, ANameIsNoNumber) {
  EXPECT_TRUE(numeric_address({"localhost", 80}).empty());
  EXPECT_EQ(to_endpoint({}).host, "");
}

TEST(SocketAddressTest, WhatIsNoSocketHasNoAddress) {
  EXPECT_TRUE(local_address_of(-1).empty());
  EXPECT_TRUE(peer_address_of(-1).empty());
}

}  // namespace
}  // namespace drun
