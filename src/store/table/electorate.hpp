// Which voters of a job are with this store, and since when it cannot be sure of a majority. A
// lease is renewed from that moment only, so of two stores at most one renews leases, however they
// came about. Knows the time only as an argument.
//
// The rules, and why they hold, are in docs/protocol.md, section 1.9. In short: majorities of one
// electorate intersect. While a job goes from one electorate to the next, both count, until a
// majority of the old one has accepted the new one: then that is settled. A voter reports every
// electorate that it has accepted since the last settled one, so whoever has a majority knows of
// all that may be settled.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/protocol/vote.hpp"

namespace drun::store {

// Any number that the caller tells voters apart by. A later number of the same place replaces the
// earlier one: the same agent with another session.
using VoterId = std::uint64_t;

class Electorate {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Options {
    // The job's first store: the first round of the job that it hears of is settled at once.
    // Another store has to hear from a voter what is settled.
    bool is_first = true;
    // As many voters of a round are enough: the user's own risk. 0: a majority.
    std::uint32_t quorum = 0;
  };
  // The votes are looked at once in this time.
  static constexpr std::chrono::milliseconds kPause{100};
  // Of proofs of death; the voters of more are as if they were elsewhere.
  static constexpr std::size_t kMostGone = 65'536;
  // Of electorates at a time; with more there is no majority.
  static constexpr std::size_t kMostElectorates = 256;

  Electorate() = default;
  explicit Electorate(Options options) : options_(options) {}

  // This voter is here, with that vote. settled() takes it into account at once, or, among many
  // voters, within kPause. Precondition: is_sound(vote).
  void vote(VoterId voter, const Vote& vote, Time now);
  // It has had an answer that was sent then. Nothing, if it has no vote.
  void confirm(VoterId voter, Time sent);
  // All of them are to confirm anew.
  void unconfirm();
  // It may be elsewhere, or have workers that run.
  void leave(VoterId voter);
  // It has gone, and its workers with it.
  void gone(VoterId voter);
  // The same of one that need not be here. Nothing, until a voter is here whose rounds go back to
  // the same origin: it may be the word of a job that was begun before this one, and was lost.
  void gone(const Vote& vote);

  // The latest moment at which a majority was known to be here. Without any vote: now. nullopt:
  // there was none. Never goes back. Looks at the votes once in kPause, so it may be late.
  [[nodiscard]] std::optional<Time> quorum(Time now);
  // Whether a majority is here, as far as the votes tell.
  [[nodiscard]] bool has_majority() const;
  // The newest electorate that is known to be settled, without a rank; `nodes` is 0: none.
  [[nodiscard]] const Place& settled() const { return settled_; }
  // Null: it has none.
  [[nodiscard]] const Vote* find(VoterId voter) const;
  [[nodiscard]] std::size_t size() const { return voters_.size(); }
  // Nobody votes here, and all who might are known to have gone.
  [[nodiscard]] bool is_over() const;
  // It knows a round, and nobody is left of those who told of it: they may be lost to the job.
  [[nodiscard]] bool is_deserted() const;
  // quorum() has found one.
  [[nodiscard]] bool had_majority() const { return best_.has_value(); }
  // As if nobody had told of them. What is known of deaths counts once somebody tells again.
  void forget_rounds();

 private:
  struct Record {
    Vote vote;
    std::optional<Time> confirmed;
  };
  struct Member {
    std::uint32_t rank = 0;
    VoterId id = 0;
    ElectorateId latest;
    std::optional<Time> confirmed;
  };
  struct Departed {
    std::uint32_t rank = 0;
    ElectorateId latest;
  };
  // Who counts in one electorate: each rank once, among the members or the departed.
  struct Roll {
    Place place;  // without a rank
    std::vector<Member> members;
    std::vector<Departed> departed;
  };
  // From the settled one on, in their order.
  using Rolls = std::vector<Roll>;

  void believe(const Vote& voter);
  void learn_settled(const Vote& vote);
  void settle_what_can_be();
  // Whether so many could be a majority, at the first look.
  [[nodiscard]] bool may_be_enough(std::size_t voters) const;
  // Electorates of other origins than the settled one's that count.
  [[nodiscard]] std::set<ElectorateId> vouched(std::uint32_t origin) const;
  [[nodiscard]] Rolls rolls() const;
  [[nodiscard]] std::optional<Time> common_time(const Rolls& rolls, bool present) const;
  [[nodiscard]] std::optional<Time> majority_time(const Roll& roll, const ElectorateId& limit,
                                                  bool present) const;
  [[nodiscard]] bool have_accepted(const Roll& roll, const ElectorateId& id) const;
  // Who counts in a roll when those have departed.
  struct Count {
    std::size_t others = 0;
    std::uint32_t casting = kNoRank;
    bool founding = false;
  };
  [[nodiscard]] static Count count_out(const Roll& roll, const ElectorateId& limit);
  [[nodiscard]] bool are_enough(const Count& count, std::size_t members, bool casting) const;

  Options options_;
  std::unordered_map<VoterId, Record> voters_;
  // By the oldest of its places that has a rank.
  using Proofs = std::map<std::pair<ElectorateId, std::uint32_t>, Vote>;
  static void keep(Proofs& proofs, const Place& place, const Vote& vote);
  Proofs gone_;
  Proofs of_others_;                 // no voter has been here that makes them believable
  std::set<std::uint32_t> origins_;  // of those who have been here
  Place settled_;
  std::optional<Time> best_;  // the last answer of quorum()
  std::optional<Time> looked_;
  std::optional<Time> tried_;  // to settle
};

}  // namespace drun::store
