#include "jobs/job_view.hpp"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/keys.hpp"

namespace drun::jobs {
namespace {

using rendezvous::AssignmentDocument;
using rendezvous::Keys;
using rendezvous::MemberDocument;
using rendezvous::Phase;
using rendezvous::RoundDocument;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The documents of a job, as its agents would write them.
struct Store {
  explicit Store(std::string id = "train") : keys(std::move(id)) {}

  MemberDocument& member(const std::string& ticket) { return members[ticket]; }
  // The node of this group rank, with four workers.
  void place(int rank, const std::string& host) {
    const std::string ticket = "t" + std::to_string(rank);
    member(ticket).host = host;
    member(ticket).local_world_size = 4;
    AssignmentDocument document;
    document.go = true;
    document.assignment.round = round.number;
    document.assignment.group_rank = rank;
    document.assignment.group_world_size = 5'000;
    document.assignment.first_rank = document.assignment.first_role_rank = 4 * rank;
    document.assignment.world_size = document.assignment.role_world_size = 20'000;
    document.host = host;
    assignments[ticket] = document;
    round.nodes = rank + 1;
    round.world_size = 4 * round.nodes;
  }
  void run(int number = 2) {
    round.number = number;
    round.phase = Phase::Running;
  }
  JobView view() const {
    auto jobs = jobs_in(documents());
    EXPECT_EQ(jobs.size(), 1U);
    return jobs.empty() ? JobView() : std::move(jobs.front());
  }
  Documents documents() const {
    Documents result;
    for (const auto& [ticket, document] : members)
      result[keys.member(ticket)] = encode(document);
    for (const auto& [ticket, document] : assignments)
      result[keys.assignment(ticket)] = encode(document);
    for (const auto& [ticket, document] : beats)
      result[keys.beat_of(ticket)] = encode(document);
    result[keys.round] = encode(round);
    result[keys.leader] = encode(rendezvous::LeaderDocument{"t0", 1});
    result[keys.job] = encode(
        rendezvous::JobDocument{{{"nnodes", "2:8"}, {"max-restarts", "3"}, {"program", "x"}}});
    return result;
  }

  Keys keys;
  RoundDocument round;
  std::map<std::string, MemberDocument> members;
  std::map<std::string, AssignmentDocument> assignments;
  std::map<std::string, rendezvous::BeatDocument> beats;
};

TEST(JobViewTest, StepsAreToldAndTheRankThatIsBehindIsNamed) {
  Store store;
  store.run();
  for (int rank = 0; rank < 3; ++rank)
    store.place(rank, "node" + std::to_string(rank));
  // The last is of another round.
  store.beats = {{"t0", {2, 3, 42, 10'000, 43, 11'000}},
                 {"t1", {2, 5, 41, 11'000, 42, 11'000}},
                 {"t2", {1, 8, 7, 900, 7, 900}}};
  EXPECT_THAT(
      text_of(store.view(), 20'000),
      HasSubstr("\n  heartbeats: steps 41 to 43; rank 5 on node1 is furthest behind: step 41, "
                "9.0 s ago\n"));
  EXPECT_THAT(
      to_json(status_of(store.view(), 20'000), true),
      HasSubstr(
          R"("steps":[41,43],"behind":{"host":"node1","rank":5,"step":41,"heartbeat_ms":11000})"));
  store.beats = {{"t0", {2, 3, 42, 10'000, 42, 10'500}}};
  EXPECT_THAT(text_of(store.view(), 20'000), HasSubstr("\n  heartbeats: step 42\n"));
  EXPECT_THAT(to_json(status_of(store.view(), 20'000), true), Not(HasSubstr("behind")));
  store.round.phase = Phase::Stopping;
  EXPECT_THAT(text_of(store.view(), 20'000), Not(HasSubstr("heartbeats")));
}

TEST(JobViewTest, AHangIsSaidOfTheJobAndOfItsNodes) {
  Store store;
  store.run();
  store.place(0, "node0");
  store.place(1, "node1");
  store.member("t1").stalled = 2;
  EXPECT_THAT(text_of(store.view()),
              HasSubstr("\n  node1: none of its ranks makes progress any more\n"));
  EXPECT_THAT(text_of(store.view()), Not(HasSubstr("hangs")));
  store.round.hung = true;
  EXPECT_THAT(text_of(store.view()), HasSubstr("\n  hangs: no rank makes progress any more\n"));
}

TEST(JobViewTest, NodesOfOneStateShareALine) {
  Store store;
  store.run();
  store.round.restart_count = 1;
  for (int rank = 0; rank < 5; ++rank)
    store.place(rank, "node" + std::to_string(rank));
  store.member("t0").is_host = true;
  store.member("t3").succeeded = 2;
  store.member("late").host = "node9";
  EXPECT_EQ(text_of(store.view()),
            "job train: running, round 2: 5 nodes, 20 ranks\n"
            "  restarts: 1 of 3\n"
            "  store: node0\n"
            "  leader: node0\n"
            "  running: node[0-2,4] (ranks 0-11,16-19)\n"
            "  succeeded: node3 (ranks 12-15)\n"
            "  spare: node9\n");
}

TEST(JobViewTest, OneSeesWhoseTheRanksAreInWhateverOrderTheNodesCame) {
  Store store;
  store.run();
  const auto place = [&store](const std::vector<int>& hosts) {
    for (std::size_t rank = 0; rank < hosts.size(); ++rank)
      store.place(static_cast<int>(rank), "node" + std::to_string(hosts[rank]));
  };
  place({1, 2, 10, 0});
  EXPECT_THAT(text_of(store.view()),
              HasSubstr("\n  running: node[1-2,10] (ranks 0-11), node0 (ranks 12-15)\n"));
  std::vector<int> backwards;
  for (int i = 0; i < 40; ++i)
    backwards.push_back(39 - i);
  place(backwards);
  EXPECT_THAT(text_of(store.view()),
              HasSubstr("\n  running: node[0-39] (ranks 0-159, not in the order of the hosts)\n"));
  store.round.phase = Phase::Gathering;
  EXPECT_THAT(text_of(store.view()), HasSubstr("\n  waiting: node[0-39]\n"));
}

// What fits a terminal at one node must fit it at 2,000.
TEST(JobViewTest, ManyNodesAreAFewLines) {
  Store store;
  store.run();
  for (int rank = 0; rank < 2'000; ++rank)
    store.place(rank, "node" + std::to_string(rank));
  for (int rank = 1; rank < 2'000; rank += 2) {
    store.member("t" + std::to_string(rank)).failed = 2;
    store.member("t" + std::to_string(rank)).failure.emplace().cause = std::string(1'000, 'x');
  }
  const JobView view = store.view();
  const std::string text = text_of(view);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 20);
  EXPECT_LT(text.size(), 5'000U);
  EXPECT_THAT(text, HasSubstr("and 992 others\n"));
  EXPECT_EQ(view.nodes.size(), 2'000U);
}

// Its document goes with its agent; what is left of it is its place.
TEST(JobViewTest, ANodeOfTheRoundWithoutAnAgentIsMissing) {
  Store store;
  store.run();
  for (int rank = 0; rank < 5; ++rank)
    store.place(rank, "node" + std::to_string(rank));
  store.members.erase("t1");
  store.members.erase("t4");
  store.assignments["t4"].host.clear();  // an earlier drun leads
  const std::string text = text_of(store.view());
  EXPECT_THAT(text, HasSubstr("\n  running: node[0,2-3] (ranks 0-3,8-15)\n"));
  EXPECT_THAT(text, HasSubstr("\n  missing: node1, group rank 4 (ranks 4-7,16-19)\n"));
  EXPECT_THAT(to_json(status_of(store.view(), 0), true),
              HasSubstr(R"("absent":[{"host":"node1","state":"missing","note":"its agent is gone",)"
                        R"("group_rank":1,"ranks":[4,7],"node":"t1"},)"));
  store.round.phase = Phase::Gathering;
  EXPECT_THAT(store.view().absent, IsEmpty()) << "nobody has a place then";
}

TEST(JobViewTest, OfANodeThatFailedTheRanksThatDidAreTold) {
  Store store;
  store.run();
  store.place(0, "node0");
  store.place(1, "node1");
  MemberDocument& member = store.member("t1");
  member.failed = 2;
  member.failure.emplace();
  member.failure->rank = 6;
  member.failure->host = "node1";
  member.failure->cause = "exit code 7";
  member.failure->others = {{{{4, 4}}, "exit code 9", "", 0}};
  const std::string json = to_json(status_of(store.view(), 0), true);
  EXPECT_THAT(json, HasSubstr(R"("ranks":[4,7],"failed_ranks":[[4,4],[6,6]],"node":"t1"})"));
  EXPECT_THAT(json, HasSubstr(R"("ranks":[0,3],"node":"t0"})"));
}

TEST(JobViewTest, WhoWasLostAndIsNotBackIsNamed) {
  Store store;
  store.run(4);
  store.place(0, "node0");
  store.round.lost_hosts = {{"node0", 1}, {"node7", 1}, {"node8", 2}};
  store.round.set_aside = {{"gone", "node9", "its workers failed first in 2 rounds", 3, "x"},
                           {"lost", "node8", "it was lost 2 times", -1, ""}};
  EXPECT_EQ(text_of(store.view()),
            "job train: running, round 4: 1 node, 4 ranks\n"
            "  restarts: 0 of 3\n"
            "  leader: node0\n"
            "  running: node0 (ranks 0-3)\n"
            "  lost: node[7-8]\n"
            "  set-aside: node9\n"
            "  node7: lost in 1 round, and not back\n"
            "  node8: lost in 2 rounds, and not back\n"
            "  node9: its workers failed first in 2 rounds\n");
}

TEST(JobViewTest, ALostNodeIsMissedThoughOthersOfItsHostAreThere) {
  Store store;
  store.run(4);
  store.place(0, "vm");
  store.place(1, "vm");
  store.round.lost_hosts = {{"vm", 1}};
  store.round.agents_of_lost = {{"vm", 4}};
  EXPECT_EQ(text_of(store.view()),
            "job train: running, round 4: 2 nodes, 8 ranks\n"
            "  restarts: 0 of 3\n"
            "  leader: vm\n"
            "  running: vm x2 (ranks 0-7)\n"
            "  lost: vm x2\n"
            "  vm: lost in 1 round, and not back: 2 of 4 agents are there\n");
  EXPECT_EQ(store.view().absent.size(), 2U);
  store.place(2, "vm");
  store.place(3, "vm");
  EXPECT_THAT(store.view().absent, IsEmpty());
}

TEST(JobViewTest, OfASpareThatWasSetAsideTheReasonIsTold) {
  Store store;
  store.run();
  store.place(0, "node0");
  store.member("late").host = "node9";
  store.round.set_aside = {{"late", "node9", "it was lost 2 times", -1, ""}};
  EXPECT_THAT(text_of(store.view()),
              HasSubstr("\n  spare: node9\n  node9: set aside: it was lost 2 times\n"));
  EXPECT_THAT(store.view().absent, IsEmpty());
}

TEST(JobViewTest, EachNodeHasItsState) {
  struct Case {
    const char* state;
    std::function<void(Store&)> make;
  };
  for (const auto& [state, make] : std::vector<Case>{
           {"running", [](Store&) {}},
           {"succeeded", [](Store& store) { store.member("t0").succeeded = 2; }},
           {"running", [](Store& store) { store.member("t0").succeeded = 1; }},
           {"failed",
            [](Store& store) {
              store.member("t0").failed = 2;
              store.member("t0").failure.emplace();
            }},
           {"stopped", [](Store& store) { store.member("t0").left = 2; }},
           {"stopping", [](Store& store) { store.round.phase = Phase::Stopping; }},
           {"preparing", [](Store& store) { store.round.phase = Phase::Preparing; }},
           {"waiting", [](Store& store) { store.round.phase = Phase::Gathering; }},
           {"spare", [](Store& store) { store.assignments["t0"].assignment.round = 1; }},
           {"spare", [](Store& store) { store.assignments.clear(); }},
           {"refused", [](Store& store) { store.assignments["t0"].refused = "no"; }},
           {"leaving", [](Store& store) { store.member("t0").leave.emplace().reason = "told"; }}}) {
    Store store;
    store.run();
    store.place(0, "node0");
    make(store);
    const JobView view = store.view();
    ASSERT_EQ(view.nodes.size(), 1U);
    EXPECT_EQ(view.nodes[0].state, state);
  }
}

TEST(JobViewTest, AJobHasItsState) {
  Store store;
  store.round.phase = Phase::Gathering;
  store.place(0, "node0");
  EXPECT_EQ(store.view().state, JobState::Gathering);
  store.round.phase = Phase::Preparing;
  EXPECT_EQ(store.view().state, JobState::Gathering);
  store.round.phase = Phase::Running;
  EXPECT_EQ(store.view().state, JobState::Running);
  store.round.phase = Phase::Stopping;
  EXPECT_EQ(store.view().state, JobState::Stopping);
  store.members.clear();
  EXPECT_EQ(store.view().state, JobState::Abandoned);
  Documents ended = store.documents();
  rendezvous::Outcome outcome;
  ended[store.keys.outcome] = encode(outcome);
  EXPECT_EQ(jobs_in(ended).at(0).state, JobState::Succeeded);
  outcome.exit_code = 7;
  outcome.text = "job failed: rank 3";
  ended[store.keys.outcome] = encode(outcome);
  EXPECT_EQ(jobs_in(ended).at(0).state, JobState::Failed);
  EXPECT_EQ(text_of(jobs_in(ended).at(0)),
            "job train: failed, exit code 7\n  end: job failed: rank 3\n  restarts: 0 of 3\n");
}

// The agreement goes with the end of the job.
TEST(JobViewTest, OfAJobThatHasEndedTheHistoryHasItsSize) {
  Store store;
  Documents ended = store.documents();
  ended.erase(store.keys.job);
  rendezvous::History history;
  history.nnodes = "2:8";
  ended[store.keys.history] = encode(history);
  EXPECT_EQ(jobs_in(ended).at(0).nnodes, "2:8");
}

TEST(JobViewTest, OfAJobThatHasEndedOneSeesWhenItDidAndItsSize) {
  constexpr std::int64_t kBegin = 1'795'876'200'000;  // 2026-11-28 14:30:00 UTC
  Store store;
  Documents ended = store.documents();
  ended[store.keys.outcome] = encode(rendezvous::Outcome());
  rendezvous::History history;
  history.rounds = {{1, 4, 32, 0, kBegin, kBegin + 60'000, kBegin + 61'000,
                     rendezvous::Cause::Failure, "rank 3: exit code 7", 1},
                    {2, 2, 16, kBegin + 61'000, kBegin + 62'000, 0, kBegin + 150'000,
                     rendezvous::Cause::None, "", 0}};
  ended[store.keys.history] = encode(history);
  EXPECT_THAT(text_of(jobs_in(ended).at(0)),
              ::testing::StartsWith(
                  "job train: succeeded, exit code 0, round 2: 2 nodes, 16 ranks\n"
                  "  ended: 2026-11-28 14:32:30 UTC, 2 min 30 s after its first round began\n"));
  history.rounds.erase(history.rounds.begin());  // it is forgotten
  ended[store.keys.history] = encode(history);
  EXPECT_THAT(text_of(jobs_in(ended).at(0)), HasSubstr("\n  ended: 2026-11-28 14:32:30 UTC\n"));
}

TEST(JobViewTest, WaitingSaysForWhom) {
  Store store;
  store.round.phase = Phase::Gathering;
  store.round.waiting = "1 of 2 to 8 nodes (node0)";
  store.round.reason = "rank 3 (local rank 1 on node1): exit code 7";
  store.place(0, "node0");
  EXPECT_EQ(text_of(store.view()),
            "job train: gathering, --nnodes 2:8\n"
            "  restarts: 0 of 3\n"
            "  waits: 1 of 2 to 8 nodes (node0)\n"
            "  last stop: rank 3 (local rank 1 on node1): exit code 7\n"
            "  leader: node0\n"
            "  waiting: node0\n");
}

TEST(JobViewTest, TheNodeRanksThatAreWaitedForAreAbsent) {
  Store store;
  store.round.phase = Phase::Gathering;
  store.round.waiting = "2 of 6 nodes (node[0,3]); missing node ranks 1-2,4-5";
  for (const int rank : {0, 3}) {
    store.member("t" + std::to_string(rank)).host = "node" + std::to_string(rank);
    store.member("t" + std::to_string(rank)).node_rank = rank;
  }
  Documents documents = store.documents();
  const auto set_size = [&](const std::string& nnodes) {
    documents[store.keys.job] = encode(rendezvous::JobDocument{{{"nnodes", nnodes}}});
  };
  set_size("6");
  const JobView view = jobs_in(documents).at(0);
  std::vector<int> ranks;
  for (const AbsentNode& node : view.absent) {
    EXPECT_EQ(node.state, "missing");
    ranks.push_back(node.group_rank.value_or(-1));
  }
  EXPECT_THAT(ranks, ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(text_of(view), Not(HasSubstr("\n  missing:"))) << "it is in the line that waits";
  set_size("1000000000");
  EXPECT_THAT(jobs_in(documents).at(0).absent, IsEmpty());
  set_size("6");
  store.member("any").host = "node9";  // it takes a rank that nobody asks for
  documents[store.keys.member("any")] = encode(store.members["any"]);
  EXPECT_THAT(jobs_in(documents).at(0).absent, IsEmpty());
}

TEST(JobViewTest, OfANodeRankThatTwoAskForItIsSaid) {
  Store store;
  store.round.phase = Phase::Gathering;
  for (const char* ticket : {"a", "b", "c"}) {
    store.member(ticket).host = std::string("node-") + ticket;
    store.member(ticket).node_rank = ticket[0] == 'c' ? 2 : 1;
  }
  EXPECT_THAT(text_of(store.view()), HasSubstr("\n  node-a: node rank 1 is asked for by 2 agents\n"
                                               "  node-b: node rank 1 is asked for by 2 agents\n"));
  EXPECT_THAT(text_of(store.view()), Not(HasSubstr("node-c: ")));
}

TEST(JobViewTest, SeveralJobsEachHaveTheirOwn) {
  Documents all = Store("b").documents();
  all.merge(Store("a/x").documents());
  all["drun/"] = "";
  all["drun/nothing"] = "";
  all["else"] = "";
  std::vector<std::string> ids;
  for (const JobView& job : jobs_in(all))
    ids.push_back(job.id);
  EXPECT_THAT(ids, ElementsAre("a/x", "b"));
  EXPECT_THAT(jobs_in({}), IsEmpty());
}

TEST(JobViewTest, WhatIsNoDocumentIsPassedOver) {
  Store store;
  store.run();
  store.place(0, "node0");
  Documents documents = store.documents();
  for (auto& [key, text] : documents)
    if (key != store.keys.round) text = "{";
  const JobView view = jobs_in(documents).at(0);
  EXPECT_EQ(view.state, JobState::Running);
  ASSERT_EQ(view.nodes.size(), 1U);
  EXPECT_EQ(view.nodes[0].state, "unknown");
}

TEST(JobViewTest, ASilenceIsToldOnceItIsLong) {
  Store store;
  store.run();
  for (int rank = 0; rank < 4; ++rank)
    store.place(rank, "node" + std::to_string(rank));
  LastWords words{{store.keys.member("t0"), {100, 15'000}},
                  {store.keys.member("t1"), {7'500, 15'000}},
                  {store.keys.member("t2"), {7'600, 15'000}}};
  const auto text = [&] { return text_of(jobs_in(store.documents(), words).at(0)); };
  EXPECT_THAT(text(), HasSubstr("\n  silent: node2: no word for 7.6 s, lost after 15.0 s\n"));
  words.at(store.keys.member("t0")).age_ms = 12'300;
  EXPECT_THAT(text(),
              HasSubstr("\n  silent: node[0,2]: no word for up to 12.3 s, lost after 15.0 s\n"));
  const std::string json = to_json(status_of(jobs_in(store.documents(), words).at(0), 0), true);
  EXPECT_THAT(json, HasSubstr(R"("ranks":[4,7],"word_age_ms":7500,"lease_ms":15000,"node":"t1"})"));
  EXPECT_THAT(json, HasSubstr(R"("ranks":[12,15],"node":"t3"})")) << "nobody knows";
  EXPECT_THAT(text_of(store.view()), Not(HasSubstr("silent")));
}

TEST(JobViewTest, WhoHasNotComeToACollectiveIsTold) {
  Store store;
  store.run();
  store.place(0, "node0");
  JobView view = store.view();
  EXPECT_THAT(to_json(status_of(view, 0), true), Not(HasSubstr("collective")));
  view.collective = "rank 1 has begun 99 All\x1b[mReduce, the other 100";
  EXPECT_THAT(text_of(view),
              HasSubstr("\n  NCCL: rank 1 has begun 99 All\\x1b[mReduce, the other 100\n"));
  EXPECT_THAT(to_json(status_of(view, 0), true),
              HasSubstr(R"("collective":"rank 1 has begun 99 )"));
}

TEST(JobViewTest, WhatTheRanksOfThisHostHaveUsedIsToldLast) {
  Store store;
  store.run();
  store.place(0, "node0");
  JobView view = store.view();
  EXPECT_THAT(to_json(status_of(view, 0), true), Not(HasSubstr("usage")));
  view.usage = {{2, 1, "node0", {{1, 2'000, 300'000, 4, 8, 100}}},
                {2, 0, "node0", {{0, 2'000, 300'000, 4, 8, 100}}}};
  EXPECT_THAT(text_of(view), HasSubstr("\n  usage of 2 ranks of 4 "));
  EXPECT_THAT(text_of(view), HasSubstr("\n    CPU time "));
  EXPECT_THAT(to_json(status_of(view, 0), true),
              HasSubstr(R"("usage":[{"rank":0,"cpu_ms":2000,"peak_kib":300000,"read_kib":4,)"
                        R"("written_kib":8,"switches":100},{"rank":1,)"));
}

TEST(JobViewTest, DocumentsGoToAnotherProcess) {
  Store store("a\x1b/b");
  store.run();
  store.place(0, "node0");
  const Documents documents = store.documents();
  const std::string text = encode(documents);
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  const auto read = decode_documents(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, documents);
  EXPECT_TRUE(decode_documents(R"({"documents":{}})"));
  for (const char* wrong : {"", "{}", "[]", R"({"documents":[]})", R"({"documents":{"a":1}})"})
    EXPECT_FALSE(decode_documents(wrong)) << wrong;
}

// Of a job of many nodes; a look at all names for each would take minutes.
TEST(JobViewTest, ManyDocumentsAreReadInOneGo) {
  Documents documents;
  for (int i = 0; i < 100'000; ++i)
    documents.emplace("drun/a/member/" + std::to_string(i), "{}");
  const auto begun = std::chrono::steady_clock::now();
  const auto read = decode_documents(encode(documents));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, documents);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
}

TEST(JobViewTest, NothingActsOnATerminal) {
  Store store("\x1b[2J");
  store.run();
  store.place(0, "no\x1b[2Jde");
  store.round.reason = "\x1b]0;";
  store.assignments["t0"].refused = "\x1b[1m\n";
  EXPECT_THAT(text_of(store.view()), Not(HasSubstr("\x1b")));
}

TEST(JobViewTest, JsonHasEveryNode) {
  Store store;
  store.run();
  store.place(0, "node0");
  store.member("t0").address = "10.0.0.1";
  store.member("t0").role = "default";
  store.member("t0").is_host = true;
  store.member("late").host = "node9";
  EXPECT_EQ(
      to_json(status_of(store.view(), 0), false),
      R"({"id":"train","state":"running","nnodes":"2:8","round":{"number":2,"phase":"running",)"
      R"("nodes":1,"world_size":4,"waiting":"","reason":"","since_ms":0,"hung":false},"restarts":0,"max_restarts":3,)"
      R"("losses":0,"nodes":[{"host":"node0","address":"10.0.0.1","role":"default",)"
      R"("state":"running","note":"","hosts_store":true,"leads":true,"group_rank":0,)"
      R"("ranks":[0,3],"node":"t0"},{"host":"node9","address":"","role":"","state":"spare","note":"",)"
      R"("hosts_store":false,"leads":false,"node":"late"}],"absent":[],"rounds":[]})");
}

}  // namespace
}  // namespace drun::jobs
