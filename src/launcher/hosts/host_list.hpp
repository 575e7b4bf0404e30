// Lists of hosts as users write them: -H "node1:4,gpu[0-3]:8", and the hostfiles of DeepSpeed, Open
// MPI and MPICH. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::launcher::hosts {

struct Host {
  std::string name;              // as the launcher takes it: "node1", "me@node1", "10.0.0.7"
  std::optional<int> slots;      // workers; nullopt: not said
  std::optional<int> max_slots;  // more workers than this are refused

  bool operator==(const Host&) const = default;
};

// "node1:4,node2", with lists in brackets; an IPv6 address with slots stands in brackets as well:
// "[fd00::1]:4". The error is a sentence that says what cannot be read.
[[nodiscard]] Result<std::vector<Host>> parse_host_list(std::string_view text);

// One host a line: "node1 slots=4 max_slots=8", "node1:4", "node1", "gpu[0-3] slots=8", or SGE's
// "node1 4 queue processors"; "#" begins a comment. A host that comes again (Open MPI has a line
// for each slot) has the slots of all its lines, where a line without a number counts as one. The
// error names the line.
[[nodiscard]] Result<std::vector<Host>> parse_hostfile(std::string_view text);

}  // namespace drun::launcher::hosts
