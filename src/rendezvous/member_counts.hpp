// What a leader's members count for: how many are ready, hold workers, have succeeded, are lost.
// membership.cpp, admission.cpp and adopt.cpp keep these numbers. Pure.
#pragma once

#include <string>

#include "rendezvous/membership.hpp"

namespace drun::rendezvous {

// In the present round; null: none.
[[nodiscard]] RankSlot* find_slot(State& state, const std::string& ticket);

// It holds workers of the present round.
[[nodiscard]] bool claims_place(const State& state, const MemberDocument& d);

// Adds (sign 1) or takes away (-1) what one member counts for.
void count(State& state, const std::string& ticket, const Member& member, int sign);

// Keeps the moments from which decisions count their time.
void note_times(State& state, const Config& config, Time now);

// What its document says of its workers in the present round.
void note_slot(State& state, const std::string& ticket, RankSlot& slot, const MemberDocument& d,
               Time now);

// Nothing proves that it has left the round.
void lose(State& state, RankSlot& slot);

}  // namespace drun::rendezvous
