#include "base/utc_text.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <ctime>

namespace drun {

std::string utc_text(std::int64_t time_ns, int digits) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::time_t seconds = time_ns / kSecond;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  const auto end = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + end, text.size() - end, ".%09lld",
                static_cast<long long>(time_ns % kSecond));
  return std::string(text.data()).substr(0, end + 1 + static_cast<std::size_t>(digits)) + "Z";
}

}  // namespace drun
