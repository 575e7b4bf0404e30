#include "launcher/agent/facts_report.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using rendezvous::CompareFactsAction;
using rendezvous::NodeFacts;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

NodeFacts node(const std::string& host, int rank, const std::string& sheet) {
  return {host + std::to_string(rank), host, rank, sheet};
}

TEST(FactsReportTest, SaysEachDifferenceOnceWithAdvice) {
  FactsReport report;
  CompareFactsAction action;
  for (int i = 0; i < 3; ++i)
    action.nodes.push_back(
        node("node" + std::to_string(i), i, i == 1 ? R"({"driver":"2"})" : R"({"driver":"1"})"));
  EXPECT_THAT(report.news(action), ElementsAre("node1: GPU driver 2, the other 2: 1; install the "
                                               "same driver on all nodes"));
  EXPECT_THAT(report.news(action), IsEmpty());
  action.nodes.push_back(node("node3", 3, R"({"driver":"1"})"));
  EXPECT_THAT(report.news(action), IsEmpty()) << "one more that is as the others is no news";
  action.nodes.push_back(node("node4", 4, R"({"driver":"2"})"));
  EXPECT_THAT(report.news(action), SizeIs(1));
}

TEST(FactsReportTest, AgentsOfOneHostAreToldApart) {
  FactsReport report;
  const CompareFactsAction action{{node("vm", 0, R"({"mtu":"1"})"), node("vm", 1, R"({"mtu":"2"})"),
                                   node("vm", -1, R"({"mtu":"1"})")}};
  EXPECT_THAT(report.news(action), ElementsAre(HasSubstr("vm (group rank 1): MTU 2, the other 2")));
}

TEST(FactsReportTest, ASheetThatIsNoneIsTheTroubleOfItsNode) {
  FactsReport report;
  const CompareFactsAction action{{node("a", 0, R"({"mtu":"1"})"), node("b", 1, "rubbish"),
                                   node("c\x1b[2J", 2, R"({"mtu":"2"})")}};
  EXPECT_THAT(report.news(action),
              ElementsAre(HasSubstr("b could not look at itself: a sheet of facts is no JSON"),
                          HasSubstr("c\\x1b[2J: MTU 2, a: 1")));
}

TEST(UnfitNodesTest, AreThoseThatDifferInWhatWeighsMost) {
  const std::string good = R"({"driver":"1","kernel":"6"})";
  const auto unfit = unfit_nodes({node("a", -1, good), node("b", -2, R"({"driver":"2"})"),
                                  node("c", -3, good), node("d", -4, R"({"driver":"1"})")});
  EXPECT_THAT(unfit, ElementsAre(testing::Pair(
                         "b-2",
                         "--preflight strict: b: GPU driver 2, the other 3: 1; install the "
                         "same driver on all nodes")));
}

TEST(UnfitNodesTest, NewcomersMustBeLikeTheNodesOfTheLastRound) {
  const auto unfit =
      unfit_nodes({node("a", 0, R"({"driver":"1"})"), node("b", -1, R"({"driver":"2"})"),
                   node("c", -1, R"({"driver":"2"})")});
  EXPECT_EQ(unfit.size(), 2U);
  EXPECT_FALSE(unfit.contains("a0"));
}

TEST(FactsReportTest, NodesThatDifferInEverythingGetSomeLines) {
  FactsReport report;
  std::string sheet = "{";
  for (int i = 0; i < 100; ++i)
    sheet += (i == 0 ? "\"env NCCL_" : ",\"env NCCL_") + std::to_string(i) + "\":\"x\"";
  const CompareFactsAction action{{node("a", 0, sheet + "}"), node("b", 1, "{}")}};
  const auto lines = report.news(action);
  EXPECT_THAT(lines, SizeIs(13));
  EXPECT_THAT(lines.back(), HasSubstr("differ in 88 more facts"));
}

}  // namespace
}  // namespace drun::launcher
