// What all agents of a job must have been started with alike. Pure.
#pragma once

#include <map>
#include <string>

#include "rendezvous/types.hpp"

namespace drun::rendezvous {

// What all agents must agree on: config.agreement, and what the rendezvous itself depends on.
[[nodiscard]] std::map<std::string, std::string> full_agreement(const Config& config);
// How they differ, field by field ("node1 has --nnodes 3; the job has --nnodes 2; ..."); empty when
// not.
[[nodiscard]] std::string disagreement(const std::string& who,
                                       const std::map<std::string, std::string>& agreement,
                                       const std::map<std::string, std::string>& job);

}  // namespace drun::rendezvous
