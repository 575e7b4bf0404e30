// Who gets which group rank.
#include "rendezvous/rank_assignment.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace drun::rendezvous {
namespace {

// A candidate as a test writes it: "host", arrival by place in the list.
struct Node {
  std::string host;
  std::optional<int> last;   // rank in the last round
  std::optional<int> asked;  // --node-rank
  bool is_host = false;
  std::string network{};  // "spine/leaf"
};

std::vector<std::string> placed(const std::vector<Node>& nodes, RankOrder order, int max_nodes) {
  std::vector<std::string> tickets(nodes.size());
  std::vector<MemberDocument> documents(nodes.size());
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    tickets[i] = std::to_string(i);
    documents[i].host = nodes[i].host;
    documents[i].node_rank = nodes[i].asked;
    documents[i].is_host = nodes[i].is_host;
    documents[i].network = nodes[i].network;
    candidates.push_back({&tickets[i], &documents[i], i + 1, nodes[i].last});
  }
  Config config;
  config.max_nodes = max_nodes;
  config.rank_order = order;
  std::vector<std::string> result;
  for (const auto& c : place(std::move(candidates), config))
    result.push_back(nodes[static_cast<std::size_t>(std::stoi(*c.ticket))].host);
  return result;
}

using Names = std::vector<std::string>;

TEST(NaturalOrderTest, ComparesRunsOfDigitsAsNumbers) {
  const Names sorted = {"",
                        "7",
                        "10",
                        "a",
                        "a1",
                        "a1b",
                        "a01c",
                        "a2",
                        "a10",
                        "a10b2",
                        "a10b10",
                        "node",
                        "node0",
                        "node7",
                        "node07x",
                        "node66",
                        "node66a",
                        "node100000000000000000000",
                        "node100000000000000000001"};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t j = 0; j < sorted.size(); ++j)
      EXPECT_EQ(natural_order(sorted[i], sorted[j]), i <=> j) << sorted[i] << " and " << sorted[j];
  }
  EXPECT_NE(natural_order("node7", "node07"), natural_order("node07", "node7"));
}

TEST(RankAssignmentTest, TheFirstOrderIsAskedForRanksThenTheHostThenNames) {
  EXPECT_EQ(
      placed({{"node66", {}, {}}, {"node7", {}, {}}, {"node8", {}, {}, true}}, RankOrder::Keep, 3),
      (Names{"node8", "node7", "node66"}));
  EXPECT_EQ(placed({{"c", {}, 0}, {"b", {}, {}, true}, {"a", {}, {}}}, RankOrder::Keep, 3),
            (Names{"c", "b", "a"}));
  EXPECT_EQ(placed({{"c", {}, 2}, {"b", {}, {}, true}, {"a", {}, 0}}, RankOrder::Keep, 3),
            (Names{"a", "b", "c"}));
  EXPECT_EQ(placed({{"b", {}, {}}, {"a", {}, {}}, {"h", {}, {}, true}}, RankOrder::Host, 3),
            (Names{"a", "b", "h"}));
  EXPECT_EQ(placed({{"b", {}, {}}, {"a", {}, {}}, {"h", {}, {}, true}}, RankOrder::Join, 3),
            (Names{"b", "a", "h"}));
}

TEST(RankAssignmentTest, SurvivorsKeepTheirRankAndAReplacementTakesTheDeadNodes) {
  // Of a, b, c, d the node b died; e comes.
  EXPECT_EQ(
      placed({{"a", 0, {}, true}, {"c", 2, {}}, {"d", 3, {}}, {"e", {}, {}}}, RankOrder::Keep, 4),
      (Names{"a", "e", "c", "d"}));
  // Nobody comes: the ranks close up, in order.
  EXPECT_EQ(placed({{"a", 0, {}, true}, {"c", 2, {}}, {"d", 3, {}}}, RankOrder::Keep, 4),
            (Names{"a", "c", "d"}));
  // In order of arrival the newcomer comes last; by name it is sorted in.
  EXPECT_EQ(placed({{"a", 0, {}}, {"c", 2, {}}, {"d", 3, {}}, {"b", {}, {}}}, RankOrder::Join, 4),
            (Names{"a", "c", "d", "b"}));
  EXPECT_EQ(placed({{"a", 0, {}}, {"c", 2, {}}, {"d", 3, {}}, {"b", {}, {}}}, RankOrder::Host, 4),
            (Names{"a", "b", "c", "d"}));
}

Node in(const std::string& network, const std::string& host, std::optional<int> last = {}) {
  return {host, last, {}, false, network};
}

TEST(RankAssignmentTest, NeighboursInTheNetworkAreNeighboursInRank) {
  // Below each switch by name, as numbers count; those of whom nobody knows last.
  EXPECT_EQ(placed({in("", "x"), in("s2/leaf10", "a"), in("s2/leaf9", "b"), in("s1/leaf9", "n10"),
                    in("s1/leaf9", "n9"), in("s2/leaf10", "c"), in("", "w")},
                   RankOrder::Topology, 7),
            (Names{"n9", "n10", "b", "a", "c", "w", "x"}));
  // A switch with nodes of its own comes before those below it.
  EXPECT_EQ(placed({in("s1/leaf1", "a"), in("s1", "b")}, RankOrder::Topology, 2),
            (Names{"b", "a"}));
  // leaf1 of one spine is not leaf1 of the other.
  EXPECT_EQ(
      placed({in("b/leaf1", "p"), in("a/leaf1", "q"), in("b/leaf1", "r")}, RankOrder::Topology, 3),
      (Names{"q", "p", "r"}));
}

TEST(RankAssignmentTest, OfTheSameNodesEachKeepsItsRankAndAskedForRanksAreGiven) {
  EXPECT_EQ(
      placed({{"asks", {}, 0, false, "z"}, in("s", "a"), in("s", "b")}, RankOrder::Topology, 3),
      (Names{"asks", "a", "b"}));
  // Two agents of one host: whoever had the lower rank has it again, though it came back later.
  const std::vector<std::string> tickets{"came first", "came later"};
  std::vector<MemberDocument> documents(2);
  Config config;
  config.max_nodes = 2;
  config.rank_order = RankOrder::Topology;
  const auto ordered =
      place({{&tickets[0], &documents[0], 1, 1}, {&tickets[1], &documents[1], 2, 0}}, config);
  EXPECT_EQ(*ordered.front().ticket, "came later");
}

// A newcomer stands beside its neighbours, whoever has to move.
TEST(RankAssignmentTest, ANewcomerIsSortedInByTheNetwork) {
  EXPECT_EQ(placed({in("s1", "a", 0), in("s2", "c", 1), in("s2", "d", 2), in("s1", "b")},
                   RankOrder::Topology, 4),
            (Names{"a", "b", "c", "d"}));
}

TEST(RankAssignmentTest, OfTooManyThoseOfTheLastRoundThenAskersThenTheHostThenTheFirstAreTaken) {
  EXPECT_EQ(placed({{"new", {}, {}}, {"old", 1, {}}}, RankOrder::Keep, 1), (Names{"old"}));
  EXPECT_EQ(placed({{"new", {}, {}}, {"asks", {}, 0}}, RankOrder::Keep, 1), (Names{"asks"}));
  EXPECT_EQ(placed({{"first", {}, {}}, {"host", {}, {}, true}}, RankOrder::Keep, 1),
            (Names{"host"}));
  EXPECT_EQ(placed({{"z-first", {}, {}}, {"a-second", {}, {}}}, RankOrder::Keep, 1),
            (Names{"z-first"}));
}

// All ways to give `nodes` nodes distinct ranks below `ranks`, or none.
std::vector<std::vector<std::optional<int>>> choices(std::size_t nodes, int ranks) {
  std::vector<std::vector<std::optional<int>>> all = {{}};
  for (std::size_t i = 0; i < nodes; ++i) {
    std::vector<std::vector<std::optional<int>>> longer;
    for (const auto& one : all) {
      for (int rank = -1; rank < ranks; ++rank) {
        const std::optional<int> choice = rank < 0 ? std::nullopt : std::optional<int>(rank);
        if (choice && std::find(one.begin(), one.end(), choice) != one.end()) continue;
        longer.push_back(one);
        longer.back().push_back(choice);
      }
    }
    all = std::move(longer);
  }
  return all;
}

// What holds for every choice of nodes.
void check(const std::vector<Node>& nodes, RankOrder order, int max_nodes) {
  const auto names = placed(nodes, order, max_nodes);
  ASSERT_EQ(names.size(), std::min(nodes.size(), static_cast<std::size_t>(max_nodes)));
  std::map<std::string, int> rank;
  for (std::size_t i = 0; i < names.size(); ++i)
    rank[names[i]] = static_cast<int>(i);
  ASSERT_EQ(rank.size(), names.size()) << "one has two places";
  const int count = static_cast<int>(names.size());
  bool nobody_asks = true;
  int before = 0;  // nodes of the last round, as its highest rank tells
  for (const auto& node : nodes) {
    nobody_asks &= !node.asked.has_value();
    before = std::max(before, node.last.value_or(-1) + 1);
  }
  for (const auto& node : nodes) {
    const auto at = rank.find(node.host);
    if (at == rank.end()) continue;
    if (node.asked && count == max_nodes) {
      ASSERT_EQ(at->second, *node.asked) << "a full job gives every rank that was asked for";
    }
    if (!nobody_asks || !node.last || order == RankOrder::Host) continue;
    if (order == RankOrder::Keep && count >= before) {
      ASSERT_EQ(at->second, *node.last) << "a round that is no smaller keeps its survivors";
    }
    for (const auto& other : nodes) {
      if (other.last && *node.last < *other.last && rank.contains(other.host)) {
        ASSERT_LT(at->second, rank[other.host]) << "survivors changed their order";
      }
    }
  }
}

void check_all(RankOrder order, std::size_t count, int max_nodes) {
  for (const auto& last : choices(count, max_nodes)) {
    for (const auto& asked : choices(count, max_nodes)) {
      std::vector<Node> nodes;
      for (std::size_t i = 0; i < count; ++i)
        nodes.push_back({std::string(1, static_cast<char>('c' - i)), last[i], asked[i], false});
      check(nodes, order, max_nodes);
    }
  }
}

TEST(RankAssignmentTest, HoldsForAllSmallJobs) {
  for (const RankOrder order : {RankOrder::Keep, RankOrder::Host, RankOrder::Join}) {
    for (std::size_t count = 1; count <= 3; ++count) {
      for (int max_nodes = 1; max_nodes <= 3; ++max_nodes)
        check_all(order, count, max_nodes);
    }
  }
}

TEST(AssignTest, RanksAreDenseAndContiguousPerNodeAndPerRole) {
  const std::vector<std::pair<const char*, int>> nodes = {
      {"trainer", 2}, {"server", 1}, {"trainer", 3}, {"server", 4}};
  std::vector<std::string> tickets(nodes.size());
  std::vector<MemberDocument> documents(nodes.size());
  std::vector<Candidate> ordered;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    documents[i].role = nodes[i].first;
    documents[i].local_world_size = nodes[i].second;
    ordered.push_back({&tickets[i], &documents[i], i, {}});
  }
  const auto places = assign(ordered, 4, 2);
  const int first[] = {0, 2, 3, 6}, role_first[] = {0, 0, 2, 1}, role_size[] = {5, 5, 5, 5};
  ASSERT_EQ(places.size(), 4U);
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(places[i].round, 4);
    EXPECT_EQ(places[i].restart_count, 2);
    EXPECT_EQ(places[i].group_rank, static_cast<int>(i));
    EXPECT_EQ(places[i].group_world_size, 4);
    EXPECT_EQ(places[i].world_size, 10);
    EXPECT_EQ(places[i].first_rank, first[i]);
    EXPECT_EQ(places[i].first_role_rank, role_first[i]);
    EXPECT_EQ(places[i].role_world_size, role_size[i]);
  }
}

TEST(AssignTest, TheJobEndsForAllWhenItEndsForTheFirst) {
  const auto end_of = [](const std::vector<std::int64_t>& known) {
    std::vector<std::string> tickets(known.size());
    std::vector<MemberDocument> documents(known.size());
    std::vector<Candidate> ordered;
    for (std::size_t i = 0; i < known.size(); ++i) {
      documents[i].ends_ms = known[i];
      ordered.push_back({&tickets[i], &documents[i], i, {}});
    }
    std::vector<std::int64_t> ends;
    for (const Assignment& place : assign(ordered, 1, 0))
      ends.push_back(place.ends_ms);
    return ends;
  };
  using Ends = std::vector<std::int64_t>;
  EXPECT_EQ(end_of({0, 0}), Ends({0, 0}));
  EXPECT_EQ(end_of({0, 7'000, 0}), Ends({7'000, 7'000, 7'000}));
  EXPECT_EQ(end_of({9'000, 7'000, 8'000}), Ends({7'000, 7'000, 7'000}));
}

}  // namespace
}  // namespace drun::rendezvous
