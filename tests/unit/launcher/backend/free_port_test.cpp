#include "launcher/backend/free_port.hpp"

#include <fstream>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

TEST(FreePortTest, LiesOutsideTheRangeOfOutgoingConnectionsAndIsNobodyElses) {
  unsigned first = 0;
  unsigned last = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  std::vector<HeldPort> held;
  std::set<unsigned> seen;
  for (int i = 0; i < 500; ++i) {
    auto port = hold_free_port();
    ASSERT_TRUE(port) << port.error().what();
    EXPECT_TRUE(port->port < first || port->port > last) << port->port;
    EXPECT_TRUE(seen.insert(port->port).second) << port->port;
    held.push_back(std::move(*port));
  }
}

}  // namespace
}  // namespace drun::launcher
