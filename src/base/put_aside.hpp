// Old pieces of a file that is written without end.
#pragma once

#include <string>

namespace drun {

// Renames `path` to "path.1", the youngest, and each older piece to the next number; that with the
// number `most` is lost. What cannot be renamed stays.
void put_aside(const std::string& path, int most);

}  // namespace drun
