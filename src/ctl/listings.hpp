// What drunctl prints of keys, counters and jobs. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/job_view.hpp"
#include "store/protocol/control_protocol.hpp"

namespace drun::ctl {

struct KeyList {
  std::vector<std::string> keys;  // sorted, without the prefix
  std::size_t hidden = 0;         // those that begin so and have another prefix
};
// Of `found`, those with this prefix that go on with `start`.
[[nodiscard]] KeyList list_keys(const std::vector<std::string>& found, std::string_view prefix,
                                std::string_view start);

// One line for what a watch tells of a key, which has the prefix. `event`: "is", "set", "delete".
[[nodiscard]] std::string entry_line(std::string_view event, const store::control::Entry& entry,
                                     std::string_view prefix, bool json);

// A line for each counter; as JSON one object.
[[nodiscard]] std::string counter_lines(const store::control::Counters& counters, bool json);

// A line for each job.
[[nodiscard]] std::string job_lines(const jobs::Documents& documents, bool json);

}  // namespace drun::ctl
