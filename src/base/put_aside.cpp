#include "base/put_aside.hpp"

#include <cstdio>

namespace drun {

void put_aside(const std::string& path, int most) {
  const auto old = [&](int number) { return path + "." + std::to_string(number); };
  for (int number = most; number > 1; --number)
    std::rename(old(number - 1).c_str(), old(number).c_str());
  std::rename(path.c_str(), old(1).c_str());
}

}  // namespace drun
