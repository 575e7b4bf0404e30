#include "base/utc_text.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <ctime>

namespace drun {

namespace {

// "2026-11-28T14:30:05".
std::string in_utc(std::time_t seconds) {
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts)};
}

}  // namespace

std::string utc_text(std::int64_t time_ns, int digits) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::array<char, 32> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%09lld",
                static_cast<long long>(time_ns % kSecond));
  return in_utc(time_ns / kSecond) +
         std::string(fraction.data()).substr(0, 1 + static_cast<std::size_t>(digits)) + "Z";
}

std::string utc_clock_text(std::int64_t time_ms, bool date) {
  const std::string text = in_utc(time_ms / 1'000);
  const auto middle = text.find('T');
  return (date ? text.substr(0, middle) + " " : "") + text.substr(middle + 1) + " UTC";
}

}  // namespace drun
