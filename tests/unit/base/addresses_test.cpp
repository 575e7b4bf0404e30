#include "base/addresses.hpp"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<Interface> kInterfaces{
    {"lo", {"127.0.0.1", "::1"}},
    {"eth0", {"192.0.2.7", "2001:db8::7", "fe80::7%eth0"}},
    {"ib0", {"fe80::1b0%ib0"}},
    {"down0", {}},
};

TEST(AddressesTest, NumericAddressesAreRecognisedWithoutANameServer) {
  EXPECT_THAT(numeric_addresses("10.0.0.1"), ElementsAre("10.0.0.1"));
  EXPECT_THAT(numeric_addresses("2001:DB8:0::1"), ElementsAre("2001:db8::1"));
  EXPECT_THAT(numeric_addresses("[::1]"), ElementsAre("::1"));
  EXPECT_THAT(numeric_addresses("::ffff:10.0.0.1"), ElementsAre("10.0.0.1"));
  EXPECT_THAT(numeric_addresses("fe80::1%eth0"), ElementsAre("fe80::1%eth0"));
  EXPECT_THAT(numeric_addresses("[fe80::1%eth0]"), ElementsAre("fe80::1%eth0"));
  EXPECT_THAT(numeric_addresses("localhost"), ElementsAre("127.0.0.1"));
  for (const char* name : {"", "node7", "127.1", "10.0.0.256", "1.2.3", "::g", "localhost.x"}) {
    EXPECT_THAT(numeric_addresses(name), IsEmpty()) << name;
  }
}

TEST(AddressesTest, OwnAddressesAreThoseOfTheInterfaces) {
  for (const char* own : {"192.0.2.7", "2001:db8::7", "2001:0db8:0:0::7", "fe80::7", "fe80::7%eth0",
                          "::ffff:192.0.2.7", "127.0.0.1", "127.8.9.10", "::1", "0.0.0.0", "::"}) {
    EXPECT_TRUE(is_own_address(own, kInterfaces)) << own;
  }
  for (const char* other : {"192.0.2.8", "2001:db8::8", "fe80::8", "node7", "", "126.0.0.1"}) {
    EXPECT_FALSE(is_own_address(other, kInterfaces)) << other;
  }
}

TEST(AddressesTest, LoopbackIsAWholeNetworkInIPv4AndOneAddressInIPv6) {
  for (const char* loopback : {"127.0.0.1", "127.255.0.3", "::1", "[::1]", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_own_address(loopback, {})) << loopback;
    EXPECT_TRUE(is_loopback_address(loopback)) << loopback;
  }
  EXPECT_TRUE(is_loopback_address("localhost"));
  for (const char* other : {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "localhost.example", "127"})
    EXPECT_FALSE(is_loopback_address(other)) << other;
  for (const char* other : {"128.0.0.1", "::2", "localhost", ""})
    EXPECT_FALSE(is_own_address(other, {})) << other;
}

TEST(AddressesTest, AnInterfaceIsReachedByItsBestAddress) {
  EXPECT_EQ(interface_address("eth0", kInterfaces), "192.0.2.7");
  EXPECT_EQ(interface_address("ib0", kInterfaces), "fe80::1b0%ib0");
  EXPECT_FALSE(interface_address("down0", kInterfaces));
  EXPECT_FALSE(interface_address("eth9", kInterfaces));
}

TEST(AddressesTest, ThisMachineHasALoopbackInterfaceAndAName) {
  const auto interfaces = own_interfaces();
  EXPECT_TRUE(std::any_of(interfaces.begin(), interfaces.end(),
                          [](const Interface& interface) { return interface.name == "lo"; }));
  for (const Interface& interface : interfaces) {
    for (const std::string& address : interface.addresses) {
      EXPECT_TRUE(is_own_address(address)) << address;
      EXPECT_TRUE(address != "::" && address != "0.0.0.0") << interface.name;
      EXPECT_EQ(address.ends_with("%" + interface.name), address.starts_with("fe80:")) << address;
    }
    EXPECT_TRUE(std::is_partitioned(
        interface.addresses.begin(), interface.addresses.end(),
        [](const std::string& address) { return address.find(':') == std::string::npos; }))
        << "IPv4 first";
  }
  EXPECT_FALSE(is_own_address("192.0.2.255"));
  EXPECT_FALSE(own_host_name().empty());
}

}  // namespace
}  // namespace drun::launcher
