#include "launcher/hosts/failed_hosts.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/folded_names.hpp"

namespace drun::launcher::hosts {
namespace {

// As --launcher has it.
constexpr std::string_view kAnyHost = "{host}";
// More reasons than this are not looked through: each has a line of its own then.
constexpr std::size_t kMostReasons = 64;

bool is_of_name(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_' || c == '.';
}

// Where the name stands by itself: "gpu1" is not in "gpu12".
std::string of_any_host(const std::string& why, const std::string& host) {
  std::string text;
  for (std::size_t at = 0; at < why.size();) {
    const bool begins = at == 0 || !is_of_name(why[at - 1]);
    const std::size_t end = at + host.size();
    const bool is_host = begins && why.compare(at, host.size(), host) == 0 &&
                         (end >= why.size() || !is_of_name(why[end]));
    text += is_host ? kAnyHost : std::string_view(why).substr(at, 1);
    at = is_host ? end : at + 1;
  }
  return text;
}

}  // namespace

void FailedHosts::add(const std::string& host, const std::string& why) {
  std::string text = of_any_host(why, host);
  const auto end =
      reasons_.begin() + static_cast<std::ptrdiff_t>(std::min(reasons_.size(), kMostReasons));
  const auto known = std::find_if(reasons_.begin(), end,
                                  [&text](const Reason& reason) { return reason.text == text; });
  if (known != end) return known->hosts.push_back(host);
  reasons_.push_back({std::move(text), why, {host}});
}

std::vector<std::string> FailedHosts::take(std::size_t most_named) {
  std::vector<std::string> lines;
  for (const Reason& reason : std::exchange(reasons_, {})) {
    const std::vector<std::string_view> names(reason.hosts.begin(), reason.hosts.end());
    lines.push_back(folded_names(names, most_named) + ": " +
                    (names.size() == 1 ? reason.first : reason.text));
  }
  return lines;
}

}  // namespace drun::launcher::hosts
