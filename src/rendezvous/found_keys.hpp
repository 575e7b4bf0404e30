// What a job's keys say, decoded: what a new leader finds. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/documents.hpp"
#include "rendezvous/history.hpp"
#include "rendezvous/key_value.hpp"
#include "rendezvous/keys.hpp"

namespace drun::rendezvous {

struct FoundKeys {
  std::optional<JobDocument> job;
  std::optional<RoundDocument> round;
  bool outcome = false;
  History history;
  struct FoundMember {
    std::string ticket;
    MemberDocument document;
    std::string problem;
  };
  std::vector<FoundMember> members;
  std::map<std::string, AssignmentDocument> assignments;
  std::vector<std::string> unreadable_assignments;
  std::vector<Place> gone;
  std::optional<Milliseconds> silence;
};

// `problems`: a line for each document that could not be read and is no member's.
[[nodiscard]] FoundKeys find_keys(const Keys& keys, const std::vector<Change>& entries,
                                  std::vector<std::string>& problems);

}  // namespace drun::rendezvous
