#include "launcher/agent/participant_driver.hpp"

#include <sys/resource.h>

#include <csignal>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/exit_codes.hpp"
#include "launcher/agent/own_status.hpp"
#include "launcher/report/outcome_report.hpp"
#include "rendezvous/documents.hpp"
#include "rendezvous/keys.hpp"
#include "support/agent_parts.hpp"

namespace drun::launcher {
namespace {

using rendezvous::End;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::chrono::seconds kLimit{100};
const std::string kHost = "node7";

Options limited() {
  Options options = test::lone_job();
  options.timeout = kLimit;
  return options;
}

Options two_nodes() {
  Options options = test::lone_job();
  options.max_nodes = 2;
  return options;
}

// An agent that only takes part, wired as the agent does it.
class Taking {
 public:
  explicit Taking(Options options = test::lone_job()) : parts(std::move(options)) {
    parts.on_joined = [this] { driver.join(parts.node); };
    parts.on_event = [this](const rendezvous::KeyValueEvent& event) {
      driver.on_event(event, now());
      pump();
    };
    parts.on_news = [this](WorkerNews news, auto) {
      if (!outcome) driver.on_workers(std::move(news), now());
    };
    parts.on_batch = [this] { pump(); };
    parts.workers.listen();
    parts.backend.start();
  }

  [[nodiscard]] rendezvous::Time now() const { return std::chrono::steady_clock::now() + later_; }
  void pump() {
    parts.workers.on_time();
    if (!outcome) driver.perform_actions();
  }
  // Until the guardian has been asked for this; the loop may go through several turns of the store.
  [[nodiscard]] bool until_asked(const std::string& call) {
    return parts.until([&] {
      return std::find(parts.runner.calls.begin(), parts.runner.calls.end(), call) !=
             parts.runner.calls.end();
    });
  }
  [[nodiscard]] bool until_over() {
    return parts.until([this] { return outcome.has_value(); });
  }
  // As until(), and whatever only time brings happens at once.
  [[nodiscard]] bool until_in_time(const std::function<bool()>& condition) {
    constexpr int kMinutes = 10;
    for (int second = 0; second < 60 * kMinutes && !condition(); ++second) {
      later_ += std::chrono::seconds(1);
      driver.on_time(now());
      pump();
      parts.turn();
      parts.status.line().on_time(now());
    }
    return condition();
  }
  // The worker of the round that begins runs.
  [[nodiscard]] bool run_worker(process::WorkerId id = 1) {
    if (!until_asked("spawn " + std::to_string(id))) return false;
    parts.runner.report(process::Spawned{id, static_cast<pid_t>(100 + id)});
    parts.turn();
    (void)parts.runner.take_calls();
    return true;
  }
  // The limit of limited() is over.
  void pass_limit() {
    later_ += kLimit;
    driver.on_time(now());
    pump();
  }
  // Somebody has written this there.
  void write(const std::string& key, std::string value) {
    constexpr rendezvous::RequestId kNobodys = 1'000'000;
    rendezvous::Transaction transaction;
    transaction.writes.push_back({key, std::move(value), false});
    parts.backend.key_value().commit(kNobodys, std::move(transaction));
  }
  void report_exit(process::WorkerId id, int code) {
    parts.runner.report(process::Exited{id, static_cast<pid_t>(100 + id), {code, 0, false}, false});
  }

  test::AgentParts parts;
  std::function<void()> on_finish = [] {};
  std::optional<rendezvous::Outcome> outcome;
  int finished = 0;

 private:
  std::chrono::seconds later_{0};

 public:
  ParticipantDriver driver{
      {parts.options, kHost, parts.status, parts.workers, parts.backend, parts.events},
      [this](rendezvous::Outcome end) {
        outcome = std::move(end);
        ++finished;
        on_finish();
      }};
};

// One of two nodes, which the other leads, who also has the store. It never says anything.
class Led : public Taking {
 public:
  explicit Led(Options options = two_nodes()) : Taking(std::move(options)) {
    parts.on_joined = [this] {
      const rendezvous::Keys keys("own");
      write(keys.member("other"), encode(rendezvous::MemberDocument{}));
      write(keys.leader, encode(rendezvous::LeaderDocument{"other", 1}));
      parts.node.hosting = false;
      driver.join(parts.node);
    };
  }
};

// With the log as --verbose has it.
class ParticipantDriverTest : public testing::Test {
 protected:
  ParticipantDriverTest() { log::configure("drun", log::Level::Info); }
  ~ParticipantDriverTest() override { log::configure("drun", log::Level::Warning); }
};

TEST_F(ParticipantDriverTest, NothingHappensBeforeItJoins) {
  test::AgentParts parts;
  ParticipantDriver driver(
      {parts.options, kHost, parts.status, parts.workers, parts.backend, parts.events},
      [](const rendezvous::Outcome&) { FAIL(); });
  EXPECT_FALSE(driver.joined());
  EXPECT_FALSE(driver.dispensable(false));
  EXPECT_FALSE(driver.next_deadline());
  driver.on_time(rendezvous::Time());
  driver.perform_actions();
  EXPECT_THAT(parts.runner.calls, IsEmpty());
}

TEST_F(ParticipantDriverTest, WhoWasNeverRegisteredMayBeDropped) {
  test::AgentParts parts;
  ParticipantDriver driver(
      {parts.options, kHost, parts.status, parts.workers, parts.backend, parts.events},
      [](const rendezvous::Outcome&) { FAIL(); });
  driver.join({});
  EXPECT_TRUE(driver.joined());
  EXPECT_TRUE(driver.dispensable(false));
  driver.drop();
  EXPECT_FALSE(driver.joined());
  EXPECT_FALSE(driver.next_deadline());
}

TEST_F(ParticipantDriverTest, RunsTheWorkersOfARoundUntilTheySucceed) {
  Taking agent;
  ASSERT_TRUE(agent.run_worker());
  EXPECT_TRUE(agent.driver.joined());
  EXPECT_FALSE(agent.driver.dispensable(false)) << "the store knows it";
  EXPECT_EQ(agent.parts.workers.group().round(), 1);
  agent.report_exit(1, 0);
  ASSERT_TRUE(agent.until_asked("stop SIGTERM 30000")) << "what they left behind";
  agent.parts.runner.report(process::Stopped{});
  ASSERT_TRUE(agent.until_over());
  EXPECT_EQ(agent.outcome->end, End::Success);
  EXPECT_EQ(agent.finished, 1);
  EXPECT_THAT(agent.parts.lines, IsEmpty()) << "one node: no news";
}

TEST_F(ParticipantDriverTest, AFailureIsRestartedThenTold) {
  Options options = test::lone_job();
  options.max_restarts = 1;
  Taking agent(options);
  for (const process::WorkerId id : {1U, 2U}) {
    ASSERT_TRUE(agent.run_worker(id));
    agent.report_exit(id, 7);
    ASSERT_TRUE(agent.until_asked("stop SIGTERM 30000"));
    agent.parts.runner.report(process::Stopped{});
  }
  ASSERT_TRUE(agent.until_over());
  EXPECT_EQ(agent.outcome->end, End::Failure);
  EXPECT_EQ(agent.outcome->exit_code, 7);
  ASSERT_TRUE(agent.outcome->failure);
  EXPECT_EQ(agent.outcome->failure->cause, "exit code 7");
  EXPECT_THAT(agent.parts.lines, Contains(HasSubstr("restart 1/1")));
}

TEST_F(ParticipantDriverTest, ARequestToStopEndsTheJobWithItsCode) {
  Taking agent;
  ASSERT_TRUE(agent.run_worker());
  agent.driver.on_stop_signal("received SIGTERM", SIGTERM, agent.now());
  agent.pump();
  ASSERT_TRUE(agent.until_asked("stop SIGTERM 30000"));
  agent.parts.runner.report(process::Stopped{});
  ASSERT_TRUE(agent.until_over());
  EXPECT_EQ(agent.outcome->end, End::Stopped);
  EXPECT_EQ(agent.outcome->exit_code, exit_code_of_signal(SIGTERM));
  EXPECT_EQ(agent.outcome->text, "received SIGTERM");
}

TEST_F(ParticipantDriverTest, ATimeLimitEndsTheJobAndTellsWhatEachRankDoes) {
  Taking agent(limited());
  ASSERT_TRUE(agent.run_worker());
  agent.pass_limit();
  ASSERT_TRUE(agent.until_asked("stop SIGTERM 30000"));
  EXPECT_THAT(agent.parts.lines,
              Contains(AllOf(HasSubstr("warning: rank 0"), HasSubstr("running"))));
  agent.parts.runner.report(process::Stopped{});
  ASSERT_TRUE(agent.until_over());
  EXPECT_EQ(agent.outcome->exit_code, kTimeLimit);
}

TEST_F(ParticipantDriverTest, WhoHasNotJoinedAtATimeLimitJustGoes) {
  Taking agent(limited());
  agent.pass_limit();
  ASSERT_TRUE(agent.outcome);
  EXPECT_EQ(agent.outcome->exit_code, kTimeLimit);
  EXPECT_THAT(agent.parts.lines, ElementsAre(HasSubstr("no worker of this node was started")));
}

TEST_F(ParticipantDriverTest, ALostGuardianIsAFailureOfDrun) {
  Taking agent;
  ASSERT_TRUE(agent.run_worker());
  process::GuardianLost lost;
  lost.status.signal = SIGKILL;
  agent.parts.runner.report(lost);
  ASSERT_TRUE(agent.until_over());
  EXPECT_EQ(agent.outcome->end, End::Stopped);
  EXPECT_EQ(agent.outcome->exit_code, kDrunFailed);
  EXPECT_THAT(agent.outcome->text, HasSubstr("SIGKILL"));
}

// What killed the guardian may have killed a worker just before.
TEST_F(ParticipantDriverTest, ALostGuardianHidesNoFailureThatWasKnown) {
  Taking agent;
  ASSERT_TRUE(agent.run_worker());
  agent.report_exit(1, 7);
  agent.parts.runner.report(process::GuardianLost{});
  ASSERT_TRUE(agent.until_over());
  EXPECT_EQ(agent.outcome->exit_code, kDrunFailed);
  EXPECT_THAT(agent.outcome->text, AllOf(HasSubstr("guardian"), HasSubstr("exit code 7")));
}

TEST_F(ParticipantDriverTest, WorkersThatOutliveTheirLeaseMeanThatTheStoreIsLost) {
  Taking agent;
  ASSERT_TRUE(agent.run_worker());
  agent.parts.runner.report(process::LeaseOver{});
  ASSERT_TRUE(agent.until_asked("stop SIGKILL 0"));
  EXPECT_THAT(agent.parts.lines, IsEmpty()) << "it is said when they are gone";
  agent.parts.runner.report(process::Stopped{});
  ASSERT_TRUE(agent.until_over());
  EXPECT_EQ(agent.outcome->end, End::StoreLost);
}

// Only those need one who could be cut off from their store.
TEST_F(ParticipantDriverTest, TheRendezvousRenewsTheLeaseOfTheWorkers) {
  for (const bool hosting : {true, false}) {
    Options options = test::lone_job();
    options.backend = Backend::C10d;
    test::AgentParts parts(options);
    ParticipantDriver driver(
        {parts.options, kHost, parts.status, parts.workers, parts.backend, parts.events},
        [](const rendezvous::Outcome&) { FAIL(); });
    NodeIdentity node;
    node.hosting = hosting;
    driver.join(node);
    const auto now = std::chrono::steady_clock::now();
    driver.on_event(rendezvous::Renewed{now}, now);
    EXPECT_THAT(parts.runner.calls, IsEmpty()) << "it decides";
    driver.perform_actions();
    if (hosting) {
      EXPECT_THAT(parts.runner.calls, IsEmpty());
    } else {
      EXPECT_THAT(parts.runner.calls, ElementsAre("lease 8000"));
    }
  }
}

// What is left of them is swept meanwhile.
TEST_F(ParticipantDriverTest, AfterTheEndTheLeaseIsStillRenewedAndNothingElseHappens) {
  Options options = two_nodes();
  options.backend = Backend::C10d;
  Led agent(options);
  agent.driver.join({});
  agent.driver.on_time(agent.now());
  agent.driver.on_event(rendezvous::LinkEvent{rendezvous::Link::Failed, "gone"}, agent.now());
  agent.driver.perform_actions();
  ASSERT_TRUE(agent.outcome);
  EXPECT_FALSE(agent.driver.dispensable(true));
  (void)agent.parts.runner.take_calls();
  agent.driver.on_event(rendezvous::Renewed{std::chrono::steady_clock::now()}, agent.now());
  EXPECT_EQ(agent.parts.runner.take_calls(), "lease 8000");
  agent.driver.on_event(rendezvous::LinkEvent{rendezvous::Link::Failed, "again"}, agent.now());
  agent.driver.perform_actions();
  EXPECT_EQ(agent.finished, 1);
}

TEST_F(ParticipantDriverTest, TheOthersReadOnWhichNodeAJobCannotBeRun) {
  for (const int nodes : {1, 2}) {
    Options options = test::lone_job();
    options.max_nodes = nodes;
    Taking agent(options);
    agent.driver.refuse_job("--report: no such folder", agent.now());
    ASSERT_TRUE(agent.outcome);
    EXPECT_EQ(agent.outcome->exit_code, kDrunFailed);
    EXPECT_EQ(agent.outcome->text,
              nodes == 1 ? "--report: no such folder" : "--report: no such folder on node7");
  }
}

TEST_F(ParticipantDriverTest, WhoseEndTheOthersCannotKnowLeavesUnannounced) {
  Taking agent;
  EXPECT_TRUE(agent.driver.left_unannounced(End::Success)) << "it has never joined";
  agent.driver.join({});
  for (const End end : {End::Success, End::Failure, End::Stopped, End::Timeout})
    EXPECT_FALSE(agent.driver.left_unannounced(end)) << static_cast<int>(end);
  for (const End end : {End::Refused, End::StoreLost})
    EXPECT_TRUE(agent.driver.left_unannounced(end)) << static_cast<int>(end);
}

TEST_F(ParticipantDriverTest, WithoutAPortForTheWorkersStoreTheJobEnds) {
  Options options = test::lone_job();
  options.master_port.reset();  // to be found
  Taking agent(options);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 0;
  ::setrlimit(RLIMIT_NOFILE, &none);
  const bool over = agent.until_over();
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(over);
  EXPECT_EQ(agent.outcome->exit_code, kDrunFailed);
  EXPECT_THAT(agent.outcome->text, HasSubstr("no free port"));
  EXPECT_THAT(agent.parts.runner.calls, testing::Not(Contains("spawn 1")));
}

TEST_F(ParticipantDriverTest, WhoLeavesAloneGoesWithItsOwnCode) {
  Options options = test::lone_job();
  options.leave_on_sigterm = true;
  Taking agent(options);
  ASSERT_TRUE(agent.run_worker());
  agent.driver.on_stop_signal("received SIGTERM", SIGTERM, agent.now());
  agent.pump();
  ASSERT_TRUE(agent.until_asked("stop SIGTERM 30000"));
  agent.parts.runner.report(process::Stopped{});
  ASSERT_TRUE(agent.until_over());
  EXPECT_EQ(agent.outcome->exit_code, exit_code_of_signal(SIGTERM));
}

TEST_F(ParticipantDriverTest, TheJobGoesOnWithoutWhoLeaves) {
  Options options = two_nodes();
  options.leave_on_sigterm = true;
  Led agent(options);
  ASSERT_TRUE(agent.parts.until([&] { return agent.driver.joined(); }));
  agent.driver.on_stop_signal("received SIGTERM", SIGTERM, agent.now());
  ASSERT_TRUE(agent.until_in_time([&] { return agent.outcome.has_value(); }));
  EXPECT_EQ(agent.outcome->exit_code, exit_code_of_signal(SIGTERM));
  EXPECT_EQ(agent.outcome->text, "received SIGTERM on node7; this node leaves the job");
  EXPECT_TRUE(agent.driver.left_unannounced(agent.outcome->end));
}

TEST_F(ParticipantDriverTest, WhoWasToldToGoBeforeItJoinedJustGoes) {
  for (const bool leaves : {false, true}) {
    Options options = test::lone_job();
    options.leave_on_sigterm = leaves;
    Taking agent(options);
    agent.driver.on_stop_signal("received SIGTERM", SIGTERM, agent.now());
    ASSERT_TRUE(agent.outcome);
    EXPECT_EQ(agent.outcome->end, End::Stopped);
    EXPECT_EQ(agent.outcome->exit_code, exit_code_of_signal(SIGTERM));
    EXPECT_TRUE(agent.driver.left_unannounced(agent.outcome->end));
  }
}

TEST_F(ParticipantDriverTest, WithoutAGuardianNobodyJoins) {
  Taking agent;
  WorkerNews lost;
  lost.guardian_ended = "the guardian died";
  agent.driver.on_workers(lost, agent.now());
  ASSERT_TRUE(agent.outcome);
  EXPECT_EQ(agent.outcome->exit_code, kDrunFailed);
  EXPECT_EQ(agent.outcome->text, "the guardian died");
}

TEST_F(ParticipantDriverTest, WhoStopsTheJobWaitsForItsLeader) {
  Led agent;
  ASSERT_TRUE(agent.parts.until([&] { return agent.driver.joined(); }));
  agent.driver.on_stop_signal("received SIGTERM", SIGTERM, agent.now());
  EXPECT_FALSE(agent.until_in_time([&] { return agent.outcome.has_value(); }));
  agent.write(rendezvous::Keys("own").outcome,
              encode(ended_early(End::Stopped, 3, "by the leader")));
  ASSERT_TRUE(agent.until_over());
  EXPECT_EQ(agent.outcome->text, "by the leader");
}

TEST_F(ParticipantDriverTest, WhileOthersEndTheirWorkersTheJobStops) {
  Led agent;
  ASSERT_TRUE(agent.parts.until([&] { return agent.driver.joined(); }));
  const auto phase = [&] {
    return own_status(agent.parts.options, kHost, agent.parts.workers, agent.parts.status,
                      agent.driver)
        .phase;
  };
  EXPECT_EQ(phase(), status::Phase::Gathering);
  rendezvous::RoundDocument round;
  round.number = 1;
  round.phase = rendezvous::Phase::Stopping;
  agent.write(rendezvous::Keys("own").round, encode(round));
  EXPECT_TRUE(agent.parts.until([&] { return phase() == status::Phase::Stopping; }));
  round.phase = rendezvous::Phase::Gathering;
  agent.write(rendezvous::Keys("own").round, encode(round));
  EXPECT_TRUE(agent.parts.until([&] { return phase() == status::Phase::Gathering; }));
}

// As if the agent itself had died.
TEST_F(ParticipantDriverTest, ALostGuardianTakesItsNodeOutOfAJobThatCanChangeItsSize) {
  Led agent;
  ASSERT_TRUE(agent.parts.until([&] { return agent.driver.joined(); }));
  process::GuardianLost lost;
  lost.status.signal = SIGKILL;
  agent.parts.runner.report(lost);
  ASSERT_TRUE(agent.until_in_time([&] { return agent.outcome.has_value(); }));
  EXPECT_EQ(agent.outcome->exit_code, kDrunFailed);
  EXPECT_THAT(agent.outcome->text, HasSubstr("; this node leaves the job"));
}

TEST_F(ParticipantDriverTest, AValueThatNobodyUnderstandsIsAWarning) {
  Taking agent;
  ASSERT_TRUE(agent.run_worker());
  agent.write(rendezvous::Keys("own").assignment(agent.parts.node.ticket), "no document");
  ASSERT_TRUE(agent.parts.until([&] { return !agent.parts.lines.empty(); }));
  EXPECT_THAT(agent.parts.lines, ElementsAre(testing::StartsWith("drun: warning: ")));
}

TEST_F(ParticipantDriverTest, WhatWasWaitedForIsForgottenWhenTheWorkersStart) {
  Taking agent(limited());
  agent.parts.status.waiting("for the store", agent.now());
  ASSERT_TRUE(agent.run_worker());
  agent.pass_limit();
  EXPECT_THAT(agent.parts.lines, ElementsAre(HasSubstr("rank 0")));
}

// Whoever leaves has the screen for itself.
TEST_F(ParticipantDriverTest, NothingIsSaidAfterTheEnd) {
  Led agent;
  ASSERT_TRUE(agent.until_in_time([&] { return !agent.parts.lines.empty(); })) << "it waits";
  agent.on_finish = [&] { agent.parts.status.waiting("for the reader", agent.now()); };
  agent.write(rendezvous::Keys("own").outcome, encode(ended_early(End::Stopped, 3, "by all")));
  ASSERT_TRUE(agent.until_over());
  agent.parts.lines.clear();
  agent.parts.status.at_limit({});
  EXPECT_THAT(agent.parts.lines, ElementsAre(HasSubstr("for the reader")));
}

// ---- what several nodes are told ----

TEST_F(ParticipantDriverTest, StateChangesAndTheReasonOfAStopAreLinesEachOnce) {
  Taking agent(two_nodes());
  ASSERT_TRUE(agent.until_in_time([&] { return !agent.parts.runner.requests.empty(); }))
      << "nobody else comes";
  ASSERT_TRUE(agent.run_worker());
  EXPECT_THAT(agent.parts.lines, Contains(testing::StartsWith("drun: round 1")));
  agent.parts.lines.clear();
  agent.report_exit(1, 7);
  ASSERT_TRUE(agent.parts.until([&] { return !agent.parts.lines.empty(); }));
  agent.parts.runner.report(process::Stopped{});
  ASSERT_TRUE(agent.until_over());
  EXPECT_THAT(agent.parts.lines, ElementsAre(HasSubstr("stopping the workers: "))) << "said once";
}

TEST_F(ParticipantDriverTest, WorkersThatAreKilledAtOnceAreNoNewsYet) {
  Taking agent(two_nodes());
  ASSERT_TRUE(agent.until_in_time([&] { return !agent.parts.runner.requests.empty(); }));
  ASSERT_TRUE(agent.run_worker());
  agent.parts.lines.clear();
  agent.parts.runner.report(process::LeaseOver{});
  ASSERT_TRUE(agent.until_asked("stop SIGKILL 0"));
  EXPECT_THAT(agent.parts.lines, IsEmpty()) << "it is said when they are gone";
}

TEST_F(ParticipantDriverTest, WhatIsWaitedForIsSaid) {
  Options options = two_nodes();
  options.min_nodes = 2;
  Taking agent(options);
  ASSERT_TRUE(agent.until_in_time([&] { return !agent.parts.lines.empty(); }));
  EXPECT_THAT(agent.parts.lines.front(), HasSubstr("of 2 nodes"));
  EXPECT_TRUE(agent.driver.next_deadline());
}

}  // namespace
}  // namespace drun::launcher
