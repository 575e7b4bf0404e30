// Which node of which round an agent is: what its vote for a store counts as. docs/protocol.md,
// section 1.9, has the rules.
#pragma once

#include <compare>
#include <cstdint>

namespace drun::store {

// A place without a rank.
inline constexpr std::uint32_t kNoRank = 0xFFFFFFFF;

// The nodes of one round are an electorate: a store whose majority of them is elsewhere renews no
// lease.
struct ElectorateId {
  // The generation of the store at which the round was begun, times 2^32, and the number that
  // whoever led the job's first round drew for it: where a first store was lost before anybody had
  // heard of its round, the next one has a round of the same number, which is another. Below 2^32:
  // of a job without such a number.
  std::uint64_t era = 0;
  std::uint64_t round = 0;

  auto operator<=>(const ElectorateId&) const = default;
  [[nodiscard]] std::uint32_t origin() const {
    constexpr int kBits = 32;
    return era >> kBits == 0 ? 0 : static_cast<std::uint32_t>(era);
  }
  // Not of a round: of those who may begin the job's first store. They are `nodes` by the user's
  // word, so nobody counts as gone, nobody's voice counts more, and a majority is one of all.
  [[nodiscard]] bool is_founding() const { return era == 0; }
};

struct Place {
  ElectorateId electorate;
  std::uint32_t rank = kNoRank;     // of the node; kNoRank: it knows the round, and is not in it
  std::uint32_t nodes = 0;          // of the round; 0: no place at all
  std::uint32_t casting = kNoRank;  // the rank that breaks a tie; kNoRank: 0

  bool operator==(const Place&) const = default;
};

}  // namespace drun::store
