// The documents in the store: what is written is read again, and damage is an error with a name.
#include "rendezvous/documents.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "rendezvous/failure_merge.hpp"

namespace drun::rendezvous {
namespace {

using Json = nlohmann::json;

Assignment place() {
  return {3, 1, 4, 2, 9, 1, 5, 2, "10.0.0.7", 29500, 1'700'000'000'000};
}

FailureSummary failure() {
  FailureSummary f;
  f.rank = 5;
  f.local_rank = 1;
  f.group_rank = 2;
  f.host = "node2";
  f.pid = 4'000'000'000;
  f.exit_code = 7;
  f.cause = "exit code 7";
  f.time_ms = 1'700'000'000'123;
  f.uptime_ms = -1;
  f.traceback = "Traceback:\n  line";
  f.core_file = "/tmp/core";
  f.tail = {"one", "", "three \"quoted\""};
  f.log_file = "/var/log/5";
  f.others = {{{{6, 6}, {8, 11}}, "exit code 1", "bad", 4711, {"save (train)", "write"}}};
  f.unlisted = 3;
  f.last_words = "bad";
  f.lowest_rank = 4;
  f.lowest_code = 9;
  f.restartable = false;
  f.why_no_restart = "--restart-on does not list exit code 8";
  f.requeue = false;
  f.timed_out = true;
  f.hung = true;
  f.clue = {true, std::numeric_limits<std::int64_t>::min(), 3, Milliseconds(4'000), true, true};
  f.clue.place = {"step (train.py:7)", "futex"};
  f.highest_code = 139;
  return f;
}

MemberDocument member() {
  MemberDocument d;
  d.host = "node\xC3\xA4";
  d.address = "fe80::1%eth0";
  d.worker_store_port = 65535;
  d.local_world_size = kMaxLocalWorldSize;
  d.role = "trainer";
  d.node_rank = 0;
  d.node_rank_is_wish = true;
  d.is_host = true;
  d.successor_port = 41'000;
  d.listed = 2;
  d.network = "spine1/leaf\n4";
  d.ends_ms = 1'700'000'000'999;
  d.latest = {2, 3, 1, 4, 0};
  d.agreement = {{"nnodes", "1:4"}, {"", "empty"}};
  d.left = 2;
  d.claim = place();
  d.losses = 3;
  d.prepared = 3;
  d.prepared_worker_store_port = 1;
  d.succeeded = 3;
  d.stalled = 2;
  d.failing = 2;
  d.failed = 3;
  d.failure = failure();
  d.stop = StopRequest{"received SIGTERM", 143};
  d.leave = StopRequest{"received SIGTERM on node2", 129};
  return d;
}

RoundDocument round(Phase phase) {
  RoundDocument d;
  d.epoch = 1'000'000'000'000;
  d.number = 7;
  d.phase = phase;
  d.ran = 6;
  d.restart_count = 2;
  d.losses = 3;
  d.nodes = 4;
  d.world_size = 32;
  d.master = "node0:29500";
  d.cause = Cause::Failure;
  d.root = "ticket";
  d.reason = "rank 5 on node2: exit code 7";
  d.waiting = "1 of 4 nodes (node2)";
  d.latest = {2, 5, -1, 4, 1};
  d.before = {1, 4, -1, 5};
  d.store_host = "node0";
  d.successors = {{"10.0.0.7", 41'000}, {"fe80::1", 65'535}};
  d.unsure = true;
  d.hung = true;
  d.brief = true;
  return d;
}

TEST(DocumentsTest, WhatIsWrittenIsReadAgain) {
  EXPECT_EQ(decode_member(encode(member())).value(), member());
  MemberDocument plain;
  plain.host = "h";
  EXPECT_EQ(decode_member(encode(plain)).value(), plain);
  for (const Phase phase :
       {Phase::Gathering, Phase::Preparing, Phase::Running, Phase::Stopping, Phase::Closed})
    EXPECT_EQ(decode_round(encode(round(phase))).value(), round(phase));
  for (const bool go : {false, true}) {
    for (const int last_rank : {-1, 0, 3}) {
      AssignmentDocument d{place(), go, last_rank, {}};
      EXPECT_EQ(decode_assignment(encode(d)).value(), d);
      d.host = "node2";
      EXPECT_EQ(decode_assignment(encode(d)).value(), d);
    }
  }
  const AssignmentDocument refused{{}, false, -1, "node2 says nnodes=3"};
  EXPECT_EQ(decode_assignment(encode(refused)).value(), refused);
  LeaderDocument leader{"ticket", 9};
  EXPECT_EQ(decode_leader(encode(leader)).value(), leader);
  leader.host = "node2";
  EXPECT_EQ(decode_leader(encode(leader)).value(), leader);
  const JobDocument job{{{"nnodes", "2"}}};
  EXPECT_EQ(decode_job(encode(job)).value(), job);
  for (const End end : {End::Success, End::Failure, End::Stopped, End::Timeout, End::NodesLost,
                        End::Refused, End::StoreLost}) {
    const Outcome outcome{end, 255, "text",
                          end == End::Failure ? failure() : std::optional<FailureSummary>()};
    EXPECT_EQ(decode_outcome(encode(outcome)).value(), outcome);
  }
  Outcome heard{End::Stopped, 130, "text", std::nullopt};
  heard.all_heard = true;
  EXPECT_EQ(decode_outcome(encode(heard)).value(), heard);
}

FailureSummary long_failure() {
  FailureSummary f = failure();
  f.traceback = std::string(100'000, 'x') + "the end";
  f.tail.assign(1'000, std::string(200, '\x1b'));
  f.tail.back() = "the last line";
  for (int i = 0; i < 500; ++i)
    f.others.push_back({{{2 * i, 2 * i}},
                        std::string(9'000, 'c'),
                        std::string(9'000, 'w'),
                        1,
                        {std::string(9'000, 'f'), "futex"}});
  return f;
}

TEST(DocumentsTest, AFailureHasAFewGroupsOfOtherRanksAndTheNumberOfTheRest) {
  for (const int more : {0, 1, 2}) {
    MemberDocument d = member();
    d.failure = failure();
    d.failure->unlisted = 3;
    d.failure->others.clear();
    for (int i = 0; i < static_cast<int>(kMaxFailureGroups) + more; ++i)
      d.failure->others.push_back({{{3 * i, 3 * i + 1}}, "exit code 1", ""});
    const auto read = decode_member(encode(d));
    ASSERT_TRUE(read) << read.error().what();
    EXPECT_EQ(read->failure->others.size(), kMaxFailureGroups);
    EXPECT_EQ(read->failure->unlisted, 3 + 2 * more);
  }
}

// A leader reads the documents of all members at once, and all may have failed.
TEST(DocumentsTest, AMembersFailureIsCutUntilItFits) {
  MemberDocument d = member();
  d.failed = 4;
  d.failure = long_failure();
  const auto text = encode(d);
  EXPECT_LE(text.size(), 14U * 1024);
  const auto read = decode_member(text);
  ASSERT_TRUE(read) << read.error().what();
  EXPECT_EQ(read->failure->rank, d.failure->rank);
  EXPECT_EQ(read->failure->cause, d.failure->cause);
  EXPECT_TRUE(read->failure->traceback.ends_with("the end"));
  EXPECT_GT(read->failure->unlisted, 400);
}

// The store sends it to every agent of the job.
TEST(DocumentsTest, AnOutcomeIsCutUntilItFits) {
  Outcome outcome{End::Failure, 7, "rank 3 failed", long_failure()};
  outcome.notes.assign(50, std::string(400, 'n'));
  const auto text = encode(outcome);
  EXPECT_LE(text.size(), 14U * 1024);
  const auto read = decode_outcome(text);
  ASSERT_TRUE(read) << read.error().what();
  EXPECT_EQ(read->text, outcome.text);
  EXPECT_EQ(read->failure->cause, outcome.failure->cause);
  EXPECT_TRUE(read->failure->traceback.ends_with("the end"));
  EXPECT_GT(read->failure->unlisted, 400);
}

TEST(DocumentsTest, TextsThatAreNoUtf8AreMadeSoAndLongOnesAreCut) {
  MemberDocument d = member();
  d.host = "a\xFF\xFE";
  d.failure->traceback = std::string(100'000, 'x') + "the end";
  d.failure->tail.assign(5'000, "line");
  const auto text = encode(d);
  EXPECT_LT(text.size(), 32U * 1024);
  const auto again = decode_member(text);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->host, "a\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_TRUE(again->failure->traceback.ends_with("the end"));
  EXPECT_EQ(again->failure->tail.size(), 100U);
}

// One kind of document: its text, and what its decoder makes of a text.
struct Kind {
  const char* name;
  std::string text;
  std::function<std::string(std::string_view)> error;  // "" if it was read
  std::vector<std::string> optional;                   // fields that may be missing
  std::function<std::string(std::string_view)> again;  // of a text that can be read: written again
};

template <typename Decode>
std::function<std::string(std::string_view)> error_of(Decode decode) {
  return [decode](std::string_view text) {
    const auto result = decode(text);
    return result ? std::string() : std::string(result.error().what());
  };
}

template <typename Decode>
std::function<std::string(std::string_view)> written_again(Decode decode) {
  return [decode](std::string_view text) { return encode(decode(text).value()); };
}

std::vector<Kind> kinds() {
  return {
      {"member",
       encode(member()),
       error_of(decode_member),
       {"node_rank", "node_rank_is_wish", "is_host", "claim", "losses", "prepared", "prepared_port",
        "succeeded", "failed", "stop", "leave", "latest", "successor_port", "listed", "network",
        "ends_ms", "stalled", "failing"},
       written_again(decode_member)},
      {"round",
       encode(round(Phase::Running)),
       error_of(decode_round),
       {"master", "root", "reason", "waiting", "unsure", "hung", "latest", "before", "successors",
        "store_host", "brief"},
       written_again(decode_round)},
      {"assignment",
       encode(AssignmentDocument{place(), true, 2, {}, false, "node2"}),
       error_of(decode_assignment),
       {"go", "last_rank", "ends_ms", "host"},
       written_again(decode_assignment)},
      {"leader",
       encode(LeaderDocument{"t", 1, "node2"}),
       error_of(decode_leader),
       {"host"},
       written_again(decode_leader)},
      {"job",
       encode(JobDocument{{{"a", "b"}}}),
       error_of(decode_job),
       {},
       written_again(decode_job)},
      {"beat",
       encode(BeatDocument{3, 5, 41, 1'700'000'000'000, 57, 1'700'000'000'100}),
       error_of(decode_beat),
       {"most_step", "most_time_ms"},
       written_again(decode_beat)},
      {"outcome",
       encode(Outcome{End::Failure, 7, "t", failure()}),
       error_of(decode_outcome),
       {"failure"},
       written_again(decode_outcome)},
  };
}

bool contains(const std::vector<std::string>& list, const std::string& item) {
  for (const auto& each : list) {
    if (each == item) return true;
  }
  return false;
}

TEST(DamagedDocumentsTest, EveryPrefixIsAnError) {
  for (const auto& kind : kinds()) {
    ASSERT_EQ(kind.error(kind.text), "") << kind.name;
    for (std::size_t size = 0; size < kind.text.size(); ++size) {
      const auto error = kind.error(std::string_view(kind.text).substr(0, size));
      EXPECT_TRUE(error.starts_with("malformed " + std::string(kind.name) + " document: "))
          << size << ": " << error;
    }
  }
}

TEST(DamagedDocumentsTest, AMissingFieldIsNamed) {
  for (const auto& kind : kinds()) {
    const Json whole = Json::parse(kind.text);
    for (const auto& [name, value] : whole.items()) {
      Json damaged = whole;
      damaged.erase(name);
      const auto error = kind.error(damaged.dump());
      if (contains(kind.optional, name)) {
        EXPECT_EQ(error, "") << kind.name << " without " << name;
      } else {
        EXPECT_NE(error.find(name), std::string::npos) << kind.name << " without " << name;
      }
    }
  }
}

TEST(DamagedDocumentsTest, AFieldOfTheWrongTypeIsNamed) {
  const std::vector<Json> wrong = {nullptr, Json::array({Json::array()}), 1.5,
                                   std::uint64_t(18'446'744'073'709'551'615U)};
  for (const auto& kind : kinds()) {
    const Json whole = Json::parse(kind.text);
    for (const auto& [name, value] : whole.items()) {
      for (const auto& other : wrong) {
        Json damaged = whole;
        damaged[name] = other;
        const auto error = kind.error(damaged.dump());
        EXPECT_NE(error.find(name), std::string::npos)
            << kind.name << " with " << name << "=" << other << ": " << error;
      }
    }
  }
}

TEST(DamagedDocumentsTest, NumbersOutOfRangeAreRefused) {
  struct Case {
    const char* field;
    std::int64_t value;
  };
  for (const auto& [field, value] : std::vector<Case>{{"group_rank", 4},
                                                      {"group_rank", -1},
                                                      {"first_rank", 9},
                                                      {"nodes", 0},
                                                      {"world_size", 0},
                                                      {"round", 0},
                                                      {"port", 65536},
                                                      {"restart_count", -1},
                                                      {"first_role_rank", 5}}) {
    Json damaged = Json::parse(encode(AssignmentDocument{place(), true, 2, {}}));
    damaged[field] = value;
    const auto error = error_of(decode_assignment)(damaged.dump());
    EXPECT_NE(error.find(field), std::string::npos) << field << "=" << value << ": " << error;
  }
  for (const auto& [field, value] : std::vector<Case>{{"local_world_size", kMaxLocalWorldSize + 1},
                                                      {"local_world_size", 0},
                                                      {"worker_port", 65536},
                                                      {"left", -1},
                                                      {"node_rank", -1}}) {
    Json damaged = Json::parse(encode(member()));
    damaged[field] = value;
    const auto error = error_of(decode_member)(damaged.dump());
    EXPECT_NE(error.find(field), std::string::npos) << field << "=" << value << ": " << error;
  }
}

TEST(DamagedDocumentsTest, APlaceInTheNetworkHasALimit) {
  MemberDocument d = member();
  d.network = std::string(kMaxNetwork, 's');
  EXPECT_EQ(decode_member(encode(d)).value().network, d.network);
  d.network += 's';
  const auto error = error_of(decode_member)(encode(d));
  EXPECT_NE(error.find("network is too long"), std::string::npos) << error;
}

TEST(DamagedDocumentsTest, TheWordOfTheEndHasALimit) {
  MemberDocument d = member();
  d.end = std::string(kMaxEnd, 'e');
  EXPECT_EQ(decode_member(encode(d)).value().end, d.end);
  d.end += 'e';
  const auto error = error_of(decode_member)(encode(d));
  EXPECT_NE(error.find("end is too long"), std::string::npos) << error;
}

TEST(DamagedDocumentsTest, FlippedBytesAreANamedErrorOrADocumentThatCanBeKept) {
  std::uint64_t state = 42;
  for (const auto& kind : kinds()) {
    int read = 0;
    for (int i = 0; i < 3'000; ++i) {
      std::string text = kind.text;
      for (int flips = 0; flips <= i % 4; ++flips) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        text[(state >> 33) % text.size()] = static_cast<char>(state >> 25);
      }
      const auto error = kind.error(text);
      if (!error.empty()) {
        ASSERT_TRUE(error.starts_with("malformed " + std::string(kind.name) + " document: "))
            << error;
        continue;
      }
      ++read;
      const std::string kept = kind.again(text);
      ASSERT_EQ(kind.again(kept), kept) << text;
    }
    EXPECT_GE(read, 10) << kind.name;
  }
}

TEST(DamagedDocumentsTest, AnotherVersionKeepsTheNameForTheRefusal) {
  const auto other = decode_member(R"({"v":2,"host":"node9","left":"new meaning"})");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->version, 2);
  EXPECT_EQ(other->host, "node9");
  EXPECT_EQ(decode_round(R"({"v":7})").value().version, 7);
}

}  // namespace
}  // namespace drun::rendezvous
