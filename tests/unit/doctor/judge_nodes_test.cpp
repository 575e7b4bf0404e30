#include "doctor/judge_nodes.hpp"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::doctor {
namespace {

using testing::Each;
using testing::Field;
using testing::HasSubstr;

std::vector<NodeReport> sound(int nodes) {
  std::vector<NodeReport> reports;
  for (int i = 0; i < nodes; ++i) {
    NodeReport report;
    report.host = "node" + std::to_string(i);
    report.sheet = {{"boot", "boot" + std::to_string(i)}, {"driver", "1"}};
    report.checks = {passed("disk", "fine")};
    report.clock_us = 0;
    for (int other = 0; other < nodes; ++other)
      if (other != i) report.links.push_back({other, "", 0, 0, 0, 0});
    report.links[i == nodes - 1 ? 0 : static_cast<std::size_t>(i)] = {
        (i + 1) % nodes, "", 50, 9400, 1500, 1500};
    reports.push_back(report);
  }
  return reports;
}

// The lines that are no pass.
std::vector<std::string> troubles(const std::vector<NodeReport>& reports) {
  std::vector<std::string> lines;
  for (const Check& check : judge_nodes(reports))
    if (check.verdict != Verdict::Pass)
      lines.push_back(std::string(name_of(check.verdict)) + " " + check.name + " " + check.reason);
  return lines;
}

TEST(JudgeNodesTest, SoundNodesPass) {
  EXPECT_THAT(judge_nodes(sound(4)), Each(Field(&Check::verdict, Verdict::Pass)));
  EXPECT_EQ(judge_nodes(sound(4)).size(), 6U);
}

TEST(JudgeNodesTest, NamesTheOddOne) {
  auto reports = sound(4);
  reports[2].sheet["driver"] = "2";
  EXPECT_THAT(troubles(reports),
              testing::ElementsAre("fail alike node2: GPU driver 2, the other 3: 1"));
}

TEST(JudgeNodesTest, NamesTheSlowLink) {
  auto reports = sound(4);
  reports[1].links[1].mbit = 940;
  EXPECT_THAT(troubles(reports),
              testing::ElementsAre("warn network node1 to node2: 940 Mbit/s, the median is 9400"));
  reports[1].links[1].mbit = 9000;
  reports[1].links[1].latency_us = 5000;
  EXPECT_THAT(troubles(reports),
              testing::ElementsAre(
                  "warn network node1 to node2: an answer takes 5000 us, the median is 50"));
}

TEST(JudgeNodesTest, NamesABrokenWay) {
  auto reports = sound(3);
  reports[2].links[1].error = "10.0.0.2: Connection timed out";
  EXPECT_THAT(troubles(reports),
              testing::ElementsAre("fail ports node2 to node1: 10.0.0.2: Connection timed out"));
}

TEST(JudgeNodesTest, NamesAClockThatIsOff) {
  auto reports = sound(3);
  reports[1].clock_us = -3'200'000;
  EXPECT_THAT(troubles(reports), testing::ElementsAre("warn clocks node1 is 3200 ms behind"));
}

TEST(JudgeNodesTest, ClocksThatWereNotComparedAreCounted) {
  auto reports = sound(3);
  reports[1].clock_us.reset();
  reports[2].clock_us.reset();
  EXPECT_THAT(
      troubles(reports),
      testing::ElementsAre("warn clocks 2 of 3 nodes got no answer from the first one's clock"));
}

TEST(JudgeNodesTest, NamesAWayWithSmallerPackets) {
  auto reports = sound(3);
  reports[0].links[0].path_mtu = 1400;
  EXPECT_THAT(troubles(reports),
              testing::ElementsAre("warn MTU node0 to node1: the way takes packets of 1400 bytes, "
                                   "the interface sends 1500"));
}

TEST(JudgeNodesTest, NodesOfOneMachineAreSaidToBeSoAndTheirNetworkIsNotJudged) {
  auto reports = sound(3);
  for (auto& report : reports) {
    report.host = "vm";
    report.sheet["boot"] = "same";
  }
  reports[1].links[1] = {2, "", 5000, 10, 65535, 65536};
  EXPECT_TRUE(troubles(reports).empty());
  const auto checks = judge_nodes(reports);
  EXPECT_TRUE(std::any_of(checks.begin(), checks.end(), [](const Check& check) {
    return check.reason == "these 3 nodes are one machine";
  }));
}

TEST(JudgeNodesTest, TwoNodesOfOneMachineAmongOthersAreTold) {
  auto reports = sound(3);
  reports[2].sheet["boot"] = "boot1";
  EXPECT_THAT(troubles(reports), testing::ElementsAre("warn machines node[1-2] are one machine"));
}

TEST(JudgeNodesTest, EqualTroublesOfNodesAreOneLine) {
  auto reports = sound(3);
  reports[0].checks = {warned("/dev/shm", "64 MiB", "more")};
  reports[2].checks = {warned("/dev/shm", "64 MiB", "more")};
  EXPECT_THAT(troubles(reports), testing::ElementsAre("warn /dev/shm node[0,2]: 64 MiB"));
  reports[1].checks = reports[0].checks;
  EXPECT_THAT(troubles(reports), testing::ElementsAre("warn /dev/shm all nodes: 64 MiB"));
}

TEST(JudgeNodesTest, NumbersOfNodesThatAreNotThereDoNoHarm) {
  auto reports = sound(2);
  reports[0].links.push_back({-5, "gone", 1, 1, 1, 2});
  reports[0].links.push_back({99, "gone", 1, 1, 1, 2});
  EXPECT_THAT(troubles(reports), testing::Contains(HasSubstr("nobody")));
}

}  // namespace
}  // namespace drun::doctor
