// What a node of a job found, for the one that judges all. What comes from others is not trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/check.hpp"
#include "drun/base/result.hpp"
#include "facts/sheet.hpp"

namespace drun::doctor {

// A way from one node to another.
struct LinkReport {
  int to = 0;
  std::string error;            // why there is none; empty: it is there
  std::int64_t latency_us = 0;  // of an exchange, the median; 0: not measured
  std::int64_t mbit = 0;        // in a second; 0: not measured
  int path_mtu = 0;             // what the kernel knows of the way; 0: not known
  int interface_mtu = 0;        // of the interface that it begins at; 0: not known

  bool operator==(const LinkReport&) const = default;
};

struct NodeReport {
  std::string host;
  facts::Sheet sheet;
  std::vector<Check> checks;  // of the machine alone
  std::vector<LinkReport> links;
  std::optional<std::int64_t> clock_us;  // how far its clock is ahead of the first node's

  bool operator==(const NodeReport&) const = default;
};

[[nodiscard]] std::string encode(const NodeReport& report);
[[nodiscard]] Result<NodeReport> decode_report(std::string_view text);

}  // namespace drun::doctor
