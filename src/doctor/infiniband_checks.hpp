// The ports of RDMA devices: what /sys/class/infiniband says of their state and errors.
#pragma once

#include <string>
#include <vector>

#include "doctor/check.hpp"

namespace drun::doctor {

// `root`: in front of /sys. Empty if there are no devices.
[[nodiscard]] std::vector<Check> check_infiniband(const std::string& root);

}  // namespace drun::doctor
