#include "base/size_text.hpp"

#include <sys/resource.h>

#include <array>
#include <cstddef>

namespace drun {

std::string size_text(std::uint64_t bytes) {
  if (bytes == RLIM_INFINITY) return "unlimited";
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 10'240 && unit + 1 < kUnits.size()) {
    bytes = (bytes + 512) / 1024;
    ++unit;
  }
  return std::to_string(bytes) + " " + kUnits.at(unit);
}

std::string size_text_of_kib(std::int64_t kib) {
  constexpr std::array kUnits{" KiB", " MiB", " GiB", " TiB"};
  if (kib < 1'024) return std::to_string(kib) + kUnits[0];
  std::size_t unit = 0;
  std::int64_t tenths = kib;
  for (tenths *= 10; tenths >= 10'240 && unit + 1 < kUnits.size(); ++unit)
    tenths /= 1'024;
  std::string text = std::to_string(tenths / 10);
  if (tenths < 1'000) text += "." + std::to_string(tenths % 10);
  return text + kUnits.at(unit);
}

}  // namespace drun
