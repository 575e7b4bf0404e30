// Votes, and a server that succeeds another, as clients see them.
#include "store/server/succession.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_peer.hpp"

namespace drun::store::control {
namespace {

using test::PeerWorld;
using test::TestPeer;
using testing::IsEmpty;

constexpr std::string_view kJob = "drun/a/";

Place place(std::uint32_t rank, std::uint32_t nodes = 3, std::uint64_t round = 1) {
  return {{1, round}, rank, nodes, 0};
}
Vote settled(std::uint32_t rank, std::uint32_t nodes = 3) {
  return {place(rank, nodes), {}};
}

// An agent's connection. Its messages point into bytes that it keeps.
class Agent : public TestPeer {
 public:
  explicit Agent(PeerWorld& world) : TestPeer(world) {
    std::string bytes;
    encode_opening(bytes);
    send(bytes);
    (void)take();
  }
  std::vector<Reply> ask(const Request& request) {
    std::string bytes;
    encode(bytes, 5, request);
    send(bytes);
    return answers();
  }
  std::vector<Reply> answers() {
    std::vector<Reply> found;
    received_.push_back(std::make_unique<std::string>(take()));
    for (std::string_view rest = *received_.back(); !rest.empty();) {
      const FrameResult frame = control::next_frame(rest, 0xFFFFFFFF);
      EXPECT_EQ(frame.status, FrameStatus::Complete);
      if (frame.status != FrameStatus::Complete) break;
      rest.remove_prefix(frame.size);
      EXPECT_EQ(frame.frame.request, 5U);
      EXPECT_EQ(decode_reply(frame.frame, found.emplace_back()), DecodeStatus::Ok);
    }
    return found;
  }
  template <typename T>
  T only(std::vector<Reply> answers) {
    if (answers.size() == 1 && std::holds_alternative<T>(answers[0]))
      return std::get<T>(answers[0]);
    ADD_FAILURE() << answers.size() << " answers";
    return {};
  }
  template <typename T>
  T only(const Request& request) {
    return only<T>(ask(request));
  }
  Pulsed pulse(const Vote& vote = {}, std::string_view job = kJob) {
    return only<Pulsed>(Pulse{job, vote});
  }
  // With what follows an answer.
  Pulsed pulse_and_confirm(const Vote& vote) {
    const Pulsed pulsed = pulse(vote);
    EXPECT_THAT(ask(Confirm{pulsed.stamp}), IsEmpty());
    return pulsed;
  }
  std::vector<Reply> come(const Vote& vote, std::uint64_t generation = 1,
                          std::string_view job = kJob, std::uint32_t silent_ms = 0) {
    return ask(OpenSuccessor{1000, 200, generation, job, vote, silent_ms});
  }

 private:
  std::vector<std::unique_ptr<std::string>> received_;
};

// ---- a store that serves ----

class VotesTest : public testing::Test {
 protected:
  void pass(int ms) { world.now += Milliseconds(ms); }
  std::unique_ptr<Agent> agent() {
    auto agent = std::make_unique<Agent>(world);
    (void)agent->only<Session>(OpenSession{1000, 200});
    return agent;
  }
  PeerWorld world;
};

TEST_F(VotesTest, ANewMajorityIsKnownFromItsConfirmationsOn) {
  world.now += std::chrono::hours(1);
  const auto a = agent();
  const auto b = agent();
  EXPECT_EQ(a->pulse().age_ms, 0U) << "nobody has voted";
  const Pulsed first = a->pulse_and_confirm({{}, {place(0)}});
  EXPECT_EQ(first.generation, 1U);
  EXPECT_EQ(first.settled, place(kNoRank)) << "with this very vote";
  pass(500);
  EXPECT_EQ(a->pulse_and_confirm(settled(0)).age_ms, 500U) << "one of three";
  EXPECT_EQ(b->pulse({{}, {place(1)}}).age_ms, 500U) << "and it has confirmed nothing";
  pass(300);
  EXPECT_EQ(b->pulse_and_confirm(settled(1)).age_ms, 800U);
  pass(100);
  EXPECT_EQ(a->pulse(settled(0)).age_ms, 400U) << "as old as the last that a has confirmed";
}

TEST_F(VotesTest, WhoHasNoPlaceHearsOfTheAgeToo) {
  const auto a = agent();
  const auto spare = agent();
  (void)a->pulse({{}, {place(0)}});
  pass(700);
  EXPECT_EQ(spare->pulse().age_ms, 700U);
  EXPECT_EQ(spare->pulse().settled, place(kNoRank));
  EXPECT_EQ(spare->pulse({}, "drun/b/").age_ms, 0U) << "of another job";
  EXPECT_EQ(spare->pulse({}, "drun/b/").settled, Place{});
}

TEST_F(VotesTest, AMinorityThatComesToAnEmptyStoreHasNone) {
  const auto a = agent();
  EXPECT_EQ(a->pulse_and_confirm(settled(1)).age_ms, Pulsed::kNever);
}

TEST_F(VotesTest, WhoSaysGoodbyeIsCountedOut) {
  const auto a = agent();
  const auto b = agent();
  const auto c = agent();
  std::uint32_t rank = 2;
  for (Agent* each : {a.get(), b.get(), c.get()})
    (void)each->pulse_and_confirm({{}, {place(rank--)}});
  pass(1000);
  (void)c->only<Done>(Goodbye{});
  (void)a->pulse_and_confirm(settled(2));
  pass(200);
  EXPECT_EQ(a->pulse(settled(2)).age_ms, 1200U) << "one of two";
  (void)b->only<Done>(Goodbye{});
  pass(200);
  EXPECT_EQ(a->pulse_and_confirm(settled(2)).age_ms, 400U) << "the only one";
}

TEST_F(VotesTest, AFarewellOfAnotherConnectionIsAGoodbye) {
  const auto a = agent();
  auto host = std::make_unique<Agent>(world);
  const auto session = host->only<Session>(OpenSession{1000, 200});
  (void)host->pulse_and_confirm({{}, {place(0, 2)}});
  (void)a->pulse_and_confirm({{}, {place(1, 2)}});
  host->leave();
  pass(100);
  (void)a->pulse_and_confirm(settled(1, 2));
  Agent helper(world);
  (void)helper.only<Done>(ResumeSession{session.session, session.token});
  (void)helper.only<Done>(Goodbye{});
  pass(100);
  EXPECT_EQ(a->pulse(settled(1, 2)).age_ms, 100U);
}

TEST_F(VotesTest, ASessionThatIsResumedGoesOnToVote) {
  auto a = std::make_unique<Agent>(world);
  const auto session = a->only<Session>(OpenSession{1000, 200});
  (void)a->pulse_and_confirm({{}, {place(0, 1)}});
  a->leave();
  pass(100);
  Agent again(world);
  (void)again.only<Done>(ResumeSession{session.session, session.token});
  (void)again.pulse_and_confirm(settled(0, 1));
  pass(100);
  EXPECT_EQ(again.pulse(settled(0, 1)).age_ms, 100U);
}

TEST_F(VotesTest, ASessionThatHasEndedVotesNoMore) {
  const auto a = agent();
  auto b = agent();
  (void)a->pulse_and_confirm({{}, {place(0, 2, 1)}});
  (void)b->pulse_and_confirm({{}, {place(1, 2, 1)}});
  pass(999);
  (void)a->pulse_and_confirm(settled(0, 2));
  pass(1);
  world.sessions.expire(world.now);
  EXPECT_THAT(b->take(), testing::Not(IsEmpty())) << "it is told";
  (void)a->only<Done>(Goodbye{});
  const auto c = agent();
  EXPECT_EQ(c->pulse().age_ms, 1000U) << "b may be elsewhere";
}

TEST_F(VotesTest, AJobWhoseVotersHaveAllGoneIsForgotten) {
  const auto a = agent();
  (void)a->pulse_and_confirm({{}, {place(0, 1)}});
  (void)a->only<Done>(Goodbye{});
  pass(5000);
  const auto b = agent();
  EXPECT_EQ(b->pulse().age_ms, 0U);
  EXPECT_EQ(b->pulse().settled, Place{});
}

// Those who have left may be with another store, or have ended for good.
TEST_F(VotesTest, AJobWhoseNodesHaveAllLeftIsForgottenInTheEnd) {
  auto a = agent();
  const auto b = agent();
  (void)a->pulse_and_confirm({{}, {place(0)}});
  pass(100);
  a->leave();
  pass(1'200);
  world.sessions.expire(world.now);
  const auto late = agent();
  EXPECT_EQ(world.succession.next_deadline(), world.now + StoreSuccession::kAbandoned);
  pass(1'000);
  EXPECT_EQ(late->pulse().age_ms, 2'300U);
  (void)b->take();
  const auto again = agent();
  EXPECT_EQ(again->pulse(settled(0)).age_ms, 2'300U) << "it has come back";
  EXPECT_EQ(world.succession.next_deadline(), std::nullopt);
  pass(1'100);
  world.sessions.expire(world.now);
  const auto newest = agent();
  const Time due = *world.succession.next_deadline();
  EXPECT_EQ(due, world.now + StoreSuccession::kAbandoned);
  world.now = due - Milliseconds(1);
  world.succession.on_time(world.now);
  EXPECT_GT(newest->pulse().age_ms, 30'000U);
  pass(1);
  world.succession.on_time(world.now);
  EXPECT_EQ(newest->pulse().age_ms, 0U) << "the job may begin anew";
  EXPECT_EQ(newest->pulse().settled, Place{});
  EXPECT_EQ(world.succession.next_deadline(), std::nullopt);
}

// drunctl delete-job. A store that had lost its keys before shows no such thing.
TEST_F(VotesTest, AJobThatIsDeletedIsForgottenAtOnce) {
  for (const bool was_kept : {false, true}) {
    SCOPED_TRACE(was_kept);
    auto a = agent();
    const auto late = agent();
    if (was_kept) {
      EXPECT_TRUE(world.job.put("drun/a/round", "x"));
    }
    (void)a->pulse_and_confirm({{}, {place(0)}});
    pass(100);
    (void)late->pulse();
    a->leave();
    pass(1'200);
    world.sessions.expire(world.now);
    world.succession.on_time(world.now);
    const auto newest = agent();
    EXPECT_GT(newest->pulse().age_ms, 0U) << "it may come again";
    world.job.erase("drun/a/round");
    world.job.publish();
    world.succession.on_time(world.now);
    world.now = *world.succession.next_deadline();
    world.succession.on_time(world.now);
    EXPECT_EQ(newest->pulse().age_ms == 0, was_kept);
  }
}

// Nobody founds where the job has a store.
TEST_F(VotesTest, AFoundersPlaceAmongTheLaterOnesIsNone) {
  auto a = agent();
  const auto b = agent();
  (void)a->pulse_and_confirm({{}, {place(0)}});
  a->leave();
  Pulsed pulsed;
  for (int i = 0; i < 63; ++i) {
    pulsed = b->pulse({{}, {{{0, 77}, 1, 3, kNoRank}}});
    pass(500);
    world.sessions.expire(world.now);
    world.succession.on_time(world.now);
  }
  EXPECT_THAT(b->ask(Confirm{pulsed.stamp}), IsEmpty());
  const auto c = agent();
  EXPECT_EQ(c->pulse().age_ms, 0U) << "the job is forgotten";
}

// A drun-store that was cut off, while the job is at its successor and loses that one, too.
TEST_F(VotesTest, AJobThatLooksForItsStoreIsNotForgotten) {
  auto a = agent();
  (void)a->pulse_and_confirm({{}, {place(0)}});
  a->leave();
  pass(1'200);
  world.sessions.expire(world.now);
  Agent seeker(world);
  for (int i = 0; i < 40; ++i) {
    pass(1'000);
    (void)seeker.only<Moved>(Find{2, "10.0.0.9", 0, kJob, 0});
    world.succession.on_time(world.now);
    Agent late(world);
    (void)late.only<Session>(OpenSession{1000, 200});
    EXPECT_GT(late.pulse().age_ms, 0U);
  }
  world.now += SoughtJobs::kSought;
  world.succession.on_time(world.now);
  Agent late(world);
  (void)late.only<Session>(OpenSession{1000, 200});
  EXPECT_EQ(late.pulse().age_ms, 0U);
}

TEST_F(VotesTest, AVoteNeedsASession) {
  Agent a(world);
  EXPECT_EQ(a.only<Error>(Pulse{kJob, settled(0)}).code, ErrorCode::NoSession);
  EXPECT_THAT(a.ask(Confirm{1}), IsEmpty());
}

TEST_F(VotesTest, TheProofOfADeathNeedsNone) {
  const auto a = agent();
  (void)a->pulse_and_confirm({{}, {place(1, 2)}});
  pass(100);
  EXPECT_EQ(a->pulse_and_confirm(settled(1, 2)).age_ms, 100U);
  Agent helper(world);
  (void)helper.only<Done>(Gone{2, kJob, settled(0, 2)});
  pass(100);
  EXPECT_EQ(a->pulse_and_confirm(settled(1, 2)).age_ms, 200U) << "it was with a later store";
  (void)helper.only<Done>(Gone{1, kJob, settled(0, 2)});
  pass(100);
  EXPECT_EQ(a->pulse(settled(1, 2)).age_ms, 100U);
  EXPECT_NE(world.job.find("drun/a/gone/1.1.0"), nullptr);
  (void)helper.only<Done>(Gone{1, kJob, {{}, {place(1, 2), place(4, 5, 2), place(kNoRank, 5, 3)}}});
  EXPECT_NE(world.job.find("drun/a/gone/1.1.1"), nullptr);
  EXPECT_NE(world.job.find("drun/a/gone/1.2.4"), nullptr);
  EXPECT_EQ(world.job.size(), 3U);
}

TEST_F(VotesTest, OfAJobThatNobodyVotesInNoDeathIsNoted) {
  Agent helper(world);
  (void)helper.only<Done>(Gone{1, kJob, settled(0, 2)});
  EXPECT_EQ(world.job.size(), 0U);
}

TEST_F(VotesTest, WhoComesFromALostStoreIsWelcomedAtOnce) {
  Agent a(world);
  const auto answers = a.come(settled(0, 1));
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(std::get<Pulsed>(answers[0]).generation, 1U);
  EXPECT_TRUE(std::holds_alternative<Session>(answers[1]));
  (void)a.ask(Confirm{std::get<Pulsed>(answers[0]).stamp});
  pass(50);
  EXPECT_EQ(a.pulse(settled(0, 1)).age_ms, 50U);
  EXPECT_EQ(a.only<Error>(OpenSession{}).code, ErrorCode::HasSession);
}

TEST_F(VotesTest, WhoHasBeenAtALaterStoreIsRefused) {
  Agent a(world);
  EXPECT_EQ(a.only<Error>(OpenSuccessor{1000, 200, 2, kJob, settled(0)}).code,
            ErrorCode::WrongStore);
  (void)a.only<Session>(OpenSession{1000, 200});
}

TEST_F(VotesTest, ManyJobsAreTooMany) {
  const auto a = agent();
  for (std::size_t job = 0; job < StoreSuccession::kMostJobs; ++job) {
    const auto b = agent();
    EXPECT_EQ(b->pulse({{}, {place(0, 1)}}, "j" + std::to_string(job)).age_ms, 0U);
  }
  EXPECT_EQ(a->pulse({{}, {place(0, 1)}}, "more").age_ms, Pulsed::kNever);
}

// ---- a store that is to succeed another ----

class SuccessorTest : public testing::Test {
 protected:
  void pass(int ms) { world.now += Milliseconds(ms); }
  PeerWorld world{{}, {.is_successor = true}};
};

TEST_F(SuccessorTest, WelcomesWhenAMajorityHasComeAndSaidSo) {
  Agent a(world);
  Agent b(world);
  EXPECT_THAT(a.come(settled(1)), IsEmpty()) << "one of three";
  EXPECT_EQ(a.pushes(), 0);
  const auto call = b.only<Pulsed>(b.come(settled(2)));
  EXPECT_EQ(call.generation, 2U);
  EXPECT_EQ(call.age_ms, Pulsed::kNever);
  EXPECT_EQ(call.settled, place(kNoRank));
  EXPECT_EQ(a.pushes(), 1);
  EXPECT_EQ(a.only<Pulsed>(a.answers()).stamp, call.stamp);
  EXPECT_THAT(a.ask(Confirm{call.stamp}), IsEmpty()) << "b might have gone";
  pass(30);
  (void)b.only<Session>(b.ask(Confirm{call.stamp}));
  (void)a.only<Session>(a.answers());
  pass(70);
  EXPECT_EQ(a.pulse(settled(1)).age_ms, 100U);
  EXPECT_EQ(b.pulse(settled(2)).generation, 2U);

  Agent late(world);
  const auto answers = late.come(settled(0));
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(std::get<Pulsed>(answers[0]).generation, 2U);
}

// Whoever heard of another store last decides: that one may have had the majority until then.
TEST_F(SuccessorTest, SaysForHowLongNoOtherStoreCanHaveHadTheMajority) {
  const auto silence = [](const std::optional<Gone>& proof, std::uint32_t quorum = 0,
                          Milliseconds waited = {}) {
    PeerWorld other{{}, {.is_successor = true, .quorum = quorum}};
    Agent a(other);
    Agent b(other);
    (void)a.come(settled(1), 1, kJob, 6000);
    other.now += Milliseconds(100);
    Agent spare(other);
    (void)spare.come({}, 1, kJob, 0);
    const auto call = b.come(settled(2), 1, kJob, 5000);
    other.now += Milliseconds(200);
    if (Agent helper(other); proof) {
      helper.set_idle(waited);
      (void)helper.ask(*proof);
    }
    other.now += Milliseconds(30);
    (void)a.ask(Confirm{std::get<Pulsed>(call.back()).stamp});
    (void)b.ask(Confirm{std::get<Pulsed>(call.back()).stamp});
    const auto* said = other.job.find("drun/a/silence");
    return said == nullptr ? "" : std::string(*said);
  };
  EXPECT_EQ(silence({}), "5230");
  EXPECT_EQ(silence(Gone{1, kJob, settled(0)}), "30") << "until its death it may have confirmed";
  EXPECT_EQ(silence(Gone{1, kJob, settled(0)}, 0, Milliseconds(4'000)), "4030")
      << "the word of it may have waited until somebody served here";
  EXPECT_EQ(silence(Gone{1, kJob, settled(0)}, 0, Milliseconds(9'000)), "5230");
  EXPECT_EQ(silence({}, 2), "") << "with a quorum another may have one, too";
}

TEST_F(SuccessorTest, WhoHasNoVoteWaitsWithTheOthers) {
  Agent spare(world);
  Agent old(world);
  Agent a(world);
  EXPECT_THAT(spare.come({}), IsEmpty());
  EXPECT_THAT(old.ask(OpenSession{1000, 200}), IsEmpty());
  EXPECT_EQ(old.only<Error>(OpenSession{1000, 200}).code, ErrorCode::HasSession);
  const auto call = a.only<Pulsed>(a.come(settled(0, 1)));
  EXPECT_THAT(spare.answers(), IsEmpty());
  (void)a.only<Session>(a.ask(Confirm{call.stamp}));
  const auto welcome = spare.answers();
  ASSERT_EQ(welcome.size(), 2U);
  EXPECT_EQ(std::get<Pulsed>(welcome[0]).generation, 2U) << "it has to know that as well";
  EXPECT_TRUE(std::holds_alternative<Session>(welcome[1]));
  (void)old.only<Session>(old.answers());
  (void)old.only<Committed>(Transaction{{}, {{"k", "v", true}}});
}

TEST_F(SuccessorTest, WhoLeavesIsNotCounted) {
  auto a = std::make_unique<Agent>(world);
  EXPECT_THAT(a->come(settled(1)), IsEmpty());
  a->leave();
  Agent b(world);
  EXPECT_THAT(b.come(settled(2)), IsEmpty());
  Agent again(world);
  (void)again.only<Pulsed>(again.come(settled(1)));
  (void)b.only<Pulsed>(b.answers());
}

TEST_F(SuccessorTest, WhoLeavesAfterTheCallDoesNotBeginIt) {
  auto a = std::make_unique<Agent>(world);
  Agent b(world);
  (void)a->come(settled(1));
  const auto call = b.only<Pulsed>(b.come(settled(2)));
  EXPECT_THAT(a->ask(Confirm{call.stamp}), testing::SizeIs(1)) << "the call";
  a->leave();
  EXPECT_THAT(b.ask(Confirm{call.stamp}), IsEmpty());
  Agent c(world);
  const auto late = c.only<Pulsed>(c.come(settled(0)));
  (void)c.only<Session>(c.ask(Confirm{late.stamp}));
  (void)b.only<Session>(b.answers());
}

TEST_F(SuccessorTest, ItsGenerationIsHigherThanAnyThatItsVotersHaveBeenAt) {
  Agent a(world);
  Agent b(world);
  (void)a.come(settled(1), 4);
  const auto first = b.only<Pulsed>(b.come(settled(2), 2));
  EXPECT_EQ(first.generation, 5U);
  (void)a.only<Pulsed>(a.answers());
  EXPECT_THAT(a.ask(Confirm{first.stamp}), IsEmpty());
  Agent c(world);
  const auto second = c.only<Pulsed>(c.come(settled(0), 7));
  EXPECT_EQ(second.generation, 8U);
  EXPECT_EQ(a.only<Pulsed>(a.answers()).generation, 8U) << "called again";
  (void)b.answers();
  EXPECT_THAT(b.ask(Confirm{first.stamp}), IsEmpty()) << "to the old call";
  EXPECT_THAT(b.ask(Confirm{second.stamp}), IsEmpty()) << "a has to know of the new one";
  (void)a.only<Session>(a.ask(Confirm{second.stamp}));
}

TEST_F(SuccessorTest, TheDeadAreCountedOut) {
  Agent a(world);
  EXPECT_THAT(a.come(settled(1, 2)), IsEmpty());
  Agent helper(world);
  (void)helper.only<Done>(Gone{1, kJob, settled(0, 2)});
  const auto call = a.only<Pulsed>(a.answers());
  (void)a.only<Session>(a.ask(Confirm{call.stamp}));
  EXPECT_NE(world.job.find("drun/a/gone/1.1.0"), nullptr);
  (void)helper.only<Done>(Gone{3, kJob, settled(1, 2)});
  EXPECT_EQ(world.job.find("drun/a/gone/1.1.1"), nullptr) << "it was with a later store";
}

TEST_F(SuccessorTest, TheDeathMayBeKnownBeforeAnybodyComes) {
  Agent helper(world);
  (void)helper.only<Done>(Gone{6, kJob, settled(0, 2)});
  Agent a(world);
  EXPECT_EQ(a.only<Pulsed>(a.come(settled(1, 2))).generation, 7U);
}

TEST_F(SuccessorTest, AnotherJobIsRefused) {
  Agent a(world);
  EXPECT_THAT(a.come(settled(1)), IsEmpty());
  Agent b(world);
  EXPECT_EQ(b.only<Error>(b.come(settled(1), 1, "drun/b/")).code, ErrorCode::WrongStore);
}

TEST_F(SuccessorTest, GoodbyesAreNotedForTheLeader) {
  Agent a(world);
  const auto call = a.only<Pulsed>(a.come(settled(0, 2)));
  (void)a.only<Session>(a.ask(Confirm{call.stamp}));
  (void)a.only<Done>(Goodbye{});
  EXPECT_NE(world.job.find("drun/a/gone/1.1.0"), nullptr);
}

// ---- where a job with several endpoints begins ----

Place founder(std::uint32_t rank, std::uint64_t list = 77) {
  return {{0, list}, rank, 3, kNoRank};
}
Vote founding(std::uint32_t rank, std::uint64_t list = 77) {
  return {founder(rank, list), {}};
}

class FoundersTest : public testing::Test {
 protected:
  static StoreSuccession::Options options(bool is_founding) {
    StoreSuccession::Options result;
    result.is_successor = true;
    result.job = kJob;
    result.founders = founder(kNoRank);
    result.is_founding = is_founding;
    return result;
  }
  Find question(std::uint64_t generation = 0, std::string_view host = "10.0.0.9") const {
    return {generation, host, generation == 0 ? std::uint16_t{0} : std::uint16_t{7}, kJob, 77};
  }
  PeerWorld world{{}, options(true)};
};

TEST_F(FoundersTest, TheFirstStoreIsOfGenerationOne) {
  Agent a(world);
  Agent b(world);
  Agent late(world);
  EXPECT_EQ(late.only<Moved>(question()).generation, 0U);
  EXPECT_THAT(late.come({}, 0), IsEmpty()) << "it is none of them";
  EXPECT_THAT(a.come(founding(2), 0), IsEmpty());
  const auto call = b.only<Pulsed>(b.come(founding(1), 0));
  EXPECT_EQ(call.generation, 1U);
  (void)a.answers();
  (void)a.ask(Confirm{call.stamp});
  (void)b.only<Session>(b.ask(Confirm{call.stamp}));
  const auto answers = late.answers();
  ASSERT_EQ(answers.size(), 2U) << "it hears of the generation as well";
  EXPECT_EQ(std::get<Pulsed>(answers[0]).generation, 1U);
  EXPECT_TRUE(std::holds_alternative<Session>(answers[1]));
  Agent asker(world);
  const auto found = asker.only<Moved>(question());
  EXPECT_EQ(found.generation, 1U);
  EXPECT_EQ(found.host, "") << "here";
}

TEST_F(FoundersTest, ThoseOfAnotherListDoNotCount) {
  Agent a(world);
  Agent b(world);
  Agent c(world);
  EXPECT_THAT(a.come(founding(0), 0), IsEmpty());
  EXPECT_THAT(b.come(founding(1, 99), 0), IsEmpty());
  EXPECT_THAT(c.come(founding(2, 5), 0), IsEmpty());
  Find other = question();
  other.founders = 99;
  Agent asker(world);
  EXPECT_EQ(asker.only<Error>(other).text, "it was given another --rdzv-endpoint");
  other.job = "drun/b/";
  EXPECT_EQ(asker.only<Error>(other).text, "it serves another job");
}

TEST_F(FoundersTest, WhereItSucceedsAnotherStoreTheyMayHaveForgottenTheJob) {
  PeerWorld successor{{}, options(false)};
  Agent a(successor);
  Agent b(successor);
  EXPECT_THAT(a.come(founding(0), 0), IsEmpty());
  EXPECT_THAT(b.come(founding(1), 0), IsEmpty());
}

TEST_F(FoundersTest, WhoWaitsIsToldWhereTheStoreIs) {
  Agent a(world);
  Agent host(world);
  EXPECT_THAT(a.come(founding(0), 0), IsEmpty());
  EXPECT_EQ(host.only<Moved>(question(3)).generation, 3U);
  const auto moved = a.only<Moved>(a.answers());
  EXPECT_EQ(moved.generation, 3U);
  EXPECT_EQ(moved.host, "10.0.0.9");
  EXPECT_EQ(moved.port, 7);
  EXPECT_EQ(host.only<Moved>(question(4, "10.0.0.9")).generation, 4U);
  EXPECT_THAT(a.answers(), IsEmpty()) << "it waits no longer";
  EXPECT_EQ(a.only<Moved>(a.come(founding(0), 0)).generation, 4U);
  Agent b(world);
  EXPECT_EQ(b.only<Moved>(b.come(founding(1), 0)).generation, 4U) << "and none begins here";
  EXPECT_EQ(host.only<Moved>(question(2, "10.0.0.8")).host, "10.0.0.9") << "an older one";
  world.now += JobPlaces::kHearsay;
  EXPECT_EQ(b.only<Moved>(question()).generation, 0U) << "nobody has said so for long";
}

TEST_F(FoundersTest, NoneBeginsWhileTheJobLooksForAStore) {
  Agent a(world), b(world), seeker(world);
  Find sought = question(1, "10.0.0.9");
  sought.port = 0;
  EXPECT_EQ(seeker.only<Moved>(sought).generation, 1U);
  EXPECT_EQ(seeker.only<Moved>(question()).port, 1) << "and so others are told";
  EXPECT_THAT(a.come(founding(0), 0), IsEmpty());
  EXPECT_THAT(b.come(founding(1), 0), IsEmpty());
  EXPECT_THAT(a.answers(), IsEmpty());
  ASSERT_EQ(world.succession.next_deadline(), world.now + SoughtJobs::kSought);
  world.now += SoughtJobs::kSought;
  world.succession.on_time(world.now);
  EXPECT_EQ(a.only<Pulsed>(a.answers()).generation, 1U) << "nobody has looked for long";
  EXPECT_EQ(world.succession.next_deadline(), std::nullopt);
}

// A new agent is at an endpoint where the job's nodes look for their store.
TEST_F(FoundersTest, ButThoseWhoLookForItMayMeetThere) {
  Agent founders[] = {Agent(world), Agent(world)};
  Agent seeker(world);
  Find sought = question(1, "10.0.0.9");
  sought.port = 0;
  (void)seeker.only<Moved>(sought);
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    EXPECT_THAT(founders[rank].come(founding(rank), 0), IsEmpty());
  Agent a(world), b(world);
  EXPECT_THAT(a.come(settled(1)), IsEmpty());
  EXPECT_THAT(founders[0].answers(), IsEmpty()) << "their own majority means nothing";
  const auto call = b.only<Pulsed>(b.come(settled(2)));
  EXPECT_EQ(call.generation, 2U);
  EXPECT_EQ(call.settled.electorate, place(0).electorate);
}

// The last node of a round comes to a founder, finds no others of it, and ends.
TEST_F(FoundersTest, BeginAnewWhenTheLastNodeOfARoundHasLeft) {
  Agent a(world), b(world), last(world), other(world);
  EXPECT_THAT(last.come(settled(1)), IsEmpty());
  EXPECT_EQ(other.come(settled(2)).size(), 1U) << "two of three: both are called";
  (void)last.answers();
  other.leave();
  EXPECT_THAT(a.come(founding(0), 0), testing::Not(IsEmpty())) << "the call goes to all";
  EXPECT_EQ(world.succession.next_deadline(), std::nullopt);
  last.leave();
  EXPECT_EQ(world.succession.next_deadline(), world.now + SoughtJobs::kSought);
  EXPECT_THAT(b.come(founding(1), 0), testing::Not(IsEmpty()));
  world.now += SoughtJobs::kSought;
  world.succession.on_time(world.now);
  const auto call = a.only<Pulsed>(a.answers());
  EXPECT_EQ(call.generation, 3U) << "higher than that of the call before";
  EXPECT_EQ(call.settled, founder(kNoRank));
  EXPECT_EQ(b.only<Pulsed>(b.answers()).stamp, call.stamp);
  (void)a.ask(Confirm{call.stamp});
  EXPECT_EQ(b.ask(Confirm{call.stamp}).size(), 1U) << "it serves";
  EXPECT_EQ(world.succession.next_deadline(), std::nullopt);
}

TEST_F(SuccessorTest, WhoSucceedsAStoreSaysThatTheJobIsThere) {
  Agent asker(world);
  const auto moved = asker.only<Moved>(Find{0, "", 0, kJob, 0});
  EXPECT_EQ(moved.generation, 1U);
  EXPECT_EQ(moved.port, 1) << "it looks for a store";
}

TEST_F(VotesTest, WhoAsksOfNoJobIsToldWhereAnyStoreIs) {
  Agent teller(world), asker(world);
  EXPECT_EQ(asker.only<Moved>(Find{}).generation, 0U);
  (void)teller.only<Moved>(Find{2, "10.0.0.9", 7, kJob, 0});
  EXPECT_EQ(asker.only<Moved>(Find{}).host, "10.0.0.9");
  const auto holder = agent();
  (void)holder->only<Committed>(Transaction{{}, {{"k", "v", false}}});
  EXPECT_EQ(asker.only<Moved>(Find{}).generation, 0U) << "this one holds something itself";
}

TEST_F(FoundersTest, OnlyANumericAddressIsAPlace) {
  Agent host(world);
  EXPECT_EQ(host.only<Moved>(question(3, "example.org")).generation, 0U);
  EXPECT_EQ(host.only<Moved>(question(3, "")).generation, 0U);
  Find no_port = question(3);
  no_port.port = 0;
  EXPECT_EQ(host.only<Moved>(no_port).host, "") << "that says that there is none";
  EXPECT_EQ(host.only<Moved>(question(3, "::1")).generation, 3U);
}

TEST_F(FoundersTest, ASignpostBeginsNothingAndKeepsTheDeathsThatItHearsOf) {
  Agent a(world);
  EXPECT_THAT(a.come(founding(0), 0), IsEmpty());
  EXPECT_TRUE(world.succession.point_to(1, {"10.0.0.9", 7}, world.now));
  EXPECT_EQ(a.only<Moved>(a.answers()).generation, 1U);
  Agent helper(world);
  (void)helper.only<Done>(Gone{1, kJob, settled(0, 2)});
  world.now += std::chrono::hours(1);
  EXPECT_EQ(helper.only<Moved>(question()).generation, 1U) << "it is in touch with the store";
  EXPECT_TRUE(world.succession.point_to(0, {}, world.now));
  Agent b(world);
  EXPECT_EQ(b.only<Pulsed>(b.come(settled(1, 2))).generation, 2U) << "the only one that is left";
  EXPECT_THAT(a.answers(), IsEmpty()) << "the founder's vote counts no more";
}

TEST_F(FoundersTest, WhoHasGoneIsGoneForTheNextServerAtThatPlaceToo) {
  Agent helper(world);
  for (int i = 0; i < 2; ++i)
    (void)helper.only<Done>(Gone{1, kJob, settled(0)});
  Agent a(world);
  const auto call = a.only<Pulsed>(a.come(settled(1)));
  (void)a.only<Session>(a.ask(Confirm{call.stamp}));
  (void)a.only<Done>(Goodbye{});
  ASSERT_EQ(world.succession.deaths().all.size(), 2U) << "said twice, it counts once";
  PeerWorld next{{}, options(false)};
  next.now = world.now + std::chrono::seconds(1);
  next.succession.recall(world.succession.deaths(), next.now);
  EXPECT_EQ(next.succession.deaths().all.front().came, world.now);
  Agent left(next);
  EXPECT_EQ(left.only<Pulsed>(left.come(settled(2))).generation, 3U) << "the only one that is left";
}

TEST_F(VotesTest, AStoreThatIsToldOfALaterOneSaysSo) {
  const auto a = agent();
  (void)a->pulse_and_confirm({{}, {place(0, 1)}});
  Agent host(world);
  EXPECT_EQ(host.only<Moved>(Find{1, "10.0.0.9", 7, kJob, 0}).host, "") << "not a later one";
  EXPECT_EQ(host.only<Moved>(Find{2, "10.0.0.9", 7, kJob, 0}).generation, 2U);
  EXPECT_EQ(a->only<Moved>(Pulse{kJob, settled(0, 1)}).host, "10.0.0.9");
  EXPECT_EQ(a->pulse({}, "drun/b/").generation, 1U) << "it is another job";
  Agent late(world);
  EXPECT_EQ(late.only<Moved>(late.come(settled(1))).port, 7);
}

TEST_F(VotesTest, AStoreOfOneEndpointIsNoneOfAList) {
  Agent asker(world);
  EXPECT_EQ(asker.only<Moved>(Find{0, "", 0, kJob, 0}).generation, 1U);
  EXPECT_EQ(asker.only<Error>(Find{0, "", 0, kJob, 77}).code, ErrorCode::WrongStore);
}

// ---- a first store, where the job may run elsewhere ----

class ListeningTest : public testing::Test {
 protected:
  static StoreSuccession::Options listening() {
    StoreSuccession::Options options;
    options.job = kJob;
    options.listening = Milliseconds(75);
    return options;
  }
  ListeningTest() { world.succession.start(world.now); }
  void pass(int ms) {
    world.now += Milliseconds(ms);
    world.succession.on_time(world.now);
  }
  PeerWorld world{{}, listening()};
};

TEST_F(ListeningTest, LetsNewcomersInWhenNobodyHasSaidThatTheJobIsElsewhere) {
  EXPECT_EQ(world.succession.next_deadline(), std::nullopt);
  Agent a(world), b(world);
  EXPECT_THAT(a.come({}), IsEmpty());
  pass(30);
  EXPECT_THAT(b.come({}), IsEmpty());
  EXPECT_EQ(world.succession.next_deadline(), world.now + Milliseconds(45));
  pass(44);
  EXPECT_THAT(a.answers(), IsEmpty());
  pass(1);
  for (Agent* each : {&a, &b}) {
    const auto answers = each->answers();
    ASSERT_EQ(answers.size(), 2U);
    EXPECT_EQ(std::get<Pulsed>(answers[0]).generation, 1U);
    EXPECT_TRUE(std::holds_alternative<Session>(answers[1]));
  }
  EXPECT_EQ(world.succession.next_deadline(), std::nullopt);
  Agent c(world);
  EXPECT_EQ(c.come({}).size(), 2U);
}

TEST_F(ListeningTest, WhoWaitsIsToldWhereTheStoreIs) {
  Agent a(world), gone(world), signpost(world);
  EXPECT_THAT(a.come({}), IsEmpty());
  EXPECT_THAT(gone.come({}), IsEmpty());
  gone.leave();
  EXPECT_EQ(signpost.only<Moved>(Find{2, "10.0.0.9", 7, kJob, 0}).generation, 2U);
  EXPECT_EQ(a.only<Moved>(a.answers()).port, 7);
  pass(75);
  EXPECT_THAT(a.answers(), IsEmpty());
}

TEST_F(ListeningTest, OthersAreLetInAtOnce) {
  Agent member(world), founder(world), of_no_job(world);
  EXPECT_EQ(member.come(settled(1)).size(), 2U) << "it brings the job's round along";
  EXPECT_EQ(of_no_job.ask(OpenSession{1000, 200}).size(), 1U);
  EXPECT_THAT(founder.come({{{0, 77}, 1, 3, kNoRank}, {}}), IsEmpty());
}

TEST_F(ListeningTest, WhileTheJobLooksForAStoreNoneBegins) {
  Agent a(world), b(world), seeker(world);
  EXPECT_THAT(a.come({}), IsEmpty());
  EXPECT_EQ(seeker.only<Moved>(Find{1, "10.0.0.9", 0, kJob, 0}).generation, 1U);
  EXPECT_EQ(b.come({}, 1, "drun/b/").size(), 0U);
  pass(75);
  EXPECT_THAT(a.answers(), IsEmpty());
  EXPECT_EQ(b.answers().size(), 2U) << "that is another job";
  pass(1'000);
  EXPECT_EQ(seeker.only<Moved>(Find{1, "10.0.0.9", 0, kJob, 0}).generation, 1U);
  pass(2'499);
  EXPECT_THAT(a.answers(), IsEmpty());
  pass(1);
  EXPECT_EQ(a.answers().size(), 2U) << "nobody has looked for long";
}

TEST_F(ListeningTest, AStoreThatWasLostIsNoPlaceToGoTo) {
  Agent a(world), teller(world);
  EXPECT_EQ(teller.only<Moved>(Find{2, "10.0.0.9", 7, kJob, 0}).generation, 2U);
  EXPECT_EQ(teller.only<Moved>(Find{1, "10.0.0.8", 0, kJob, 0}).generation, 2U) << "another";
  EXPECT_EQ(teller.only<Moved>(Find{2, "10.0.0.8", 0, kJob, 0}).host, "");
  EXPECT_THAT(a.come({}), IsEmpty());
  EXPECT_EQ(teller.only<Moved>(Find{3, "10.0.0.8", 7, kJob, 0}).generation, 3U);
  EXPECT_EQ(a.only<Moved>(a.answers()).generation, 3U);
}

TEST_F(ListeningTest, WhereTheJobsRoundIsKnownNobodyWaits) {
  pass(75);
  Agent member(world), late(world), seeker(world);
  EXPECT_EQ(member.come(settled(1)).size(), 2U);
  EXPECT_EQ(seeker.only<Moved>(Find{1, "10.0.0.9", 0, kJob, 0}).generation, 1U);
  EXPECT_EQ(late.come({}).size(), 2U);
}

// The last node of a round comes to a fresh store, finds no others of it, and ends.
TEST_F(ListeningTest, ARoundWhoseLastNodeHasLeftIsForgotten) {
  pass(75);
  auto last = std::make_unique<Agent>(world);
  Agent late(world), seeker(world);
  EXPECT_EQ(last->come(settled(1)).size(), 2U);
  EXPECT_EQ(late.come({}).size(), 2U);
  EXPECT_EQ(late.pulse().age_ms, Pulsed::kNever);
  last->leave();
  pass(1'200);
  world.sessions.expire(world.now);
  pass(2'000);
  EXPECT_EQ(seeker.only<Moved>(Find{1, "10.0.0.9", 0, kJob, 0}).generation, 1U);
  pass(2'499);
  (void)late.take();
  Agent newest(world);
  EXPECT_THAT(newest.come({}), IsEmpty()) << "the job is still looked for";
  pass(1);
  const auto answers = newest.answers();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(std::get<Pulsed>(answers[0]).age_ms, 0U);
  EXPECT_EQ(newest.pulse().age_ms, 0U);
}

TEST_F(ListeningTest, WhoHasFoundTheJobElsewhereSaysSoForGood) {
  EXPECT_FALSE(world.succession.point_to(1, {"10.0.0.9", 7}, world.now)) << "it is that one";
  EXPECT_TRUE(world.succession.point_to(2, {"10.0.0.9", 7}, world.now));
  world.now += std::chrono::hours(1);
  Agent late(world);
  EXPECT_EQ(late.only<Moved>(late.come({})).generation, 2U);
}

}  // namespace
}  // namespace drun::store::control
