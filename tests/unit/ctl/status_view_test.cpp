#include "ctl/status_view.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/documents.hpp"
#include "rendezvous/keys.hpp"

namespace drun::ctl {
namespace {

using jobs::JobState;
using rendezvous::Keys;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

jobs::Documents documents_of(const std::string& id, rendezvous::Phase phase,
                             std::optional<int> exit_code = std::nullopt) {
  jobs::Documents documents;
  rendezvous::RoundDocument round;
  round.number = 1;
  round.phase = phase;
  documents[Keys(id).round] = encode(round);
  if (!exit_code) {
    documents[Keys(id).member("t")] = encode(rendezvous::MemberDocument());
    return documents;
  }
  rendezvous::Outcome outcome;
  outcome.end = *exit_code == 0 ? rendezvous::End::Success : rendezvous::End::Failure;
  outcome.exit_code = *exit_code;
  documents[Keys(id).outcome] = encode(outcome);
  return documents;
}

CtlOptions asked(const std::string& command) {
  CtlOptions options;
  options.command = command;
  return options;
}

TEST(StatusViewTest, TheExitCodeIsTheStateOfTheJob) {
  EXPECT_EQ(code_of(JobState::Running), 0);
  EXPECT_EQ(code_of(JobState::Succeeded), 0);
  EXPECT_EQ(code_of(JobState::Failed), 1);
  EXPECT_EQ(code_of(JobState::Gathering), 3);
  EXPECT_EQ(code_of(JobState::Stopping), 3);
  EXPECT_EQ(code_of(JobState::Abandoned), 4);
}

TEST(StatusViewTest, OfSeveralJobsTheHighestCodeCounts) {
  auto documents = documents_of("a", rendezvous::Phase::Running);
  documents.merge(documents_of("b", rendezvous::Phase::Gathering));
  const View view = view_of(documents, asked("status"), {});
  EXPECT_EQ(view.code, kNotRunning);
  EXPECT_FALSE(view.empty);
  EXPECT_FALSE(view.ended);
  EXPECT_THAT(view.text, HasSubstr("a"));
}

TEST(StatusViewTest, IsOverWhenAllOfThemAre) {
  auto documents = documents_of("a", rendezvous::Phase::Closed, 0);
  EXPECT_TRUE(view_of(documents, asked("status"), {}).ended);
  EXPECT_EQ(view_of(documents, asked("status"), {}).code, kOk);
  documents.merge(documents_of("b", rendezvous::Phase::Running));
  EXPECT_FALSE(view_of(documents, asked("status"), {}).ended);
  EXPECT_TRUE(view_of(jobs::Documents(), asked("status"), {}).empty);
}

TEST(StatusViewTest, ToAskWhatWasIsNoQuestionOfHowItIs) {
  const auto documents = documents_of("a", rendezvous::Phase::Closed, 5);
  EXPECT_EQ(view_of(documents, asked("status"), {}).code, kNo);
  EXPECT_EQ(view_of(documents, asked("history"), {}).code, kOk);
}

TEST(StatusViewTest, AnAgentWithoutDocumentsSpeaksForItself) {
  status::AgentStatus agent;
  agent.job = "train";
  using enum status::Phase;
  for (const auto phase : {Searching, Gathering, Spare, Starting, Running, Stopping, Leaving}) {
    agent.phase = phase;
    const bool runs = phase == Starting || phase == Running;
    const View view = view_of(agent, asked("status"), {});
    EXPECT_EQ(view.code, runs ? kOk : kNotRunning) << name_of(phase);
    EXPECT_THAT(view.text, HasSubstr("train"));
    EXPECT_EQ(view_of(agent, asked("history"), {}).code, kOk);
  }
}

TEST(StatusViewTest, TheLoadHasWhatTheStoreCounts) {
  store::control::Counters counters;
  counters.counters = {{"bytes", 14382}, {"keys", 12}, {"other", 1}};
  EXPECT_EQ(load_line(counters, {"10.0.0.1", 29400}),
            "store 10.0.0.1:29400: 12 keys, 14382 bytes\n");
}

TEST(StatusViewTest, WhereAnAgentMeetsTheOthersIsAListOfEndpointsOrNoPlaceAtAll) {
  EXPECT_THAT(places_of("node0:29400,node1:1"),
              ElementsAre(Endpoint{"node0", 29400}, Endpoint{"node1", 1}));
  EXPECT_THAT(places_of(""), IsEmpty());
  EXPECT_THAT(places_of("etcd at node0:2379"), IsEmpty());
}

}  // namespace
}  // namespace drun::ctl
