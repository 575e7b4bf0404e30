// Which nodes are odd, and the line that says it: every pattern of values on up to five nodes.
#include "facts/compare.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "facts/fact_table.hpp"

namespace drun::facts {
namespace {

std::vector<NodeSheet> nodes_with(const std::string& key, const std::vector<std::string>& values) {
  std::vector<NodeSheet> nodes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    nodes.push_back({"node" + std::to_string(i), {{"host", "any"}}});
    if (!values[i].empty()) nodes.back().sheet[key] = values[i];
  }
  return nodes;
}

std::string line_of(const std::vector<NodeSheet>& nodes) {
  const auto found = compare(nodes);
  return found.empty() ? "" : found.front().text;
}

TEST(CompareTest, NamesTheOddOne) {
  std::vector<std::string> values(32, "550.90");
  values[7] = "550.54";
  EXPECT_EQ(line_of(nodes_with("driver", values)),
            "node7: GPU driver 550.54, the other 31: 550.90");
}

TEST(CompareTest, SaysNothingIfAllAreAlikeOrThereIsOnlyOne) {
  EXPECT_TRUE(compare(nodes_with("driver", {"1", "1", "1"})).empty());
  EXPECT_TRUE(compare(nodes_with("driver", {"1"})).empty());
  EXPECT_TRUE(compare({}).empty());
}

TEST(CompareTest, SaysWhoHasNone) {
  EXPECT_EQ(line_of(nodes_with("torch", {"2.4", "", "2.4"})),
            "node1: torch none, the other 2: 2.4");
}

// The link of a virtual interface has no speed.
TEST(CompareTest, WhatANodeCannotTellOfItsNetworkIsNoDifference) {
  for (const std::string fact : {"mtu", "speed"}) {
    EXPECT_TRUE(compare(nodes_with(fact, {"1500", "", "1500"})).empty()) << fact;
    EXPECT_TRUE(compare(nodes_with(fact, {"", "", "1500"})).empty()) << fact;
    EXPECT_EQ(compare(nodes_with(fact, {"1500", "", "9000"})).size(), 1U) << fact;
  }
}

TEST(CompareTest, OfTwoNodesTheSecondIsOdd) {
  const auto found = compare(nodes_with("kernel", {"6.1", "5.15"}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].text, "node1: kernel 5.15, node0: 6.1");
  EXPECT_EQ(found[0].odd, std::vector<std::size_t>{1});
}

TEST(CompareTest, AModelIsRightHoweverFewAgree) {
  const auto found = compare(nodes_with("driver", {"1", "2", "2", "2"}), 0);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].text, "node[1-3]: GPU driver 2, node0: 1");
  EXPECT_EQ(found[0].odd, (std::vector<std::size_t>{1, 2, 3}));
}

TEST(CompareTest, FoldsNamesAndTellsSeveralGroups) {
  EXPECT_EQ(line_of(nodes_with("mtu", {"9000", "1500", "1500", "9000", "1492", "9000"})),
            "node[1-2]: MTU 1500, node4: 1492, the other 3: 9000");
  EXPECT_EQ(line_of(nodes_with("mtu", {"1", "2", "3", "4", "5", "5"})),
            "5 different values, as in node0: MTU 1, node1: 2, node2: 3, node[4-5]: 5");
}

TEST(CompareTest, ShowsSecretsAsLetters) {
  EXPECT_EQ(line_of(nodes_with("program", {"1f", "2e", "2e", "3d"})),
            "node0: program B, node3: C, the other 2: A");
  EXPECT_EQ(line_of(nodes_with("env NCCL_DEBUG", {"1f", "1f", ""})),
            "node2: NCCL_DEBUG none, the other 2: A");
}

TEST(CompareTest, TellsFactsInTheOrderOfTheTableThenVariables) {
  auto nodes = nodes_with("env NCCL_ALGO", {"1", "1", "2"});
  nodes[0].sheet["kernel"] = "6";
  nodes[1].sheet["driver"] = "5";
  std::vector<std::string> facts;
  for (const auto& difference : compare(nodes))
    facts.push_back(difference.fact);
  EXPECT_EQ(facts, (std::vector<std::string>{"GPU driver", "kernel", "NCCL_ALGO"}));
}

TEST(CompareTest, ANodeThatCouldTellNothingIsToldOnceAndComparedNoMore) {
  auto nodes = nodes_with("driver", {"1", "1", ""});
  nodes[2].sheet = {{std::string(kTrouble), "read /nfs/x: no answer for 5 s"}};
  const auto found = compare(nodes);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].text, "node2 could not look at itself: read /nfs/x: no answer for 5 s");
}

TEST(CompareTest, WeighsAsTheTableSays) {
  EXPECT_TRUE(compare(nodes_with("driver", {"1", "2"}))[0].fatal);
  EXPECT_FALSE(compare(nodes_with("kernel", {"1", "2"}))[0].fatal);
  EXPECT_FALSE(compare(nodes_with("env NCCL_DEBUG", {"1", "2"}))[0].fatal);
}

// What compare() must find, by counting.
std::vector<std::size_t> odd_by_counting(const std::vector<std::string>& values) {
  std::map<std::string, std::size_t> counts;
  for (const auto& value : values)
    ++counts[value];
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i)
    if (counts[values[i]] > counts[values[best]]) best = i;
  std::vector<std::size_t> odd;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != values[best]) odd.push_back(i);
  return odd;
}

TEST(CompareTest, FindsTheOddOnesOfEveryPattern) {
  const std::vector<std::string> kValues{"", "1", "2", "3", "4"};
  for (std::size_t size = 2; size <= 5; ++size) {
    std::size_t patterns = 1;
    for (std::size_t i = 0; i < size; ++i)
      patterns *= kValues.size();
    for (std::size_t pattern = 0; pattern < patterns; ++pattern) {
      std::vector<std::string> values;
      for (std::size_t i = 0, rest = pattern; i < size; ++i, rest /= kValues.size())
        values.push_back(kValues[rest % kValues.size()]);
      const auto found = compare(nodes_with("driver", values));
      const auto odd = odd_by_counting(values);
      ASSERT_EQ(found.size(), odd.empty() ? 0U : 1U) << pattern;
      if (odd.empty()) continue;
      ASSERT_EQ(found[0].odd, odd) << pattern << ": " << found[0].text;
    }
  }
}

TEST(CompareTest, EveryFactOfTheTableIsComparedAndHasAdvice) {
  for (const Fact& fact : fact_table()) {
    const auto found = compare(nodes_with(std::string(fact.key), {"1", "1", "2"}));
    ASSERT_EQ(found.size(), 1U) << fact.key;
    EXPECT_EQ(found[0].fact, fact.name);
    EXPECT_EQ(found[0].fatal, fact.weight == Weight::Fatal);
    EXPECT_FALSE(found[0].advice.empty()) << fact.key;
  }
}

}  // namespace
}  // namespace drun::facts
