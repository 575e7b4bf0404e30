// The names in a folder.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace drun {

// Each in turn, "." and ".." too; those that come or go meanwhile may be missing. False: the folder
// cannot be read.
bool for_each_name(const std::string& folder, const std::function<void(std::string_view)>& visit);

}  // namespace drun
