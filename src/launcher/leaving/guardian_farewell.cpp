#include "launcher/leaving/guardian_farewell.hpp"

#include <utility>

namespace drun::launcher {

process::Farewell guardian_farewell(Farewells farewells) {
  process::Farewell words;
  if (farewells.first)
    words = {std::move(farewells.first->address), std::move(farewells.first->bytes), {}, {}};
  for (auto& each : farewells.others)
    words.others.push_back({std::move(each.address), std::move(each.bytes)});
  words.key = std::move(farewells.key);
  return words;
}

}  // namespace drun::launcher
