// A program's arguments or variables as the system takes them.
#pragma once

#include <string>
#include <vector>

namespace drun {

// Pointers to the texts, and the null that ends them: valid while `texts` live and do not change.
// exec and posix_spawn want char*, and change nothing.
[[nodiscard]] inline std::vector<char*> argv_of(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts)
    result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace drun
