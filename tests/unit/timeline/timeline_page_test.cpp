#include "timeline/timeline_page.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "timeline/page_template.hpp"
#include "told_job.hpp"

namespace drun::timeline {
namespace {

using nlohmann::json;
using test::job_with_a_restart;
using test::Kind;
using test::timeline_of;
using test::ToldNode;
using ::testing::HasSubstr;
using ::testing::Not;

json data_of(const std::vector<ToldNode>& nodes) {
  return json::parse(page_data(timeline_of(nodes)));
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

TEST(TimelinePageTest, ItIsOneFileThatAsksNobodyElse) {
  const std::string page = timeline_page(timeline_of(job_with_a_restart()));
  EXPECT_THAT(page, ::testing::StartsWith("<!doctype html>\n"));
  EXPECT_THAT(page, ::testing::EndsWith("</html>\n"));
  for (const char* address : {"http:", "https:", "src=", "@import", "url(", "fetch(", "@DATA@"})
    EXPECT_THAT(page, Not(HasSubstr(address)));
}

TEST(TimelinePageTest, TextIsNeverTakenForMarkup) {
  const std::string page(page_template());
  for (const char* danger :
       {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"})
    EXPECT_THAT(page, Not(HasSubstr(danger)));
  const std::string nasty = "</script><script>alert(1)</script><!-- @DATA@ \xe2\x80\xa8";
  auto nodes = job_with_a_restart(0, nasty);
  nodes.push_back(ToldNode("<img onerror=alert(1)>", 12).id("<b>").joins(10));
  const std::string made = timeline_page(timeline_of(nodes));
  EXPECT_EQ(count(made, "<script"), count(page, "<script"));
  EXPECT_EQ(count(made, "</script"), count(page, "</script"));
  EXPECT_EQ(count(made, "<!--"), 0U);
  EXPECT_EQ(count(made, "<img"), 0U);
  EXPECT_THAT(json::parse(page_data(timeline_of(nodes)))["causes"][0]["text"].get<std::string>(),
              ::testing::StartsWith("</script><script>"));
}

TEST(TimelinePageTest, ARankHasARowWhateverNodeItIsOn) {
  auto nodes = job_with_a_restart();
  // Its rank goes to another node in round 3.
  nodes.push_back(ToldNode("node2", 12).joins(950).begins(1'100, 3, 1).starts(1'110, 1));
  const json data = data_of(nodes);
  EXPECT_FALSE(data["aggregated"].get<bool>());
  ASSERT_EQ(data["rows"].size(), 2U);
  EXPECT_EQ(data["rows"][1]["label"], "rank 1");
  EXPECT_EQ(data["rows"][1]["spans"].back()[4], 2);  // the node
  EXPECT_EQ(data["causes"][0]["row"], 1);
  EXPECT_EQ(data["causes"][0]["at"], 501'000);
  EXPECT_EQ(data["rows"][0]["spans"][0], json::parse(R"([0, 0, 101000, 1, 0, 0, ""])"));
  EXPECT_EQ(data["states"][0], "waiting");
}

// Ranks move up when a node with a better place joins: in the order of nodes node1 is the last one
// with rank 0, in time it is node0.
TEST(TimelinePageTest, ARowNamesAllNodesThatItsRankWasOn) {
  ToldNode node0("node0", 10);
  ToldNode node1("node1", 11);
  node1.joins(0).begins(100, 1, 0, 1, 1).starts(110, 0).tell(Kind::RoundEnded, 500);
  node1.begins(600, 2, 1).starts(610, 1);
  node0.joins(400).begins(600, 2, 0).starts(610, 0);
  node0.says(Kind::NodeGone, 900, "its session has ended", node1.ticket());
  const json data = data_of({node0, node1});
  ASSERT_EQ(data["rows"].size(), 2U);
  EXPECT_EQ(data["nodes"], json::parse(R"(["node0", "node1"])"));
  EXPECT_EQ(data["rows"][0]["nodes"], json::parse("[1, 0]"));
  EXPECT_EQ(data["rows"][1]["nodes"], json::parse("[1]"));
  const auto& gone = data["marks"].back();
  EXPECT_EQ(gone[5], "node_gone");
  EXPECT_EQ(gone[1], 1) << "the row of the rank that it had then, not of its first one";
}

// Its worker_exited and its cause are at one place, and the leader's failure is no other.
TEST(TimelinePageTest, AFailureIsOnePlace) {
  const json data = data_of(job_with_a_restart());
  std::vector<std::string> bad;
  for (const json& mark : data["marks"])
    if (mark[4] == 1) bad.push_back(mark[5]);
  EXPECT_THAT(bad, ::testing::ElementsAre("worker_exited"));
}

TEST(TimelinePageTest, WhatTheFileOfAnotherNodeWouldTellIsInNoRow) {
  const json of_node0 = data_of({job_with_a_restart()[0]});
  ASSERT_EQ(of_node0["causes"].size(), 1U);
  EXPECT_EQ(of_node0["causes"][0]["row"], -1);
  EXPECT_EQ(of_node0["causes"][0]["node"], -1);
  EXPECT_EQ(of_node0["causes"][0]["rank"], -1);
  ToldNode other("node2", 12);
  other.joins(0).begins(100, 1, 0).starts(110, 0);
  other.says(Kind::RoundStopping, 500, "rank 1 on node1: exit code 7");
  const json of_other = data_of({other});
  ASSERT_EQ(of_other["causes"].size(), 1U);
  EXPECT_EQ(of_other["causes"][0]["row"], -1);
  EXPECT_EQ(of_other["causes"][0]["text"], "rank 1 on node1: exit code 7");
}

TEST(TimelinePageTest, ALimitAndALostStoreAreNoFailuresOfARank) {
  ToldNode node("node0", 10);
  node.joins(0).begins(100, 1, 0, 1, 1).starts(110, 0);
  node.says(Kind::StoreLost, 200, "lost the store");
  node.says(Kind::Limit, 900, "--timeout is over").tell(Kind::RoundStopping, 901);
  const json data = data_of({node});
  ASSERT_EQ(data["marks"].size(), 3U);
  for (const json& mark : data["marks"])
    EXPECT_EQ(mark[4], 0) << mark;
  EXPECT_EQ(data["causes"][0]["text"], "--timeout is over");
  EXPECT_EQ(data["causes"][0]["row"], -1);
}

TEST(TimelinePageTest, TheEndOfTheJobIsTold) {
  ToldNode node("node0", 10);
  node.joins(0).begins(100, 1, 0, 1, 1).ends(600, 7, "rank 0: exit code 7");
  const json data = data_of({node});
  EXPECT_EQ(data["endings"], json::parse(R"([{"run":0,"at":601000,"succeeded":false,"exit_code":7,)"
                                         R"("text":"rank 0: exit code 7"}])"));
}

TEST(TimelinePageTest, ASpareHasARowOfItsOwn) {
  auto nodes = job_with_a_restart();
  nodes.push_back(ToldNode("spare", 12).joins(200));
  const json data = data_of(nodes);
  ASSERT_EQ(data["rows"].size(), 3U);
  EXPECT_EQ(data["rows"][2]["label"], "no rank");
}

TEST(TimelinePageTest, OfManyRanksEachNodeHasARow) {
  std::vector<ToldNode> nodes;
  for (int i = 0; i < 500; ++i) {
    ToldNode node("node" + std::to_string(i), i + 1);
    node.joins(i).begins(1'000 + i % 7, 1, i * 8, 8, 4'000);
    for (int rank = i * 8; rank < i * 8 + 8; ++rank)
      node.starts(1'010, rank);
    if (i == 13) node.exits(2'000, 13 * 8 + 2, "FAILED", "killed by SIGSEGV");
    node.says(Kind::RoundStopping, 2'010, "rank 106").tell(Kind::RoundEnded, 2'100);
    nodes.push_back(std::move(node));
  }
  const Timeline timeline = timeline_of(nodes);
  const std::string text = page_data(timeline);
  const json data = json::parse(text);
  EXPECT_TRUE(data["aggregated"].get<bool>());
  ASSERT_EQ(data["rows"].size(), 500U);
  EXPECT_EQ(data["rows"][13]["label"], "ranks 104-111");
  EXPECT_EQ(data["causes"][0]["row"], 13);
  EXPECT_EQ(data["causes"][0]["rank"], 106);
  EXPECT_LT(text.size(), 500'000U);
}

TEST(TimelinePageTest, NothingIsAnEmptyPage) {
  EXPECT_THAT(timeline_page(make_timeline({}, {})), HasSubstr("\"rows\":[]"));
}

}  // namespace
}  // namespace drun::timeline
