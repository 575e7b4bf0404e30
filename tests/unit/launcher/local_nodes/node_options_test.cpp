#include "launcher/local_nodes/node_options.hpp"

#include <optional>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

const Endpoint kStore{"127.0.0.1", 4321};

Options options_of_job() {
  Options options;
  options.local_nodes = 4;
  options.max_nodes = 3;
  options.master_port = 29500;
  options.conf.is_host = true;
  return options;
}

TEST(NodeOptionsTest, EachAgentIsANodeOfItsOwnAtTheParentsStore) {
  const Options options = node_options(options_of_job(), 2, kStore);
  EXPECT_EQ(options.endpoint, kStore);
  EXPECT_EQ(options.conf.is_host, false);
  EXPECT_EQ(options.local_nodes, 0);
  EXPECT_EQ(options.local_node, 2);
  EXPECT_EQ(options.max_nodes, 3);
}

TEST(NodeOptionsTest, NodesBeyondTheLargestNumberAreSpares) {
  EXPECT_EQ(node_options(options_of_job(), 0, kStore).node_rank, 0);
  EXPECT_EQ(node_options(options_of_job(), 2, kStore).node_rank, 2);
  EXPECT_EQ(node_options(options_of_job(), 3, kStore).node_rank, std::nullopt);
}

TEST(NodeOptionsTest, TheNetworkMayOrderThem) {
  Options options = options_of_job();
  options.rank_order = rendezvous::RankOrder::Topology;
  EXPECT_EQ(node_options(options, 0, kStore).node_rank, std::nullopt);
}

TEST(NodeOptionsTest, OnlyTheFirstMayHaveThePortOfTheWorkersStore) {
  EXPECT_EQ(node_options(options_of_job(), 0, kStore).master_port, 29500);
  EXPECT_EQ(node_options(options_of_job(), 1, kStore).master_port, std::nullopt);
}

}  // namespace
}  // namespace drun::launcher
