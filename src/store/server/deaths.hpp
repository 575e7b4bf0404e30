// What a store was told of agents that have gone, for the store that comes after it. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "store/protocol/vote.hpp"
#include "store/table/sessions.hpp"

namespace drun::store {

struct Deaths {
  struct Death {
    std::uint64_t generation = 0;  // as in control::Gone
    Vote vote{};
    Time came{};  // the word of it
  };
  // Of deaths beyond these the oldest are not told to the next store.
  static constexpr std::size_t kMost = 1024;

  // Once for each vote.
  void note(const Death& death) {
    const auto is_it = [&death](const Death& each) { return each.vote == death.vote; };
    if (std::any_of(all.begin(), all.end(), is_it)) return;
    if (all.size() == kMost) all.pop_front();
    all.push_back(death);
  }

  std::deque<Death> all{};
};

}  // namespace drun::store
