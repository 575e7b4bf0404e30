// Who may take part in a job, and with which of the ranks that are asked for. Pure.
#pragma once

#include <string>

#include "rendezvous/membership.hpp"

namespace drun::rendezvous {

// Of one that has just come. `problem`: its document could not be read.
void admit(State& state, const Config& config, const std::string& ticket, Member& member, Time now,
           const std::string& problem);

// The refusal is to be written.
void refuse(State& state, const std::string& ticket, Member& member, std::string reason);

// The member takes part no more: the rank that it asked for goes to the member that has waited for
// it longest.
void release_rank(State& state, const std::string& ticket, const MemberDocument& document,
                  Time now);

// It may have been asked to end the job.
void note_stop(State& state, const std::string& ticket, const Member& member);

}  // namespace drun::rendezvous
