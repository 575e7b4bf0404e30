#include "base/duration_text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace drun {
namespace {

std::string fixed(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

}  // namespace

std::string describe_duration(std::int64_t milliseconds) {
  const std::int64_t ms = std::max<std::int64_t>(milliseconds, 0);
  if (ms < 1000) return std::to_string(ms) + " ms";
  if (ms < 119'950) return fixed(static_cast<double>(ms) / 1000.0) + " s";
  const std::int64_t seconds = (ms + 500) / 1000;
  if (seconds < 7200)
    return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
  const std::int64_t minutes = (seconds + 30) / 60;
  return std::to_string(minutes / 60) + " h " + std::to_string(minutes % 60) + " min";
}

std::string seconds_text(std::chrono::milliseconds limit) {
  const auto tenths = (limit.count() + 50) / 100;
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
  return text + " s";
}

std::string exact_duration(std::chrono::milliseconds limit, std::string_view gap) {
  const auto ms = limit.count();
  const bool whole = ms % 1000 == 0;
  return std::to_string(whole ? ms / 1000 : ms) + std::string(gap) + (whole ? "s" : "ms");
}

}  // namespace drun
