// What a store itself writes among the keys of a job, for whoever leads the job next.
#pragma once

#include <string_view>

#include "store/protocol/vote.hpp"
#include "store/table/sessions.hpp"
#include "store/table/table.hpp"

namespace drun::store {

// This voter has gone, and its workers with it: a key for each round that it had a rank in.
void write_gone(KeyTable& table, std::string_view job, const Vote& vote);
// For so long at least no other store can have been sure of a majority.
void write_silence(KeyTable& table, std::string_view job, Milliseconds silence);

}  // namespace drun::store
