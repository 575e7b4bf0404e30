#include "launcher/report/gathered_ranks.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <vector>

#include "base/json.hpp"
#include "base/number_ranges.hpp"

namespace drun::launcher {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kBegin = "\x01ranks ";
// More than a host has; a range without sense must not fill the memory.
constexpr std::size_t kMostRanks = 100'000;

Json ranges_json(const std::vector<int>& ranks) {
  Json json = Json::array();
  for (const NumberRange& range : ranges_of(ranks))
    json.push_back({range.first, range.last});
  return json;
}

// Throws if it makes no sense.
std::vector<int> ranks_in(const Json& json) {
  std::vector<int> ranks;
  for (const Json& range : json) {
    const int last = range.at(1).get<int>();
    for (int rank = range.at(0).get<int>(); rank <= last; ++rank) {
      if (rank < 0 || ranks.size() == kMostRanks) throw std::out_of_range("ranks");
      ranks.push_back(rank);
    }
  }
  return ranks;
}

void append(std::vector<int>& all, const std::vector<int>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void put_in_order(std::vector<int>& all) {
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

}  // namespace

std::string packed_ranks(const StoppedRanks& ranks) {
  const bool expected = ranks.expected;
  return std::string(kBegin) +
         json_text(
             Json{{"running", ranges_json(expected ? std::vector<int>() : ranks.running)},
                  {"killed", ranges_json(ranks.killed)},
                  {"succeeded", ranges_json(expected ? std::vector<int>() : ranks.succeeded)},
                  {"all_silent_ms", ranks.all_silent ? Json(ranks.all_silent->count()) : Json()},
                  {"others", ranks.others_killed},
                  {"at_once", ranks.at_once}}) +
         "\n";
}

std::optional<StoppedRanks> unpacked_ranks(std::string_view text) {
  if (!text.starts_with(kBegin)) return std::nullopt;
  const Json json = parse_json(text.substr(kBegin.size()));
  try {
    StoppedRanks ranks;
    ranks.running = ranks_in(json.at("running"));
    ranks.killed = ranks_in(json.at("killed"));
    ranks.succeeded = ranks_in(json.at("succeeded"));
    if (const Json& silent = json.at("all_silent_ms"); !silent.is_null())
      ranks.all_silent = std::chrono::milliseconds(silent.get<std::int64_t>());
    ranks.others_killed = json.at("others").get<std::uint32_t>();
    ranks.at_once = json.at("at_once").get<bool>();
    return ranks;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void GatheredRanks::add(const StoppedRanks& host) {
  if (all_.running.empty())
    all_.all_silent = host.all_silent;
  else if (!host.running.empty())
    all_.all_silent = host.all_silent ? std::min(all_.all_silent, host.all_silent) : std::nullopt;
  append(all_.running, host.running);
  append(all_.killed, host.killed);
  append(all_.succeeded, host.succeeded);
  all_.others_killed += host.others_killed;
  all_.at_once |= host.at_once;
}

StoppedRanks GatheredRanks::in_order() const {
  StoppedRanks all = all_;
  for (std::vector<int>* ranks : {&all.running, &all.killed, &all.succeeded})
    put_in_order(*ranks);
  return all;
}

}  // namespace drun::launcher
