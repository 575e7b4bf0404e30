#include "store/table/electorate.hpp"

#include <algorithm>
#include <functional>
#include <set>

namespace drun::store {
namespace {

// Between the settled and the latest electorate there is rarely one; with more than these, only
// the two ends are tried.
constexpr std::size_t kFewElectorates = 8;
// With so few voters whatever they say is looked at, at once.
constexpr std::size_t kFewVoters = 256;

template <typename Visit>  // Visit(const Place&)
void for_each_place(const Vote& vote, Visit visit) {
  if (vote.settled.nodes > 0) visit(vote.settled);
  for (const Place& place : vote.later)
    visit(place);
}

// What somebody has accepted after a place in an electorate that counts does. Whether anything was
// new.
bool vouch(const Vote& vote, std::uint32_t origin, std::set<ElectorateId>& vouched) {
  bool is_in_one = false;
  bool grows = false;
  for_each_place(vote, [&](const Place& place) {
    const bool is_other = place.electorate.origin() != origin;
    if (is_other && is_in_one) grows |= vouched.insert(place.electorate).second;
    const bool counts = !is_other || vouched.contains(place.electorate);
    is_in_one |= counts && place.rank != kNoRank;
  });
  return grows;
}

bool is_same_electorate(const Place& a, const Place& b) {
  return a.electorate == b.electorate && a.nodes == b.nodes && a.casting == b.casting;
}

}  // namespace

void Electorate::vote(VoterId voter, const Vote& vote, Time now) {
  if (vote.latest().nodes == 0) return;  // it has been in no round, and knows of none
  if (settled_.nodes == 0 && options_.is_first && vote.settled.nodes == 0) {
    settled_ = vote.later.front();
    settled_.rank = kNoRank;
    best_ = now;  // there was no other electorate before
  }
  learn_settled(vote);
  Vote& present = voters_[voter].vote;
  if (present == vote) return;
  present = vote;
  believe(vote);
  if (best_ && (voters_.size() <= kFewVoters || !tried_ || now >= *tried_ + kPause)) {
    tried_ = now;
    settle_what_can_be();
  }
}

void Electorate::confirm(VoterId voter, Time sent) {
  const auto found = voters_.find(voter);
  if (found == voters_.end()) return;
  std::optional<Time>& confirmed = found->second.confirmed;
  confirmed = confirmed ? std::max(*confirmed, sent) : sent;
}

const Vote* Electorate::find(VoterId voter) const {
  const auto found = voters_.find(voter);
  return found == voters_.end() ? nullptr : &found->second.vote;
}

void Electorate::unconfirm() {
  for (auto& voter : voters_)
    voter.second.confirmed.reset();
}

void Electorate::leave(VoterId voter) {
  voters_.erase(voter);
}

void Electorate::gone(VoterId voter) {
  const auto found = voters_.find(voter);
  if (found == voters_.end()) return;
  const Vote vote = std::move(found->second.vote);
  voters_.erase(found);
  gone(vote);
}

void Electorate::gone(const Vote& vote) {
  const Place* mine = nullptr;
  for_each_place(vote, [&](const Place& place) {
    const bool counts = place.rank != kNoRank && !place.electorate.is_founding();
    if (mine == nullptr && counts) mine = &place;
  });
  if (mine == nullptr) return;  // it counts nowhere, or the same place may come back
  if (!origins_.contains(mine->electorate.origin())) return keep(of_others_, *mine, vote);
  learn_settled(vote);
  keep(gone_, *mine, vote);
}

void Electorate::keep(Proofs& proofs, const Place& place, const Vote& vote) {
  const std::pair key(place.electorate, place.rank);
  const auto known = proofs.find(key);
  if (known == proofs.end()) {
    if (proofs.size() < kMostGone) proofs.emplace(key, vote);
  } else if (known->second.latest().electorate < vote.latest().electorate) {
    known->second = vote;
  }
}

// With this voter here, the proofs of its own job count.
void Electorate::believe(const Vote& voter) {
  const ElectorateId& latest = voter.latest().electorate;
  if (latest.is_founding() || origins_.size() >= kMostElectorates) return;
  if (!origins_.insert(latest.origin()).second) return;
  for (const auto& [key, vote] : std::exchange(of_others_, {}))
    gone(vote);
}

void Electorate::learn_settled(const Vote& vote) {
  if (vote.settled.nodes == 0) return;
  if (settled_.nodes > 0 && vote.settled.electorate <= settled_.electorate) return;
  settled_ = vote.settled;
  settled_.rank = kNoRank;
  std::erase_if(gone_, [this](const auto& entry) {
    return entry.second.latest().electorate < settled_.electorate;
  });
}

bool Electorate::is_over() const {
  if (!voters_.empty()) return false;
  const Rolls all = rolls();
  return std::all_of(all.begin(), all.end(),
                     [](const Roll& roll) { return roll.departed.size() == roll.place.nodes; });
}

bool Electorate::is_deserted() const {
  if (settled_.nodes == 0 || settled_.electorate.is_founding()) return false;
  return std::all_of(voters_.begin(), voters_.end(), [](const auto& voter) {
    return voter.second.vote.latest().electorate.is_founding();
  });
}

void Electorate::forget_rounds() {
  for (auto& [key, vote] : std::exchange(gone_, {}))
    if (of_others_.size() < kMostGone) of_others_.emplace(key, std::move(vote));
  origins_.clear();
  settled_ = {};
  looked_.reset();
  tried_.reset();
  for (const auto& voter : voters_)
    learn_settled(voter.second.vote);
}

std::optional<Electorate::Time> Electorate::quorum(Time now) {
  if (settled_.nodes == 0 && voters_.empty() && options_.is_first) return now;
  if (best_ && looked_ && now < *looked_ + kPause) return best_;
  if (!best_ && !may_be_enough(static_cast<std::size_t>(std::count_if(
                    voters_.begin(), voters_.end(),
                    [](const auto& voter) { return voter.second.confirmed.has_value(); }))))
    return std::nullopt;
  looked_ = now;
  if (const std::optional<Time> time = common_time(rolls(), false))
    best_ = std::max(best_.value_or(Time::min()), std::min(*time, now));
  if (best_) settle_what_can_be();
  return best_;
}

bool Electorate::may_be_enough(std::size_t voters) const {
  if (settled_.nodes == 0) return false;
  return options_.quorum > 0 ||
         2 * voters + 1 > settled_.nodes - std::min<std::size_t>(settled_.nodes, gone_.size());
}

bool Electorate::has_majority() const {
  if (!best_ && !may_be_enough(voters_.size())) return false;
  return common_time(rolls(), true).has_value();
}

// ---- who counts where ----

// A round that goes back to another first store than the settled one is settled only by those who
// were in a round that counts before, and they say so. Else it counts for nothing: who was in it
// may never come.
std::set<ElectorateId> Electorate::vouched(std::uint32_t origin) const {
  std::set<ElectorateId> known;
  for (bool grows = origin != 0; grows;) {
    grows = false;
    for (const auto& dead : gone_)
      grows |= vouch(dead.second, origin, known);
    for (const auto& voter : voters_)
      grows |= vouch(voter.second.vote, origin, known);
  }
  return known;
}

// Two sessions of one agent, and a place that was given twice, count once: for the newer session.
// Of two sizes of one electorate the first is believed, and who says otherwise is not counted.
Electorate::Rolls Electorate::rolls() const {
  if (settled_.nodes == 0) return {};
  std::map<ElectorateId, Roll> known;
  known[settled_.electorate].place = settled_;
  const std::uint32_t origin = settled_.electorate.origin();
  const std::set<ElectorateId> of_others = vouched(origin);
  const auto roll_of = [&](const Place& place) -> Roll* {
    const ElectorateId& id = place.electorate;
    if (id < settled_.electorate) return nullptr;
    if (origin != 0 && id.origin() != origin && !of_others.contains(id)) return nullptr;
    Roll& roll = known[place.electorate];
    if (roll.place.nodes == 0) {
      roll.place = place;
      roll.place.rank = kNoRank;
    }
    return place.rank != kNoRank && is_same_electorate(roll.place, place) ? &roll : nullptr;
  };
  for (const auto& dead : gone_)
    for_each_place(dead.second, [&](const Place& place) {
      Roll* roll = place.electorate.is_founding() ? nullptr : roll_of(place);
      if (roll != nullptr) roll->departed.push_back({place.rank, dead.second.latest().electorate});
    });
  for (const auto& voter : voters_)
    for_each_place(voter.second.vote, [&](const Place& place) {
      const Record& record = voter.second;
      if (Roll* roll = roll_of(place))
        roll->members.push_back(
            {place.rank, voter.first, record.vote.latest().electorate, record.confirmed});
    });
  Rolls all;
  all.reserve(known.size());
  for (auto& [id, roll] : known) {
    std::sort(roll.departed.begin(), roll.departed.end(), [](const auto& a, const auto& b) {
      return a.rank != b.rank ? a.rank < b.rank : a.latest > b.latest;
    });
    const auto same_rank = [](const auto& a, const auto& b) { return a.rank == b.rank; };
    roll.departed.erase(std::unique(roll.departed.begin(), roll.departed.end(), same_rank),
                        roll.departed.end());
    std::sort(roll.members.begin(), roll.members.end(), [](const Member& a, const Member& b) {
      return a.rank != b.rank ? a.rank < b.rank : a.id > b.id;
    });
    roll.members.erase(std::unique(roll.members.begin(), roll.members.end(), same_rank),
                       roll.members.end());
    std::erase_if(roll.members, [&departed = roll.departed](const Member& member) {
      return std::binary_search(
          departed.begin(), departed.end(), Departed{member.rank, {}},
          [](const Departed& a, const Departed& b) { return a.rank < b.rank; });
    });
    all.push_back(std::move(roll));
  }
  return all;
}

// If no voter is left, nobody is against this store; but nobody is against another one either, so
// this store may go on, and none may begin.
bool Electorate::are_enough(const Count& count, std::size_t members, bool casting) const {
  if (count.founding) return 2 * members > count.others;
  if (count.others == 0) return best_.has_value();
  if (options_.quorum > 0) return members >= std::min<std::size_t>(options_.quorum, count.others);
  return 2 * members + (casting ? 1 : 0) > count.others;
}

// Whoever is next to the one with the casting vote has it when that one has departed: of two stores
// that know of different deaths one lacks more than a vote.
Electorate::Count Electorate::count_out(const Roll& roll, const ElectorateId& limit) {
  const std::uint32_t nodes = roll.place.nodes;
  const std::uint32_t first = roll.place.casting == kNoRank ? 0 : roll.place.casting;
  Count count{nodes, first, roll.place.electorate.is_founding()};
  std::optional<std::uint32_t> from_zero;  // the first that is left, from rank 0 on
  std::uint32_t next = 0;
  for (const Departed& voter : roll.departed) {
    if (voter.latest > limit) continue;
    --count.others;
    if (voter.rank > next && !from_zero) from_zero = next;
    next = voter.rank + 1;
    if (voter.rank == count.casting) ++count.casting;
  }
  if (count.casting == nodes) count.casting = from_zero.value_or(next);
  return count;
}

// A departed voter is counted out, unless it had accepted more than `limit`: then it speaks
// against those who have not, for ever.
std::optional<Electorate::Time> Electorate::majority_time(const Roll& roll,
                                                          const ElectorateId& limit,
                                                          bool present) const {
  const Count all = count_out(roll, limit);
  if (are_enough(all, 0, false)) return Time::max();
  std::vector<std::pair<Time, bool>> times;
  for (const Member& member : roll.members) {
    if (member.latest > limit || (!member.confirmed && !present)) continue;
    times.emplace_back(present ? Time() : *member.confirmed, member.rank == all.casting);
  }
  std::sort(times.begin(), times.end(), std::greater<>());
  std::size_t count = 0;
  bool casting = false;
  for (const auto& [time, is_casting] : times) {
    ++count;
    casting |= is_casting;
    if (are_enough(all, count, casting)) return time;
  }
  return std::nullopt;
}

// It may be that nothing beyond an electorate was ever settled, and then those beyond it need not
// be heard: if a majority of it, and of all before it, has accepted none of them.
std::optional<Electorate::Time> Electorate::common_time(const Rolls& rolls, bool present) const {
  std::optional<Time> best;
  if (rolls.empty() || rolls.size() > kMostElectorates) return best;
  for (std::size_t last = 0; last < rolls.size(); ++last) {
    if (rolls.size() > kFewElectorates && last > 0 && last + 1 < rolls.size()) continue;
    std::optional<Time> common = Time::max();
    for (std::size_t i = 0; i <= last && common; ++i) {
      const auto time = majority_time(rolls[i], rolls[last].place.electorate, present);
      common = time ? std::optional(std::min(*common, *time)) : std::nullopt;
    }
    if (common) best = std::max(best.value_or(*common), *common);
  }
  return best;
}

// ---- from one electorate to the next ----

bool Electorate::have_accepted(const Roll& roll, const ElectorateId& id) const {
  const Count all = count_out(roll, id);
  std::size_t count = 0;
  bool casting = false;
  for (const Member& member : roll.members) {
    if (member.latest != id) continue;
    ++count;
    casting |= member.rank == all.casting;
  }
  return are_enough(all, count, casting);
}

// The latest one that can be: whoever has a majority of those before it then has one who has
// accepted it, and says so. There may be later ones that only a few know of, and that never are: of
// another first store that its founders have left.
void Electorate::settle_what_can_be() {
  const Rolls all = rolls();
  if (all.size() < 2 || all.size() > kMostElectorates) return;
  for (std::size_t last = all.size() - 1; last > 0; --last) {
    const ElectorateId& id = all[last].place.electorate;
    const auto accepts = [&](const Roll& roll) { return have_accepted(roll, id); };
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(last) + 1;
    if (std::all_of(all.begin(), end, accepts)) return learn_settled(Vote{all[last].place, {}});
    if (all.size() > kFewElectorates) return;
  }
}

}  // namespace drun::store
