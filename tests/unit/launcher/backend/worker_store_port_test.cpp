#include "launcher/backend/worker_store_port.hpp"

#include <fstream>
#include <set>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

TEST(WorkerStorePortTest, LiesOutsideTheRangeOfOutgoingConnectionsAndVaries) {
  unsigned first = 0;
  unsigned last = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  std::set<unsigned> seen;
  for (int i = 0; i < 50; ++i) {
    const auto port = find_worker_store_port();
    ASSERT_TRUE(port) << port.error().what();
    EXPECT_TRUE(*port < first || *port > last) << *port;
    seen.insert(*port);
  }
  EXPECT_GT(seen.size(), 40U);
}

}  // namespace
}  // namespace drun::launcher
