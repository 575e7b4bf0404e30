#include "timeline/timeline.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "told_job.hpp"

namespace drun::timeline {
namespace {

using events::Kind;
using test::job_with_a_restart;
using test::log_of;
using test::timeline_of;
using test::ToldNode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "running 110-505", in milliseconds since the first event; "cut" if the end is not known.
std::vector<std::string> words(const std::vector<Span>& spans) {
  std::vector<std::string> result;
  for (const Span& span : spans)
    result.push_back(std::string(name_of(span.state)) + " " +
                     std::to_string(span.begin / test::kMs) + "-" +
                     std::to_string(span.end / test::kMs) + (span.cut ? " cut" : ""));
  return result;
}

std::vector<std::string> names(const std::vector<Mark>& marks) {
  std::vector<std::string> result;
  for (const Mark& mark : marks)
    result.push_back(mark.name);
  return result;
}

TEST(TimelineTest, ARestartedJobIsToldStateByState) {
  const Timeline timeline = timeline_of(job_with_a_restart());
  EXPECT_THAT(timeline.jobs, ElementsAre("train"));
  EXPECT_THAT(timeline.run_names, ElementsAre(""));
  EXPECT_EQ(timeline.begin_ns, test::kDay - test::kMs);  // the first agent_started
  EXPECT_EQ(timeline.length, 1004 * test::kMs);
  EXPECT_EQ(timeline.ranks(), 2U);
  ASSERT_EQ(timeline.nodes.size(), 2U);
  const NodeRow& node0 = timeline.nodes[0];
  EXPECT_EQ(node0.name, "node0");
  EXPECT_EQ(node0.group_rank, 0);
  EXPECT_THAT(
      words(node0.spans),
      ElementsAre("waiting 0-101", "starting 101-112", "running 112-506", "stopping 506-552",
                  "waiting 552-601", "starting 601-612", "running 612-902", "waiting 902-1003"));
  ASSERT_EQ(node0.workers.size(), 1U);
  EXPECT_THAT(words(node0.workers[0].spans),
              ElementsAre("waiting 0-101", "starting 101-111", "running 111-506",
                          "stopping 506-551", "stopped 551-552", "waiting 552-601",
                          "starting 601-611", "running 611-901", "succeeded 901-902"));
  EXPECT_THAT(words(timeline.nodes[1].workers[0].spans),
              ElementsAre("waiting 50-102", "starting 102-121", "running 121-501", "failed 501-503",
                          "waiting 503-602", "starting 602-611", "running 611-1001",
                          "succeeded 1001-1002"));
  EXPECT_EQ(timeline.nodes[1].workers[0].spans[3].text, "exit code 7");
  EXPECT_EQ(node0.spans.front().round, 1);  // that it waited for
  EXPECT_EQ(node0.spans.back().round, 0);
}

TEST(TimelineTest, RoundsAndWhyTheyWereStopped) {
  const Timeline timeline = timeline_of(job_with_a_restart());
  ASSERT_EQ(timeline.rounds.size(), 2U);
  EXPECT_EQ(timeline.rounds[0].number, 1);
  EXPECT_EQ(timeline.rounds[0].begin, 101 * test::kMs);
  EXPECT_EQ(timeline.rounds[0].end, 552 * test::kMs);
  EXPECT_EQ(timeline.rounds[0].reason, "rank 1: exit code 7");
  EXPECT_EQ(timeline.rounds[1].restarts, 1);
  EXPECT_EQ(timeline.rounds[1].reason, "");
  ASSERT_EQ(timeline.causes.size(), 1U);
  EXPECT_EQ(timeline.causes[0].round, 1);
  EXPECT_EQ(timeline.causes[0].rank, 1);
  EXPECT_EQ(timeline.causes[0].node, 1U);
  EXPECT_EQ(timeline.causes[0].at, 501 * test::kMs);  // of the worker, not of the leader's word
  EXPECT_EQ(timeline.causes[0].text, "exit code 7");
  EXPECT_THAT(names(timeline.marks),
              ElementsAre("store_found", "leader_elected", "store_found", "node_joined",
                          "worker_exited", "failure", "outcome", "outcome"));
  EXPECT_EQ(timeline.marks[3].node, 1U);  // whom the leader names
}

// The one that the leader names counts, even if another failed before.
TEST(TimelineTest, TheLeaderKnowsTheFirstCause) {
  auto nodes = job_with_a_restart();
  nodes[0].begins(100, 1, 0).exits(499, 0, "FAILED", "exit code 9");
  EXPECT_EQ(timeline_of(nodes).causes.front().rank, 1);
}

TEST(TimelineTest, WithoutItsFileTheFirstFailureCounts) {
  const Timeline timeline = timeline_of({job_with_a_restart()[1]});
  ASSERT_EQ(timeline.causes.size(), 1U);
  EXPECT_EQ(timeline.causes[0].rank, 1);
  EXPECT_EQ(timeline.causes[0].text, "exit code 7");
}

TEST(TimelineTest, ALostNodeEndsWhenItIsMissed) {
  ToldNode node0("node0", 10);
  ToldNode node1("node1", 11);
  node0.joins(0).tell(Kind::LeaderElected, 5).begins(100, 1, 0).starts(110, 0);
  node1.joins(0).begins(100, 1, 1).starts(110, 1);
  node0.says(Kind::NodeGone, 400, "its lease is over", node1.ticket());
  node0.says(Kind::RoundStopping, 401, "node1 is gone").exits(410, 0, "TERMINATED");
  node0.tell(Kind::RoundEnded, 411).tell(Kind::Outcome, 500);
  const Timeline timeline = timeline_of({node0, node1});
  EXPECT_THAT(words(timeline.nodes[1].workers[0].spans),
              ElementsAre("waiting 0-101", "starting 101-111", "running 111-401 cut"));
  ASSERT_EQ(timeline.causes.size(), 1U);
  EXPECT_EQ(timeline.causes[0].node, 1U);
  EXPECT_EQ(timeline.causes[0].rank, -1);
  EXPECT_EQ(timeline.causes[0].text, "the node is gone: its lease is over");
}

TEST(TimelineTest, AJobThatStillRunsIsCutAtTheLastEvent) {
  ToldNode node("host", 7);
  node.joins(0).begins(100, 1, 0, 1, 1).starts(110, 0).says(Kind::Warning, 900, "slow");
  const Timeline timeline = timeline_of({node});
  EXPECT_THAT(words(timeline.nodes[0].workers[0].spans),
              ElementsAre("waiting 0-101", "starting 101-111", "running 111-901 cut"));
  EXPECT_THAT(timeline.causes, IsEmpty());
}

// Nobody told of it: the others stopped without it, and it did not run on to the end of the job.
TEST(TimelineTest, ANodeThatNobodyMissedEndsWithItsRound) {
  auto nodes = job_with_a_restart();
  ToldNode lost("node2", 12);
  lost.joins(0).begins(100, 1, 2, 1, 3).starts(110, 2).tell(Kind::WorkersRunning, 111);
  nodes.push_back(lost);
  const Timeline timeline = timeline_of(nodes);
  EXPECT_THAT(words(timeline.nodes[2].workers[0].spans),
              ElementsAre("waiting 0-101", "starting 101-111", "running 111-552 cut"));
}

// Every node tells that the job has failed, also those on which nothing went wrong.
TEST(TimelineTest, TheOutcomeIsNoFailureOfTheNodesThatTellIt) {
  ToldNode node0("node0", 10);
  ToldNode node1("node1", 11);
  node0.joins(0).begins(100, 1, 0).starts(110, 0).ends(600, 7, "rank 1: exit code 7");
  node1.joins(0).begins(100, 1, 1).starts(110, 1).exits(500, 1, "FAILED", "exit code 7");
  node1.ends(601, 7, "rank 1: exit code 7");
  const Timeline timeline = timeline_of({node0, node1});
  std::vector<std::size_t> bad;
  for (const Mark& mark : timeline.marks)
    if (mark.bad) bad.push_back(mark.node);
  EXPECT_THAT(bad, ElementsAre(1U));
  ASSERT_EQ(timeline.endings.size(), 1U);
  EXPECT_EQ(timeline.endings[0].exit_code, 7);
  EXPECT_EQ(timeline.endings[0].at, 602 * test::kMs);
  EXPECT_EQ(timeline.endings[0].text, "rank 1: exit code 7");
}

// One that was out of touch gave up later, another came too late.
TEST(TimelineTest, TheJobEndsAsMostOfItsNodesTell) {
  std::vector<ToldNode> nodes;
  for (const int rank : {0, 1, 2}) {
    nodes.emplace_back("node" + std::to_string(rank), 10 + rank);
    nodes.back().joins(0).begins(100, 1, rank, 1, 3).starts(110, rank);
    if (rank < 2) nodes.back().ends(600, 7, "rank 1: exit code 7");
  }
  nodes.back().ends(9'000, 125, "out of touch with the store");
  const Timeline timeline = timeline_of(nodes);
  ASSERT_EQ(timeline.endings.size(), 1U);
  EXPECT_EQ(timeline.endings[0].exit_code, 7);
}

TEST(TimelineTest, AJobThatStillRunsIsDrawnUntilNow) {
  ToldNode node("host", 7);
  node.joins(0).begins(100, 1, 0, 1, 1).starts(110, 0).tell(Kind::WorkersRunning, 111);
  const Log log = log_of({node});
  const Timeline timeline = make_timeline(log, runs_of(log), test::kDay + 7'000 * test::kMs);
  EXPECT_TRUE(timeline.live);
  EXPECT_EQ(timeline.length, 7'001 * test::kMs);
  EXPECT_THAT(words(timeline.nodes[0].workers[0].spans),
              ElementsAre("waiting 0-101", "starting 101-111", "running 111-7001 cut"));
  ASSERT_EQ(timeline.rounds.size(), 1U);
  EXPECT_EQ(timeline.rounds[0].end, 7'001 * test::kMs);
}

TEST(TimelineTest, WhoJoinedIsTheCauseAndNotWhoStopsForIt) {
  ToldNode node0("node0", 10);
  ToldNode node1("node1", 11);
  ToldNode node2("node2", 12);
  node0.joins(0).begins(100, 1, 0).says(Kind::NodeJoined, 300, "", node2.ticket());
  node1.joins(0).begins(100, 1, 1).makes_room(400, "node1 has joined");
  node0.makes_room(401, "node1 has joined").tell(Kind::RoundEnded, 410);
  node2.joins(300);
  const Timeline timeline = timeline_of({node0, node1, node2});
  ASSERT_EQ(timeline.causes.size(), 1U);
  EXPECT_EQ(timeline.nodes[timeline.causes[0].node].name, "node2");
  EXPECT_EQ(timeline.causes[0].text, "node1 has joined");
}

TEST(TimelineTest, WordsAboutWhoJoinedMakeNobodyTheCause) {
  ToldNode node0("node0", 10);
  ToldNode node1("node1", 11);
  node0.joins(0).begins(100, 1, 0).says(Kind::NodeJoined, 300, "", "spare-12");
  node1.joins(0).begins(100, 1, 1).says(Kind::RoundStopping, 400, "told to stop: lee joined");
  node0.says(Kind::RoundStopping, 401, "told to stop: lee joined").tell(Kind::RoundEnded, 410);
  const Timeline timeline = timeline_of({node0, node1});
  ASSERT_EQ(timeline.causes.size(), 1U);
  EXPECT_EQ(timeline.nodes[timeline.causes[0].node].name, "node1");
}

TEST(TimelineTest, AHangIsABadMark) {
  ToldNode node("host", 7);
  node.joins(0).begins(100, 1, 0, 1, 1).starts(110, 0).says(Kind::Hang, 900, "no heartbeat");
  const Timeline timeline = timeline_of({node});
  ASSERT_FALSE(timeline.marks.empty());
  EXPECT_EQ(timeline.marks.back().name, "hang");
  EXPECT_EQ(timeline.marks.back().text, "no heartbeat");
  EXPECT_TRUE(timeline.marks.back().bad);
}

TEST(TimelineTest, ASpareHasNoRank) {
  auto nodes = job_with_a_restart();
  nodes.push_back(ToldNode("spare", 12).joins(200).tell(Kind::Outcome, 1002));
  const Timeline timeline = timeline_of(nodes);
  ASSERT_EQ(timeline.nodes.size(), 3U);
  EXPECT_EQ(timeline.nodes[2].name, "spare");
  EXPECT_EQ(timeline.nodes[2].group_rank, -1);
  EXPECT_THAT(timeline.nodes[2].workers, IsEmpty());
  EXPECT_THAT(words(timeline.nodes[2].spans), ElementsAre("waiting 200-1003"));
}

TEST(TimelineTest, NodesOfOneHostAreToldApartAndRunsHaveNames) {
  ToldNode one("host", 7);
  one.joins(0).begins(100, 1, 0, 1, 1).tell(Kind::Outcome, 200);
  ToldNode two("host", 8);
  two.joins(1'000).begins(1'100, 1, 0, 1, 1).tell(Kind::Outcome, 1'200);
  const Timeline timeline = timeline_of({one, two});
  EXPECT_THAT(timeline.run_names, ElementsAre("train", "train, run 2"));
  EXPECT_EQ(timeline.nodes[0].name, "host (pid 7)");
  EXPECT_EQ(timeline.nodes[1].name, "host (pid 8)");
  EXPECT_EQ(timeline.rounds.size(), 2U);
}

TEST(TimelineTest, AnUnknownEventIsAMark) {
  ToldNode node("host", 7);
  node.joins(0);
  LogReader reader;
  reader.add(node.lines());
  std::string line = to_json(node.event(Kind::Warning, 10));
  line.replace(line.find("warning"), 7, "moon_rose");
  reader.add(line + "\n");
  (void)reader.end_file();
  const Log log = std::move(reader).finish();
  EXPECT_THAT(names(make_timeline(log, runs_of(log)).marks),
              ElementsAre("store_found", "moon_rose"));
}

TEST(TimelineTest, EventsThatContradictOneAnotherDoNoHarm) {
  ToldNode node("host", 7);
  node.starts(0, 3).exits(1, 3, "FAILED").tell(Kind::RoundEnded, 2);
  node.begins(3, 2, INT32_MAX, 9'000'000).begins(4, 2, 0).starts(5, 77).starts(6, 77);
  node.tell(Kind::Outcome, 7).tell(Kind::AgentEnded, 8).begins(9, 1, 0);
  const Timeline timeline = timeline_of({node});
  EXPECT_LE(timeline.nodes[0].workers.size(), 10'100U);
  for (const RankRow& worker : timeline.nodes[0].workers)
    for (const Span& span : worker.spans)
      EXPECT_LE(span.begin, span.end);
}

TEST(TimelineTest, NothingIsAnEmptyPicture) {
  const Timeline timeline = make_timeline({}, {});
  EXPECT_EQ(timeline.length, 0);
  EXPECT_THAT(timeline.nodes, IsEmpty());
}

}  // namespace
}  // namespace drun::timeline
