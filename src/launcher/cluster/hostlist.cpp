#include "launcher/cluster/hostlist.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/lower_case.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/trimmed.hpp"
#include "base/whole_number.hpp"

namespace drun::launcher::cluster {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::size_t kMostDigits = 18;

Error unreadable(const std::string& what) {
  return Error(std::make_error_code(std::errc::invalid_argument), what);
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
}

// "lo" or "lo-hi", as wide as lo is written.
struct Range {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::size_t width = 0;
};

Result<Range> parse_range(std::string_view text) {
  std::string_view high = text;
  const std::string_view low = take_until(high, '-');
  if (low.size() == text.size()) high = low;
  if (!is_digits(low) || !is_digits(high))
    return unreadable(in_quotes(text) + " is no range of numbers");
  if (low.size() > kMostDigits || high.size() > kMostDigits)
    return unreadable(in_quotes(text) + " has too many digits");
  const Range range{*whole_number<std::uint64_t>(low), *whole_number<std::uint64_t>(high),
                    low.size()};
  if (range.low > range.high) return unreadable(in_quotes(text) + " runs backwards");
  if (range.high - range.low >= kMostHosts) return unreadable(in_quotes(text) + " is too long");
  return range;
}

// The numbers between one pair of brackets.
Result<std::vector<std::string>> expand_numbers(std::string_view text) {
  std::vector<std::string> numbers;
  if (text.empty()) return unreadable("'[]' holds no number");
  if (text.ends_with(',')) return unreadable(in_quotes(text) + " ends in a comma");
  while (!text.empty()) {
    const auto range = parse_range(take_until(text, ','));
    if (!range) return range.error();
    if (numbers.size() + (range->high - range->low) >= kMostHosts)
      return unreadable("more than " + std::to_string(kMostHosts) + " hosts");
    for (std::uint64_t each = range->low; each <= range->high; ++each) {
      std::string number = std::to_string(each);
      if (number.size() < range->width) number.insert(0, range->width - number.size(), '0');
      numbers.push_back(std::move(number));
    }
  }
  return numbers;
}

// A name with its brackets, which holds no separator outside of them.
Result<std::vector<std::string>> expand_name(std::string_view name) {
  std::vector<std::string> hosts{""};
  std::string_view rest = name;
  while (!rest.empty()) {
    const auto open = rest.find('[');
    const std::string_view plain = rest.substr(0, open);
    if (!is_name(plain)) return unreadable(in_quotes(name) + " is no name of a host");
    for (std::string& host : hosts)
      host += plain;
    if (open == std::string_view::npos) break;
    const auto close = rest.find(']', open);
    if (close == std::string_view::npos) return unreadable(in_quotes(name) + " lacks a ']'");
    const auto numbers = expand_numbers(rest.substr(open + 1, close - open - 1));
    if (!numbers) return numbers.error();
    if (hosts.size() * numbers->size() > kMostHosts)
      return unreadable("more than " + std::to_string(kMostHosts) + " hosts");
    std::vector<std::string> longer;
    longer.reserve(hosts.size() * numbers->size());
    for (const std::string& host : hosts)
      for (const std::string& number : *numbers)
        longer.push_back(host + number);
    hosts = std::move(longer);
    rest.remove_prefix(close + 1);
  }
  return hosts;
}

// The end of the name that `text` begins with.
std::size_t end_of_name(std::string_view text) {
  bool inside = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (!inside && (c == ',' || kBlanks.find(c) != std::string_view::npos)) return at;
    if (c == '[') inside = true;
    if (c == ']') inside = false;
  }
  return text.size();
}

Result<std::vector<std::string>> checked(std::vector<std::string> hosts) {
  if (hosts.empty()) return unreadable("it names no host");
  if (hosts.size() > kMostHosts)
    return unreadable("more than " + std::to_string(kMostHosts) + " hosts");
  for (const std::string& host : hosts)
    if (!is_name(host)) return unreadable(in_quotes(host) + " is no name of a host");
  return hosts;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!(text = trimmed(text)).empty()) {
    const auto end = std::min(text.find_first_of(kBlanks), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

}  // namespace

Result<std::vector<std::string>> expand_hostlist(std::string_view text) {
  std::vector<std::string> hosts;
  while (!text.empty()) {
    const auto end = end_of_name(text);
    if (end > 0) {
      auto more = expand_name(text.substr(0, end));
      if (!more) return more.error();
      if (hosts.size() + more->size() > kMostHosts)
        return unreadable("more than " + std::to_string(kMostHosts) + " hosts");
      hosts.insert(hosts.end(), std::make_move_iterator(more->begin()),
                   std::make_move_iterator(more->end()));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return checked(std::move(hosts));
}

Result<std::vector<std::string>> first_words(std::string_view text) {
  std::vector<std::string> hosts;
  while (!text.empty()) {
    const std::string_view line = trimmed(take_until(text, '\n'));
    if (!line.empty()) hosts.emplace_back(line.substr(0, line.find_first_of(kBlanks)));
  }
  return checked(std::move(hosts));
}

Result<std::vector<std::string>> hosts_with_slots(std::string_view text) {
  const std::vector<std::string> words = words_of(text);
  std::vector<std::string> hosts;
  for (std::size_t at = 0; at < words.size(); at += 2) {
    if (at + 1 == words.size() || !is_digits(words[at + 1]))
      return unreadable("after " + in_quotes(words[at]) + " comes no number of slots");
    hosts.push_back(words[at]);
  }
  return checked(std::move(hosts));
}

Result<std::vector<std::string>> comma_list(std::string_view text) {
  std::vector<std::string> hosts;
  while (!text.empty()) {
    const std::string_view host = trimmed(take_until(text, ','));
    if (host.empty()) return unreadable("it has an empty name");
    hosts.emplace_back(host);
  }
  return checked(std::move(hosts));
}

std::vector<std::string> each_once(std::vector<std::string> hosts) {
  std::unordered_set<std::string> seen;
  std::erase_if(hosts, [&](const std::string& host) { return !seen.insert(host).second; });
  return hosts;
}

bool same_host(std::string_view one, std::string_view other) {
  const auto label = [](std::string_view host) {
    return lower_case(host.substr(0, host.find('.')));
  };
  const auto is_address = [](std::string_view host) {
    return host.find_first_not_of("0123456789.") == std::string_view::npos ||
           host.find(':') != std::string_view::npos;
  };
  if (is_address(one) || is_address(other)) return one == other;
  const bool whole =
      one.find('.') != std::string_view::npos && other.find('.') != std::string_view::npos;
  return whole ? lower_case(one) == lower_case(other) : label(one) == label(other);
}

}  // namespace drun::launcher::cluster
