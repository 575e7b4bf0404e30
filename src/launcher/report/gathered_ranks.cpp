#include "launcher/report/gathered_ranks.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <stdexcept>
#include <vector>

#include "base/json.hpp"
#include "base/number_ranges.hpp"

namespace drun::launcher {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kBegin = "\x01ranks ";
constexpr std::string_view kReport = "\x01report ";
// More than a host has; a range without sense must not fill the memory.
constexpr std::size_t kMostRanks = 100'000;

Json ranges_json(const std::vector<int>& ranks) {
  Json json = Json::array();
  for (const NumberRange& range : ranges_of(ranks))
    json.push_back({range.first, range.last});
  return json;
}

constexpr std::size_t kMostSilences = 64;  // runs of ranks that were silent for about as long
constexpr std::chrono::milliseconds kAlike{100};

// Neighbours that were silent for about as long share the shorter time: [first, last, ms]. Of what
// lies behind many of these nothing is said.
Json silent_runs_json(const StoppedRanks& ranks) {
  struct Run {
    NumberRange ranks;
    std::chrono::milliseconds least;
    std::chrono::milliseconds most;
  };
  std::vector<Run> runs;
  for (std::size_t i = 0; i < std::min(ranks.running.size(), ranks.silences.size()); ++i) {
    if (!ranks.silences[i]) continue;
    const auto silence = *ranks.silences[i];
    const int rank = ranks.running[i];
    if (!runs.empty() && runs.back().ranks.last + 1 == rank) {
      Run& run = runs.back();
      const Run longer{
          {run.ranks.first, rank}, std::min(run.least, silence), std::max(run.most, silence)};
      if (longer.most - longer.least <= kAlike) {
        run = longer;
        continue;
      }
    }
    if (runs.size() == kMostSilences) break;
    runs.push_back({{rank, rank}, silence, silence});
  }
  Json json = Json::array();
  for (const Run& run : runs)
    json.push_back({run.ranks.first, run.ranks.last, run.least.count()});
  return json;
}

// For each of `running`. Throws if it makes no sense.
std::vector<std::optional<std::chrono::milliseconds>> silences_in(const Json& json,
                                                                  const std::vector<int>& running) {
  std::vector<std::optional<std::chrono::milliseconds>> silences(running.size());
  for (const Json& run : json) {
    const int last = run.at(1).get<int>();
    const std::chrono::milliseconds silence(run.at(2).get<std::int64_t>());
    for (auto at = std::lower_bound(running.begin(), running.end(), run.at(0).get<int>());
         at != running.end() && *at <= last; ++at)
      silences[static_cast<std::size_t>(at - running.begin())] = silence;
  }
  return silences;
}

Json ranks_json(const StoppedRanks& ranks) {
  return Json{{"running", ranges_json(ranks.running)},
              {"killed", ranges_json(ranks.killed)},
              {"succeeded", ranges_json(ranks.succeeded)},
              {"all_silent_ms", ranks.all_silent ? Json(ranks.all_silent->count()) : Json()},
              {"others", ranks.others_killed},
              {"at_once", ranks.at_once}};
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

// Throws if it makes no sense.
StoppedRanks read_ranks(const Json& json) {
  StoppedRanks ranks;
  ranks.running = ranks_in(json.at("running"));
  ranks.killed = ranks_in(json.at("killed"));
  ranks.succeeded = ranks_in(json.at("succeeded"));
  if (const Json& silent = json.at("all_silent_ms"); !silent.is_null())
    ranks.all_silent = std::chrono::milliseconds(silent.get<std::int64_t>());
  ranks.others_killed = json.at("others").get<std::uint32_t>();
  ranks.at_once = json.at("at_once").get<bool>();
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
  StoppedRanks news = ranks;
  if (ranks.expected) {
    news.running.clear();
    news.succeeded.clear();
  }
  return std::string(kBegin) + json_text(ranks_json(news)) + "\n";
}

std::optional<StoppedRanks> unpacked_ranks(std::string_view text) {
  if (!text.starts_with(kBegin)) return std::nullopt;
  try {
    return read_ranks(parse_json(text.substr(kBegin.size())));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string kept_for_last(const std::string& report) {
  return std::string(kReport) + report;
}

std::optional<std::string> said_last(std::string_view text) {
  if (!text.starts_with(kReport)) return std::nullopt;
  return std::string(text.substr(kReport.size()));
}

std::string packed_end(const StoppedRanks& ranks, std::size_t most) {
  if (ranks.running.empty() && ranks.killed.empty() && ranks.succeeded.empty()) return "";
  Json json = ranks_json(ranks);
  json["host"] = ranks.host;
  json["expected"] = ranks.expected;
  json["job_ranks"] = ranks.job_ranks;
  json["few"] = ranks.few;
  json["silent"] = ranges_json(ranks.silent);
  json["silent_for"] = ranks.silent_for;
  json["quiet"] = ranges_json(ranks.quiet);
  json["quiet_for"] = ranks.quiet_for;
  json["silences"] = silent_runs_json(ranks);
  // Of a node with very many ranks the rest is worth more than the times.
  for (const char* least : {"silences", "quiet", "silent"}) {
    if (json_text(json).size() <= most) break;
    json[least] = Json::array();
  }
  std::string text = json_text(json);
  return text.size() <= most ? text : "";
}

std::optional<StoppedRanks> unpacked_end(std::string_view text) {
  const Json json = parse_json(text);
  try {
    StoppedRanks ranks = read_ranks(json);
    ranks.host = json.at("host").get<std::string>();
    ranks.expected = json.at("expected").get<bool>();
    ranks.job_ranks = json.at("job_ranks").get<int>();
    ranks.few = json.at("few").get<bool>();
    ranks.silent = ranks_in(json.at("silent"));
    ranks.silent_for = json.at("silent_for").get<std::string>();
    ranks.quiet = ranks_in(json.at("quiet"));
    ranks.quiet_for = json.at("quiet_for").get<std::string>();
    ranks.silences = silences_in(json.at("silences"), ranks.running);
    return ranks;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

StoppedRanks ranks_of_all(const StoppedRanks& own, const std::vector<StoppedRanks>& others) {
  StoppedRanks all;
  std::map<int, std::optional<std::chrono::milliseconds>> running;
  const auto add = [&](const StoppedRanks& node) {
    for (std::size_t i = 0; i < node.running.size(); ++i)
      running.emplace(node.running[i], i < node.silences.size() ? node.silences[i] : std::nullopt);
    append(all.killed, node.killed);
    append(all.succeeded, node.succeeded);
  };
  add(own);
  for (const StoppedRanks& node : others)
    add(node);
  for (const auto& [rank, silence] : running) {
    all.running.push_back(rank);
    all.silences.push_back(silence);
  }
  put_in_order(all.killed);
  put_in_order(all.succeeded);
  return all;
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
