// The names of a job's keys in the store, all under one prefix. docs/rendezvous.md lists them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/key_value.hpp"

namespace drun::rendezvous {

// Above all jobs of a store.
inline constexpr std::string_view kAllJobs = "drun/";

// The run id as part of a key: everything but letters, digits, '.', '_' and '-' becomes %XX, so
// that no id can reach into another's keys.
[[nodiscard]] std::string escape_id(std::string_view id);
// The inverse, for people; malformed escapes stay as they are.
[[nodiscard]] std::string unescape_id(std::string_view escaped);

class Keys {
 public:
  explicit Keys(std::string_view run_id);

  std::string prefix;   // all of the job's keys
  std::string leader;   // ephemeral: who decides
  std::string job;      // what the job's agents agree on
  std::string round;    // number, phase, counts
  std::string outcome;  // how the job ended
  std::string history;  // what became of its last rounds
  std::string members;  // prefix of the next
  std::string assignments;
  std::string facts;  // prefix: what each agent says of its machine, ephemeral
  std::string gone;   // prefix: whose workers are proven to be gone. Written by the store
  std::string death;  // prefix: whose agent has died, ephemeral. Written by its helpers
  // For how many milliseconds no other store could renew leases when this one began. The same.
  std::string silence;
  // Ephemeral: somebody asks all agents for the stacks of their workers; which, and how, is for
  // who writes and reads it.
  std::string look;

  // The last heartbeat of the rank of this agent that is furthest behind, ephemeral.
  [[nodiscard]] std::string beat_of(std::string_view ticket) const;
  // Prefix of the answers to the request of this id, ephemeral ones. Not below `prefix`: they are
  // long, and no view of the job needs them.
  [[nodiscard]] std::string answers_to(std::string_view id) const;
  [[nodiscard]] std::string member(std::string_view ticket) const;      // ephemeral
  [[nodiscard]] std::string assignment(std::string_view ticket) const;  // a place, or a refusal
  [[nodiscard]] std::string facts_of(std::string_view ticket) const;
  [[nodiscard]] std::string death_of(std::string_view ticket) const;
  // Of "gone/<era>.<round>.<rank>": whose workers are gone, without nodes.
  [[nodiscard]] std::optional<Place> place_of_gone(std::string_view key) const;
};

}  // namespace drun::rendezvous
