#include "jobs/usage.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <system_error>

#include "base/counted.hpp"
#include "base/duration_text.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/size_text.hpp"

namespace drun::jobs {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostRanks = 16'384;  // of a node, as of a member's document
constexpr std::size_t kMostOutliers = 8;
constexpr std::size_t kFields = 6;  // of a rank
constexpr std::int64_t kUnknown = -1;

std::string count_text(std::int64_t count) {
  return std::to_string(count);
}

std::string percent_text(std::int64_t percent) {
  return std::to_string(percent) + "%";
}

// Something that ranks use, as far as it is known. Less than `notable` apart they do not differ,
// whatever the ratio.
struct Resource {
  const char* name;
  std::optional<std::int64_t> (*of)(const RankUsage&);
  std::string (*text)(std::int64_t);
  std::int64_t notable;
};
template <auto Field>
std::optional<std::int64_t> known(const RankUsage& usage) {
  return usage.*Field;
}
constexpr std::int64_t kNotableKib = 64 * 1'024;
constexpr std::array kResources{
    Resource{"CPU time", known<&RankUsage::cpu_ms>, describe_duration, 1'000},
    Resource{"peak memory", known<&RankUsage::peak_kib>, size_text_of_kib, kNotableKib},
    Resource{"read from storage", known<&RankUsage::read_kib>, size_text_of_kib, kNotableKib},
    Resource{"written to storage", known<&RankUsage::written_kib>, size_text_of_kib, kNotableKib},
    Resource{"context switches", known<&RankUsage::switches>, count_text, 10'000},
    Resource{"GPU memory", known<&RankUsage::gpu_peak_kib>, size_text_of_kib, kNotableKib},
    Resource{"GPU use", known<&RankUsage::gpu_percent>, percent_text, 10},
};

struct Entry {
  const RankUsage* usage;
  const NodeUsage* node;
  std::int64_t value;  // of the resource that is looked at
};

// Those of which it is known how much of this they used, the least first.
std::vector<Entry> in_order(const Resource& resource, const std::vector<Entry>& entries) {
  std::vector<Entry> result;
  for (const Entry& entry : entries)
    if (const auto value = resource.of(*entry.usage))
      result.push_back({entry.usage, entry.node, *value});
  std::stable_sort(result.begin(), result.end(),
                   [](const Entry& a, const Entry& b) { return a.value < b.value; });
  return result;
}

std::string name_of(const Entry& entry, bool with_host) {
  return "rank " + std::to_string(entry.usage->rank) +
         (with_host ? " on " + printable(entry.node->host) : "");
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

// "2.1 times"; 0.5 is "0.5 times".
std::string ratio_text(std::int64_t value, std::int64_t median) {
  const std::int64_t tenths = median > 0 ? (value * 10 + median / 2) / median : 0;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " times";
}

struct Outlier {
  std::int64_t weight;  // how many tenths more or less than the median
  std::string text;
};

void find_outliers(const Resource& resource, const std::vector<Entry>& entries, std::int64_t median,
                   bool with_host, std::vector<Outlier>& outliers) {
  for (const Entry& entry : entries) {
    const std::int64_t value = entry.value;
    const bool more = value > median;
    const auto [low, high] = std::minmax(value, median);
    if (high - low < resource.notable || high * 2 < low * 3) continue;
    const std::string used = name_of(entry, with_host) + " used ";
    const std::string what = std::string(" the median's ") + resource.name + ": " +
                             resource.text(value) + ", not " + resource.text(median);
    if (low > 0)
      outliers.push_back({high * 10 / low, used + ratio_text(value, median) + what});
    else
      outliers.push_back({std::numeric_limits<std::int64_t>::max(),
                          used + (more ? "much more than" : "nothing of") + what});
  }
}

bool read(const ordered_json& from, std::int64_t& into) {
  if (!from.is_number_integer()) return false;
  into = from.get<std::int64_t>();
  // So that tens of these can be added and multiplied.
  return into >= 0 && into <= std::numeric_limits<std::int64_t>::max() / 100'000;
}

bool read_rank(const ordered_json& from, RankUsage& rank) {
  if (!from.is_array() || from.size() != kFields) return false;
  std::int64_t number = 0;
  if (!read(from[0], number) || number > std::numeric_limits<int>::max()) return false;
  rank.rank = static_cast<int>(number);
  return read(from[1], rank.cpu_ms) && read(from[2], rank.peak_kib) &&
         read(from[3], rank.read_kib) && read(from[4], rank.written_kib) &&
         read(from[5], rank.switches);
}

// What the GPUs say of a rank; it stands beside the others, so that a version that knows nothing of
// it reads those.
bool read_gpus(const ordered_json& from, RankUsage& rank) {
  if (!from.is_array() || from.size() != 2) return false;
  for (const std::size_t i : {0U, 1U}) {
    std::int64_t number = kUnknown;
    if (from[i] != kUnknown && !read(from[i], number)) return false;
    if (number != kUnknown) (i == 0 ? rank.gpu_peak_kib : rank.gpu_percent) = number;
  }
  return true;
}

bool read_int(const ordered_json& object, const char* name, int& into) {
  const auto found = object.find(name);
  std::int64_t number = 0;
  if (found == object.end() || !read(*found, number) || number > std::numeric_limits<int>::max())
    return false;
  into = static_cast<int>(number);
  return true;
}

}  // namespace

std::string encode(const NodeUsage& usage) {
  ordered_json object{{"round", usage.round},
                      {"group_rank", usage.group_rank},
                      {"host", usage.host},
                      {"ranks", ordered_json::array()}};
  for (const RankUsage& each : usage.ranks)
    object["ranks"].push_back(
        {each.rank, each.cpu_ms, each.peak_kib, each.read_kib, each.written_kib, each.switches});
  const bool gpus = std::any_of(usage.ranks.begin(), usage.ranks.end(), [](const RankUsage& each) {
    return each.gpu_peak_kib || each.gpu_percent;
  });
  if (gpus)
    for (const RankUsage& each : usage.ranks)
      object["gpus"].push_back(
          {each.gpu_peak_kib.value_or(kUnknown), each.gpu_percent.value_or(kUnknown)});
  return json_text(object);
}

Result<NodeUsage> decode_usage(std::string_view text) {
  const Error malformed(std::make_error_code(std::errc::bad_message), "not a node's usage");
  const auto object = parse_ordered_json(text);
  if (!object.is_object()) return malformed;
  NodeUsage result;
  const auto host = object.find("host");
  const auto ranks = object.find("ranks");
  if (!read_int(object, "round", result.round) ||
      !read_int(object, "group_rank", result.group_rank) || host == object.end() ||
      !host->is_string() || ranks == object.end() || !ranks->is_array() ||
      ranks->size() > kMostRanks)
    return malformed;
  result.host = host->get<std::string>();
  for (const auto& each : *ranks) {
    RankUsage rank;
    if (!read_rank(each, rank)) return malformed;
    result.ranks.push_back(rank);
  }
  const auto gpus = object.find("gpus");
  if (gpus == object.end()) return result;
  if (!gpus->is_array() || gpus->size() != result.ranks.size()) return malformed;
  for (std::size_t i = 0; i < result.ranks.size(); ++i)
    if (!read_gpus((*gpus)[i], result.ranks[i])) return malformed;
  return result;
}

std::vector<std::string> usage_table(const std::vector<NodeUsage>& nodes, std::size_t ranks) {
  std::vector<Entry> entries;
  bool with_host = false;
  for (const NodeUsage& node : nodes) {
    with_host = with_host || node.host != nodes.front().host;
    for (const RankUsage& rank : node.ranks)
      entries.push_back({&rank, &node, 0});
  }
  if (entries.empty()) return {};
  std::string head = "usage of " + counted(entries.size(), "rank");
  if (entries.size() < ranks) head += " of " + std::to_string(ranks);
  const bool several = entries.size() > 1;
  std::vector<std::vector<std::string>> rows;
  if (several)
    rows.push_back({head, "median", "lowest", "highest"});
  else
    rows.push_back({head, ""});
  std::vector<Outlier> outliers;
  for (const Resource& resource : kResources) {
    const std::vector<Entry> sorted = in_order(resource, entries);
    if (sorted.empty()) continue;
    // Of an even number the lower one, which some rank has.
    const std::int64_t median = sorted[(sorted.size() - 1) / 2].value;
    const auto shown = [&](const Entry& entry) {
      return resource.text(entry.value) + " (" + name_of(entry, with_host) + ")";
    };
    std::vector<std::string> row{std::string("  ") + resource.name, resource.text(median)};
    if (several) {
      row.push_back(shown(sorted.front()));
      row.push_back(shown(sorted.back()));
      find_outliers(resource, sorted, median, with_host, outliers);
    }
    rows.push_back(std::move(row));
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      std::size_t width = 0;
      for (const auto& each : rows)
        width = std::max(width, each[column].size() + 2);
      line += column + 1 < row.size() ? padded(row[column], width) : row[column];
    }
    lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
  }
  std::stable_sort(outliers.begin(), outliers.end(),
                   [](const Outlier& a, const Outlier& b) { return a.weight > b.weight; });
  for (std::size_t i = 0; i < std::min(outliers.size(), kMostOutliers); ++i)
    lines.push_back("  " + outliers[i].text);
  if (outliers.size() > kMostOutliers)
    lines.push_back("  and " + std::to_string(outliers.size() - kMostOutliers) + " more");
  return lines;
}

}  // namespace drun::jobs
