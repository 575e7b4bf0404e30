#include "base/folded_names.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/number_ranges.hpp"
#include "base/whole_number.hpp"

namespace drun {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::size_t kLongestNumber = 9;  // digits; a longer one is part of the name

struct Numbered {
  std::string_view before;
  std::string_view digits;
  std::string_view after;
};

// Nullopt: it has no number to fold by.
std::optional<Numbered> numbered(std::string_view name) {
  const bool address = name.find_first_not_of("0123456789.:") == std::string_view::npos;
  const std::string_view part = address ? name : name.substr(0, name.find('.'));
  const auto last = part.find_last_of(kDigits);
  if (last == std::string_view::npos) return std::nullopt;
  const auto other = part.find_last_not_of(kDigits, last);
  const auto first = other == std::string_view::npos ? 0 : other + 1;
  const Numbered result{name.substr(0, first), name.substr(first, last + 1 - first),
                        name.substr(last + 1)};
  return result.digits.size() <= kLongestNumber ? std::optional(result) : std::nullopt;
}

// What stands around the number. Numbers with leading zeros are of one width; 0 is the width of
// numbers that have none.
struct Around {
  std::string_view before;
  std::string_view after;
  std::size_t width = 0;

  auto operator<=>(const Around&) const = default;
};

bool is_padded(std::string_view digits) {
  return digits.size() > 1 && digits.front() == '0';
}

std::string padded(int number, std::size_t width) {
  std::string text = std::to_string(number);
  if (text.size() < width) text.insert(0, width - text.size(), '0');
  return text;
}

std::string folded(const Around& around, std::vector<int> numbers, std::size_t most) {
  std::string text(around.before);
  if (numbers.size() == 1)
    return text + padded(numbers.front(), around.width) + std::string(around.after);
  text += '[';
  std::size_t shown = 0;
  for (const NumberRange& range : ranges_of(std::move(numbers))) {
    if (shown > 0) text += ',';
    if (shown++ == most) {
      text += "...";
      break;
    }
    text += padded(range.first, around.width);
    if (range.last != range.first) text += '-' + padded(range.last, around.width);
  }
  return text + ']' + std::string(around.after);
}

}  // namespace

std::string folded_names(const std::vector<std::string_view>& names, std::size_t most) {
  std::map<std::string_view, std::size_t> counts;
  for (const std::string_view name : names)
    ++counts[name];
  // If one number of some width has leading zeros, all numbers of that width are folded with it.
  std::set<Around> zeros;
  for (const auto& [name, count] : counts)
    if (const auto parts = numbered(name); parts && is_padded(parts->digits))
      zeros.insert({parts->before, parts->after, parts->digits.size()});
  std::map<Around, std::vector<int>> groups;
  // By what is around the first number, then by that number: the natural order of the groups.
  std::set<std::tuple<std::string_view, int, std::string>> texts;
  for (const auto& [name, count] : counts) {
    const auto parts = numbered(name);
    const int number = parts ? whole_number<int>(parts->digits).value_or(0) : 0;
    if (!parts || count > 1) {
      texts.emplace(parts ? parts->before : name, number,
                    std::string(name) + (count > 1 ? " x" + std::to_string(count) : ""));
      continue;
    }
    Around around{parts->before, parts->after, parts->digits.size()};
    if (!zeros.contains(around)) around.width = 0;
    groups[around].push_back(number);
  }
  for (auto& [around, numbers] : groups) {
    const int first = *std::min_element(numbers.begin(), numbers.end());
    texts.emplace(around.before, first, folded(around, std::move(numbers), most));
  }
  std::string text;
  std::size_t shown = 0;
  for (const auto& [before, number, group] : texts) {
    if (shown > 0) text += ", ";
    if (shown++ == most) return text + "...";
    text += group;
  }
  return text;
}

}  // namespace drun
