#include "store/protocol/vote.hpp"

#include <gtest/gtest.h>

namespace drun::store {
namespace {

Place place(std::uint64_t round, std::uint32_t rank, std::uint32_t nodes = 3) {
  return {{1, round}, rank, nodes, kNoRank};
}

TEST(Voter, HasNoPlaceAtFirst) {
  EXPECT_EQ(Voter().vote(), Vote{});
  EXPECT_EQ(Voter().vote().latest().nodes, 0U);
}

TEST(Voter, ReportsAllPlacesSinceTheSettledOne) {
  Voter voter;
  voter.give(place(1, 0));
  voter.give(place(2, 1));
  voter.give(place(3, kNoRank));
  EXPECT_EQ(voter.vote(), (Vote{{}, {place(1, 0), place(2, 1), place(3, kNoRank)}}));
  voter.settle(place(2, kNoRank));
  EXPECT_EQ(voter.vote(), (Vote{place(2, 1), {place(3, kNoRank)}}));
  EXPECT_EQ(voter.vote().latest(), place(3, kNoRank));
  voter.settle(place(3, kNoRank));
  EXPECT_EQ(voter.vote(), (Vote{place(3, kNoRank), {}}));
}

TEST(Voter, KnowsOfASettledElectorateThatItIsNotIn) {
  Voter voter;
  voter.settle(place(4, 2));
  EXPECT_EQ(voter.vote(), (Vote{place(4, kNoRank), {}})) << "the rank is another's";
  voter.give(place(6, 1));
  voter.settle(place(5, kNoRank));
  EXPECT_EQ(voter.vote(), (Vote{place(5, kNoRank), {place(6, 1)}}));
}

TEST(Voter, WhoHasNoPlaceSaysNothingOfARoundWithoutIt) {
  Voter voter;
  voter.give(place(1, kNoRank));
  EXPECT_EQ(voter.vote(), Vote{});
  voter.give(place(2, 1));
  voter.give(place(3, kNoRank));
  EXPECT_EQ(voter.vote(), (Vote{{}, {place(2, 1), place(3, kNoRank)}}));
  Voter founder;
  founder.found({{0, 77}, 1, 3, kNoRank});
  founder.give(place(1, kNoRank));
  EXPECT_EQ(founder.vote().latest(), place(1, kNoRank)) << "a founder accepts the first round";
}

TEST(Voter, NeverGoesBack) {
  Voter voter;
  voter.give(place(2, 1));
  voter.give(place(2, 0));
  voter.give(place(1, 0));
  EXPECT_EQ(voter.vote(), (Vote{{}, {place(2, 1)}}));
  voter.settle(place(2, kNoRank));
  voter.settle(place(1, kNoRank));
  voter.give(place(2, 0));
  EXPECT_EQ(voter.vote(), (Vote{place(2, 1), {}}));
}

TEST(Voter, ARankMayFollow) {
  Voter voter;
  voter.give(place(1, kNoRank));
  voter.give(place(1, 2));
  EXPECT_EQ(voter.vote(), (Vote{{}, {place(1, 2)}}));
  voter.settle(place(2, kNoRank));
  voter.give(place(2, 1));
  EXPECT_EQ(voter.vote(), (Vote{place(2, 1), {}}));
  voter.give(place(2, kNoRank));
  EXPECT_EQ(voter.vote(), (Vote{place(2, 1), {}}));
}

TEST(Voter, ALaterEraIsNewerWhateverItsRounds) {
  Voter voter;
  voter.give(place(9, 1));
  voter.give({{2, 1}, 0, 3, kNoRank});
  EXPECT_EQ(voter.vote().latest().electorate, (ElectorateId{2, 1}));
}

TEST(Voter, IsLostWithMorePlacesThanItCanReport) {
  Voter voter;
  for (std::uint64_t round = 1; round <= kMostPlaces; ++round)
    voter.give(place(round, 0));
  EXPECT_FALSE(voter.is_lost());
  EXPECT_TRUE(is_sound(voter.vote()));
  voter.give(place(100, 0));
  EXPECT_TRUE(voter.is_lost());
  voter.settle(place(3, kNoRank));
  EXPECT_FALSE(voter.is_lost());
}

TEST(Vote, IsSoundOrNot) {
  EXPECT_TRUE(is_sound({}));
  EXPECT_TRUE(is_sound({place(1, 2), {place(2, kNoRank)}}));
  EXPECT_TRUE(is_sound({{}, {place(1, 0), {{2, 0}, 0, 1, 0}}}));
  EXPECT_FALSE(is_sound({place(1, 3), {}})) << "no such rank";
  EXPECT_FALSE(is_sound({{}, {{{1, 1}, 0, 3, 3}}})) << "no such casting rank";
  EXPECT_FALSE(is_sound({{}, {Place{}}})) << "no nodes";
  EXPECT_FALSE(is_sound({{{1, 1}, kNoRank, 0, kNoRank}, {}})) << "of no nodes";
  EXPECT_FALSE(is_sound({{}, {{{1, 1}, kNoRank, kNoRank, kNoRank}}})) << "too many nodes";
  EXPECT_FALSE(is_sound({place(2, 0), {place(2, 0)}})) << "twice";
  EXPECT_FALSE(is_sound({{}, {place(2, 0), place(1, 0)}})) << "not in order";
}

}  // namespace
}  // namespace drun::store
