#include "store/table/electorate.hpp"

#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace drun::store {
namespace {

using std::chrono::milliseconds;
using Time = Electorate::Time;

Time at(int seconds) {
  return Time() + std::chrono::seconds(seconds);
}

Place place(std::uint64_t round, std::uint32_t rank, std::uint32_t nodes,
            std::uint32_t casting = kNoRank) {
  return {{1, round}, rank, nodes, casting};
}

Vote in(const Place& place) {
  return {place, {}};
}
Vote unsettled(const Place& place) {
  return {{}, {place}};
}
Vote moved(const Place& from, const Place& to) {
  return {from, {to}};
}

// The voters 0, 1, ... of a round of so many have voted and confirmed what was sent then.
class ElectorateTest : public testing::Test {
 protected:
  void vote(VoterId voter, const Vote& vote, int confirmed) {
    store.vote(voter, vote, at(0));
    store.confirm(voter, at(confirmed));
  }
  void settled_round(std::uint32_t nodes, std::uint32_t casting = kNoRank, int confirmed = 10) {
    for (std::uint32_t rank = 0; rank < nodes; ++rank)
      vote(rank, in(place(1, rank, nodes, casting)), confirmed);
  }
  // Later than the last question, so that the votes are looked at again.
  std::optional<Time> quorum() { return store.quorum(at(++now_)); }
  Electorate store;

 private:
  int now_ = 100;
};

TEST_F(ElectorateTest, WithoutAVoteEveryMomentWillDo) {
  EXPECT_EQ(store.quorum(at(7)), at(7));
  EXPECT_FALSE(store.has_majority());
  store.vote(1, {}, at(8));
  store.confirm(1, at(8));
  EXPECT_EQ(store.quorum(at(9)), at(9)) << "it has been in no round";
  EXPECT_EQ(store.size(), 0U);
}

TEST_F(ElectorateTest, TheFirstRoundIsSettledAtOnce) {
  store.vote(1, unsettled(place(1, 0, 3)), at(5));
  EXPECT_EQ(store.settled(), place(1, kNoRank, 3));
  EXPECT_EQ(quorum(), at(5)) << "until then there was no other electorate";
  store.confirm(1, at(20));
  EXPECT_EQ(quorum(), at(5)) << "one of three";
  store.vote(2, unsettled(place(1, 1, 3)), at(6));
  store.confirm(2, at(15));
  EXPECT_EQ(quorum(), at(15)) << "two of three";
}

TEST_F(ElectorateTest, AStoreThatIsNotTheFirstHasToHearWhatIsSettled) {
  Electorate successor(Electorate::Options{.is_first = false});
  EXPECT_EQ(successor.quorum(at(1)), std::nullopt);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    successor.vote(rank, unsettled(place(1, rank, 3)), at(2));
    successor.confirm(rank, at(3));
  }
  EXPECT_FALSE(successor.has_majority());
  EXPECT_EQ(successor.quorum(at(4)), std::nullopt);
  successor.vote(1, in(place(1, 1, 3)), at(5));
  EXPECT_TRUE(successor.has_majority());
  EXPECT_EQ(successor.quorum(at(6)), at(3));
}

TEST_F(ElectorateTest, AFirstStoreThatComesBackEmptyHasNoQuorumOfItsOwn) {
  vote(1, in(place(1, 1, 3)), 50);
  EXPECT_EQ(quorum(), std::nullopt);
  EXPECT_FALSE(store.has_majority());
}

TEST_F(ElectorateTest, TheLatestMomentThatAMajorityHasConfirmed) {
  settled_round(5);
  store.confirm(0, at(50));
  store.confirm(1, at(40));
  store.confirm(2, at(30));
  EXPECT_EQ(quorum(), at(30));
  store.confirm(3, at(45));
  EXPECT_EQ(quorum(), at(40));
  store.confirm(3, at(20));
  EXPECT_EQ(quorum(), at(40)) << "an answer that comes late";
}

TEST_F(ElectorateTest, BeingHereWithoutHavingConfirmedIsNoQuorum) {
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    store.vote(rank, in(place(1, rank, 3)), at(1));
  EXPECT_TRUE(store.has_majority());
  EXPECT_EQ(quorum(), std::nullopt);
}

TEST_F(ElectorateTest, ItNeverGoesBack) {
  settled_round(3);
  EXPECT_EQ(quorum(), at(10));
  store.leave(0);
  store.leave(1);
  EXPECT_EQ(quorum(), at(10));
  EXPECT_FALSE(store.has_majority());
}

TEST_F(ElectorateTest, ItIsNeverInTheFuture) {
  settled_round(3, kNoRank, 500);
  EXPECT_EQ(store.quorum(at(200)), at(200));
}

TEST_F(ElectorateTest, TheVotesAreLookedAtOnceInAWhile) {
  settled_round(3);
  EXPECT_EQ(store.quorum(at(100)), at(10));
  for (VoterId voter = 0; voter < 3; ++voter)
    store.confirm(voter, at(50));
  EXPECT_EQ(store.quorum(at(100) + Electorate::kPause - milliseconds(1)), at(10));
  EXPECT_EQ(store.quorum(at(100) + Electorate::kPause), at(50));
}

TEST_F(ElectorateTest, HalfOfThemIsNoMajorityWithoutTheCastingVote) {
  for (std::uint32_t casting : {0U, 1U, kNoRank}) {
    const bool has_it = casting != 1;  // that of 0, who has it if nobody is named
    Electorate two;
    two.vote(7, in(place(1, 0, 2, casting)), at(1));
    EXPECT_EQ(two.has_majority(), has_it);
    Electorate four;
    four.vote(7, in(place(1, 0, 4, casting)), at(1));
    EXPECT_FALSE(four.has_majority());
    four.vote(8, in(place(1, 3, 4, casting)), at(1));
    EXPECT_EQ(four.has_majority(), has_it);
  }
}

TEST_F(ElectorateTest, TheCastingVoteDoesNotOutweighAMajority) {
  settled_round(3, 0);
  store.leave(1);
  store.leave(2);
  EXPECT_FALSE(store.has_majority());
}

TEST_F(ElectorateTest, WhoHasGoneIsCountedOut) {
  settled_round(2, 0);
  store.leave(0);
  EXPECT_FALSE(store.has_majority()) << "the host may be alive";
  store.gone(in(place(1, 0, 2, 0)));
  EXPECT_TRUE(store.has_majority());
  store.confirm(1, at(60));
  EXPECT_EQ(quorum(), at(60));
}

TEST_F(ElectorateTest, TheCastingVoteGoesToTheNextOneThatIsLeft) {
  for (const std::uint32_t left : {0U, 1U, 3U, 4U}) {
    Electorate pair;  // of five with the casting vote of 2 two are left: this one and 0, or 1
    pair.vote(left, in(place(1, left, 5, 2)), at(1));
    const std::uint32_t other = left == 0 ? 1 : 0;
    for (std::uint32_t rank = 0; rank < 5; ++rank)
      if (rank != left && rank != other) pair.gone(in(place(1, rank, 5, 2)));
    EXPECT_EQ(pair.has_majority(), left == 0 || left == 3 || left == 4) << left;
  }
}

// If the dead were on everybody's side, two halves of the living would have a majority each.
TEST_F(ElectorateTest, WhoHasGoneIsOnNobodysSide) {
  settled_round(3);
  store.gone(VoterId{2});
  EXPECT_TRUE(store.has_majority());
  store.leave(0);
  EXPECT_FALSE(store.has_majority()) << "one of the two that live";
}

TEST_F(ElectorateTest, ASecondProofOfTheSameDeathChangesNothing) {
  settled_round(5);
  store.gone(VoterId{4});
  store.gone(in(place(1, 4, 5)));
  store.gone(moved(place(1, 4, 5), place(2, kNoRank, 9)));
  store.leave(3);
  store.leave(2);
  EXPECT_FALSE(store.has_majority()) << "two of four";
}

// A host that died with a store of which nobody had heard, and came back.
TEST_F(ElectorateTest, TheProofOfADeathInAJobThatWasBegunBeforeThisOneDoesNotCount) {
  constexpr std::uint64_t kEra = std::uint64_t{1} << 32;
  const auto place = [](std::uint64_t origin, std::uint32_t rank) {
    return Place{{kEra + origin, 1}, rank, 3, 0};
  };
  Electorate successor(Electorate::Options{.is_first = false});
  successor.gone(in(place(9, 0)));  // later than any of this one, if one only compared them
  for (std::uint32_t rank = 1; rank < 3; ++rank) {
    successor.vote(rank, in(place(5, rank)), at(2));
    EXPECT_EQ(successor.has_majority(), rank == 2) << "two of three";
  }
  successor.gone(in(place(9, 1)));
  EXPECT_TRUE(successor.has_majority());
  EXPECT_EQ(successor.settled().electorate, (ElectorateId{kEra + 5, 1}));
  successor.leave(2);
  EXPECT_FALSE(successor.has_majority());
  successor.gone(in(place(5, 0)));
  EXPECT_TRUE(successor.has_majority())
      << "that is one of its own: one of two, with the casting vote";
}

TEST_F(ElectorateTest, AProofThatComesBeforeAllVotersCounts) {
  constexpr std::uint64_t kEra = (std::uint64_t{1} << 32) + 5;
  Electorate successor(Electorate::Options{.is_first = false});
  successor.gone(in({{kEra, 1}, 0, 3, 0}));
  EXPECT_EQ(successor.settled().nodes, 0U);
  successor.vote(1, unsettled({{kEra, 1}, 1, 3, 0}), at(2));
  EXPECT_EQ(successor.settled().nodes, 3U) << "the dead one knew that it was";
  EXPECT_TRUE(successor.has_majority());
}

TEST_F(ElectorateTest, TheDeadDoNotVoteWhateverTheirSessionsSay) {
  settled_round(3);
  store.gone(in(place(1, 1, 3)));
  store.leave(0);
  EXPECT_FALSE(store.has_majority()) << "2 of 0 and 2, 1 is dead";
}

TEST_F(ElectorateTest, AnotherSessionOfTheSameAgentCountsOnce) {
  settled_round(3);
  store.leave(1);
  store.leave(2);
  store.vote(9, in(place(1, 0, 3)), at(20));
  EXPECT_FALSE(store.has_majority());
}

TEST_F(ElectorateTest, TheNewerSessionOfAnAgentSaysWhatItHasAccepted) {
  settled_round(3);  // and two of them go on, each with a session of its own
  store.vote(10, moved(place(1, 0, 3), place(2, 0, 5)), at(20));
  store.vote(11, moved(place(1, 1, 3), place(2, 1, 5)), at(20));
  EXPECT_FALSE(store.has_majority()) << "one of three is left behind, two of five are here";
}

TEST_F(ElectorateTest, AWrongSizeIsNotCounted) {
  settled_round(3);
  store.leave(1);
  store.vote(1, in(place(1, 1, 1)), at(1));
  store.leave(2);
  EXPECT_FALSE(store.has_majority());
}

TEST_F(ElectorateTest, QuorumIsTheUsersOwnRisk) {
  Electorate one(Electorate::Options{.quorum = 1});
  one.vote(1, in(place(1, 4, 5)), at(1));
  EXPECT_TRUE(one.has_majority());
  Electorate two(Electorate::Options{.quorum = 2});
  two.vote(1, in(place(1, 4, 5)), at(1));
  EXPECT_FALSE(two.has_majority());
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    two.gone(in(place(1, rank, 5)));
  EXPECT_TRUE(two.has_majority()) << "nobody else is alive";
}

TEST_F(ElectorateTest, WhereNobodyIsLeftAStoreGoesOnButNoneBegins) {
  store.vote(1, unsettled(place(1, 0, 1)), at(5));
  store.gone(VoterId{1});
  EXPECT_EQ(store.quorum(at(30)), at(30));
  Electorate successor(Electorate::Options{.is_first = false});
  successor.gone(in(place(1, 0, 1)));
  EXPECT_FALSE(successor.has_majority());
  EXPECT_EQ(successor.quorum(at(30)), std::nullopt);
}

TEST_F(ElectorateTest, WhoIsToConfirmAnewHasNotConfirmed) {
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    vote(rank, in(place(1, rank, 3)), 5);
  store.unconfirm();
  EXPECT_TRUE(store.has_majority());
  EXPECT_EQ(quorum(), std::nullopt);
  store.confirm(1, at(30));
  store.confirm(2, at(31));
  EXPECT_EQ(quorum(), at(30));
}

// ---- from one electorate to the next ----

TEST_F(ElectorateTest, TheNextOneIsSettledByAMajorityOfTheOldAndOfTheNew) {
  settled_round(3);
  for (std::uint32_t rank = 0; rank < 5; ++rank) {
    (void)quorum();
    EXPECT_EQ(store.settled(), place(1, kNoRank, 3)) << rank;
    const Place to = place(2, rank, 5);
    vote(rank, rank < 3 ? moved(place(1, rank, 3), to) : moved(place(1, kNoRank, 3), to), 20);
    if (rank == 2) break;
  }
  EXPECT_EQ(quorum(), at(20));
  EXPECT_EQ(store.settled(), place(2, kNoRank, 5));
}

TEST_F(ElectorateTest, NewcomersAloneSettleNothing) {
  settled_round(3);
  for (VoterId voter = 10; voter < 20; ++voter)
    vote(voter, moved(place(1, kNoRank, 3), place(2, static_cast<std::uint32_t>(voter - 10), 10)),
         20);
  EXPECT_EQ(quorum(), at(10)) << "the old ones are with the store";
  EXPECT_EQ(store.settled(), place(1, kNoRank, 3));
  store.leave(0);
  store.leave(1);
  EXPECT_FALSE(store.has_majority());
}

TEST_F(ElectorateTest, WhoIsNotInTheNextRoundAcceptsItToo) {
  settled_round(3);
  vote(0, moved(place(1, 0, 3), place(2, 0, 1)), 20);
  (void)quorum();
  EXPECT_EQ(store.settled().electorate.round, 1U);
  vote(1, moved(place(1, 1, 3), place(2, kNoRank, 1)), 20);
  (void)quorum();
  EXPECT_EQ(store.settled(), place(2, kNoRank, 1));
}

TEST_F(ElectorateTest, TheOthersSettleItWithoutTheDead) {
  settled_round(5);
  store.gone(VoterId{0});
  store.gone(VoterId{1});
  store.gone(VoterId{2});
  vote(4, moved(place(1, 4, 5), place(2, 1, 2)), 20);
  (void)quorum();
  EXPECT_EQ(store.settled().electorate.round, 1U);
  vote(3, moved(place(1, 3, 5), place(2, 0, 2)), 20);
  (void)quorum();
  EXPECT_EQ(store.settled(), place(2, kNoRank, 2));
}

TEST_F(ElectorateTest, AMajorityThatHasNotHeardOfTheNextRoundNeedNotWaitForIt) {
  settled_round(3);
  vote(2, moved(place(1, 2, 3), place(2, 0, 9)), 30);
  store.confirm(0, at(25));
  store.confirm(1, at(25));
  EXPECT_EQ(quorum(), at(25));
  store.leave(0);
  EXPECT_FALSE(store.has_majority()) << "two of the old, but one of them may have settled the new";
}

TEST_F(ElectorateTest, TheDeadSpeakForWhatTheyHadAccepted) {
  settled_round(3, 2);
  store.leave(0);
  store.leave(1);
  EXPECT_FALSE(store.has_majority());
  store.gone(moved(place(1, 1, 3, 2), place(2, 1, 4, 2)));
  EXPECT_FALSE(store.has_majority()) << "0 and 1 may have settled round 2";
  store.vote(0, in(place(1, 0, 3, 2)), at(20));
  EXPECT_TRUE(store.has_majority()) << "0 has not accepted it, so they have not";
}

TEST_F(ElectorateTest, EveryElectorateBetweenCountsUntilALaterOneIsSettled) {
  settled_round(3);
  const auto both = [](std::uint32_t rank) {
    return Vote{place(1, rank, 3), {place(2, rank, 5), place(3, rank, 2)}};
  };
  vote(0, both(0), 20);
  vote(1, both(1), 20);
  (void)quorum();
  EXPECT_EQ(store.settled().electorate.round, 1U) << "round 2 has five nodes, and may be settled";
  EXPECT_FALSE([&] {
    store.leave(2);
    return store.has_majority();
  }());
  vote(2, {place(1, 2, 3), {place(2, 2, 5), place(3, kNoRank, 2)}}, 20);
  EXPECT_TRUE(store.has_majority());
  EXPECT_EQ(quorum(), at(20));
  EXPECT_EQ(store.settled().electorate.round, 3U);
}

TEST_F(ElectorateTest, WhatAVoterKnowsToBeSettledIs) {
  settled_round(3);
  store.vote(7, in(place(2, kNoRank, 5)), at(20));
  EXPECT_EQ(store.settled(), place(2, kNoRank, 5));
  EXPECT_FALSE(store.has_majority());
}

TEST_F(ElectorateTest, TooManyElectoratesAreNoMajority) {
  settled_round(1);
  for (VoterId voter = 10; voter < 10 + Electorate::kMostElectorates - 1; ++voter)
    store.vote(voter, moved(place(1, kNoRank, 1), place(voter, 0, 1)), at(1));
  EXPECT_TRUE(store.has_majority());
  store.vote(9, moved(place(1, kNoRank, 1), place(9, 0, 1)), at(1));
  EXPECT_FALSE(store.has_majority());
}

TEST_F(ElectorateTest, IsOverWhenAllHaveGone) {
  settled_round(2);
  EXPECT_FALSE(store.is_over());
  store.gone(VoterId{0});
  EXPECT_FALSE(store.is_over());
  store.leave(1);
  EXPECT_FALSE(store.is_over());
  store.gone(in(place(1, 1, 2)));
  EXPECT_TRUE(store.is_over());
}

TEST_F(ElectorateTest, IsDesertedWhenNobodyIsLeftWhoKnowsItsRounds) {
  EXPECT_FALSE(store.is_deserted()) << "it knows of none";
  settled_round(3);
  EXPECT_FALSE(store.had_majority()) << "it has not been looked for";
  ASSERT_TRUE(quorum());
  EXPECT_TRUE(store.had_majority());
  store.leave(0);
  store.leave(1);
  EXPECT_FALSE(store.is_deserted());
  store.gone(VoterId{2});
  EXPECT_TRUE(store.is_deserted());
  EXPECT_FALSE(store.is_over()) << "two may be elsewhere";
}

// ---- those who may begin the first store ----

Place founder(std::uint32_t rank, std::uint32_t nodes) {
  return {{0, 77}, rank, nodes, kNoRank};
}

TEST(FoundersTest, AMajorityOfAllBegins) {
  for (std::uint32_t nodes = 2; nodes <= 6; ++nodes) {
    SCOPED_TRACE(nodes);
    Electorate store(Electorate::Options{.is_first = false});
    std::uint32_t came = 0;
    while (!store.has_majority() && came < nodes) {
      store.vote(came, in(founder(came, nodes)), at(1));
      ++came;
    }
    EXPECT_EQ(came, nodes / 2 + 1) << "nobody's voice counts more";
  }
}

TEST(FoundersTest, NobodyCountsAsGone) {
  Electorate store(Electorate::Options{.is_first = false, .quorum = 1});
  store.vote(0, in(founder(0, 3)), at(1));
  store.vote(1, in(founder(1, 3)), at(1));
  store.gone(1);
  store.gone(in(founder(2, 3)));
  EXPECT_FALSE(store.has_majority()) << "whoever has gone may come back";
  store.vote(2, in(founder(1, 3)), at(1));
  EXPECT_TRUE(store.has_majority());
}

TEST(FoundersTest, TheFirstRoundIsSettledWhenMostOfThemKnow) {
  Electorate store(Electorate::Options{.is_first = false});
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    store.vote(rank, in(founder(rank, 3)), at(1));
    store.confirm(rank, at(1));
  }
  ASSERT_TRUE(store.quorum(at(2)));
  store.vote(0, moved(founder(0, 3), place(1, 0, 2)), at(3));
  store.vote(7, unsettled(place(1, 1, 2)), at(3));
  EXPECT_EQ(store.settled(), founder(kNoRank, 3)) << "one founder of three";
  store.vote(1, moved(founder(1, 3), place(1, kNoRank, 2)), at(4));
  EXPECT_EQ(store.settled(), place(1, kNoRank, 2)) << "the second is not in the round";
  store.gone(7);
  EXPECT_TRUE(store.has_majority()) << "the rest is as ever";
}

// A proof of death that came meanwhile counts when somebody knows that round again.
TEST(FoundersTest, BeginAnewWhenRoundsAreForgotten) {
  Electorate store(Electorate::Options{.is_first = false});
  store.vote(0, in(founder(0, 3)), at(1));
  store.vote(1, in(founder(1, 3)), at(1));
  store.vote(7, in(place(1, 2, 3)), at(1));
  store.gone(in(place(1, 1, 3)));
  EXPECT_FALSE(store.has_majority());
  EXPECT_FALSE(store.is_deserted());
  store.leave(7);
  EXPECT_TRUE(store.is_deserted());
  EXPECT_FALSE(store.has_majority()) << "of the round";
  store.forget_rounds();
  EXPECT_FALSE(store.is_deserted());
  EXPECT_EQ(store.settled(), founder(kNoRank, 3));
  EXPECT_TRUE(store.has_majority()) << "of the founders";
  store.vote(8, in(place(1, 2, 3)), at(2));
  EXPECT_FALSE(store.has_majority()) << "one of the two that are left";
  store.vote(9, in(place(1, 0, 3)), at(2));
  EXPECT_TRUE(store.has_majority());
}

// The founders have left their first store for another one, and one of them, who had begun a round
// there by then, follows them.
TEST(FoundersTest, WhatNobodyElseKnowsOfKeepsNoRoundFromBeingSettled) {
  Electorate store(Electorate::Options{.is_first = false});
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    store.vote(rank, in(founder(rank, 3)), at(1));
    store.confirm(rank, at(1));
  }
  ASSERT_TRUE(store.quorum(at(2)));
  store.vote(0, moved(founder(0, 3), place(9, 0, 2)), at(3));
  store.vote(1, moved(founder(1, 3), place(1, 0, 2)), at(3));
  EXPECT_EQ(store.settled(), founder(kNoRank, 3)) << "one founder of three";
  store.vote(2, moved(founder(2, 3), place(1, 1, 2)), at(4));
  EXPECT_EQ(store.settled(), place(1, kNoRank, 2));
  EXPECT_TRUE(store.has_majority());
}

Place of_origin(std::uint64_t origin, std::uint64_t round, std::uint32_t rank,
                std::uint32_t nodes) {
  return {{(std::uint64_t{1} << 32) + origin, round}, rank, nodes, kNoRank};
}

// Of the three nodes of that other round one is here, and the two others never come.
TEST(FoundersTest, ARoundOfAnotherFirstStoreKeepsNoLaterOneFromBeingSettled) {
  Electorate store;
  const Place first[] = {of_origin(1, 1, 0, 2), of_origin(1, 1, 1, 2)};
  store.vote(0, unsettled(first[0]), at(1));
  store.vote(1, unsettled(first[1]), at(1));
  const Place other = of_origin(9, 1, 0, 3);
  store.vote(7, unsettled(other), at(1));
  const auto next = [](std::uint32_t rank) { return of_origin(9, 2, rank, 3); };
  store.vote(7, {{}, {other, next(2)}}, at(2));
  store.vote(1, moved(first[1], next(1)), at(2));
  EXPECT_EQ(store.settled().electorate, first[0].electorate);
  store.vote(0, moved(first[0], next(0)), at(3));
  EXPECT_EQ(store.settled().electorate, next(0).electorate);
}

// They may have settled it at the other store.
TEST(FoundersTest, OneThatWhoIsInTheSettledRoundHasAcceptedCounts) {
  Electorate store;
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    store.vote(rank, unsettled(of_origin(1, 1, rank, 3)), at(1));
  ASSERT_TRUE(store.has_majority());
  const auto goes_over = [&](VoterId voter) {
    const auto rank = static_cast<std::uint32_t>(voter);
    store.vote(voter, moved(of_origin(1, 1, rank, 3), of_origin(9, 1, kNoRank, 2)), at(2));
  };
  goes_over(1);
  EXPECT_TRUE(store.has_majority()) << "of those who have not heard of it";
  goes_over(2);
  EXPECT_FALSE(store.has_majority()) << "nobody of the other round is here";
}

}  // namespace
}  // namespace drun::store
