#include "ctl/listings.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/documents.hpp"
#include "rendezvous/keys.hpp"

namespace drun::ctl {
namespace {

namespace control = store::control;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(KeyListTest, HasThoseWithThePrefixSortedAndCountsTheRest) {
  const std::vector<std::string> found{"/a/z", "drun/a", "/a/y", "/b", "a/own"};
  KeyList all = list_keys(found, "/", "");
  EXPECT_THAT(all.keys, ElementsAre("a/y", "a/z", "b"));
  EXPECT_EQ(all.hidden, 2U);
  all = list_keys(found, "/", "a/");
  EXPECT_THAT(all.keys, ElementsAre("a/y", "a/z"));
  EXPECT_EQ(all.hidden, 1U) << "only those that begin so";
  EXPECT_THAT(list_keys(found, "/a/", "y").keys, ElementsAre("y"));
  EXPECT_THAT(list_keys(found, "", "drun").keys, ElementsAre("drun/a")) << "--raw";
  EXPECT_THAT(list_keys({}, "/", "").keys, IsEmpty());
}

TEST(EntryLineTest, HasWhatHappenedTheKeyAndTheValue) {
  const control::Entry set{"/k", "a\nb"};
  EXPECT_EQ(entry_line("set", set, "/", false), "set k a\\nb\n");
  EXPECT_EQ(entry_line("set", set, "/", true),
            "{\"event\":\"set\",\"key\":\"k\",\"value\":\"a\\nb\"}\n");
  const control::Entry gone{"/k", std::nullopt};
  EXPECT_EQ(entry_line("delete", gone, "/", false), "delete k\n");
  EXPECT_EQ(entry_line("delete", gone, "/", true), "{\"event\":\"delete\",\"key\":\"k\"}\n");
}

TEST(CounterLinesTest, HasALineForEachOrOneObject) {
  control::Counters counters;
  counters.counters = {{"keys", 12}, {"bytes", 34}};
  EXPECT_EQ(counter_lines(counters, false), "keys 12\nbytes 34\n");
  EXPECT_EQ(counter_lines(counters, true), "{\"keys\":12,\"bytes\":34}\n");
}

TEST(JobLinesTest, SayHowEachJobIs) {
  jobs::Documents documents;
  rendezvous::RoundDocument round;
  round.number = 3;
  round.phase = rendezvous::Phase::Running;
  documents[rendezvous::Keys("a").round] = encode(round);
  documents[rendezvous::Keys("a").member("t")] = encode(rendezvous::MemberDocument());
  documents[rendezvous::Keys("b").round] = encode(round);
  documents[rendezvous::Keys("c").round] = encode(round);
  rendezvous::Outcome outcome;
  outcome.exit_code = 7;
  documents[rendezvous::Keys("c").outcome] = encode(outcome);
  EXPECT_EQ(job_lines(documents, false),
            "a running 1 agent\nb abandoned 0 agents\nc ended 0 agents, exit code 7\n");
  EXPECT_EQ(job_lines(documents, true),
            "{\"id\":\"a\",\"state\":\"running\",\"agents\":1,\"round\":3}\n"
            "{\"id\":\"b\",\"state\":\"abandoned\",\"agents\":0,\"round\":3}\n"
            "{\"id\":\"c\",\"state\":\"ended\",\"agents\":0,\"round\":3,\"exit_code\":7}\n");
}

}  // namespace
}  // namespace drun::ctl
