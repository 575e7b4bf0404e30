#include "stacks/job_look.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/folded_names.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"

namespace drun::stacks {
namespace {

constexpr std::size_t kLongestOfAll = std::size_t{64} << 20;
constexpr std::size_t kShortestAnswer = std::size_t{4} << 10;

// ": node[2-3]", and their ranks.
StackNote silent_places(const std::vector<NodeRanks>& places,
                        const std::vector<StackReport>& reports) {
  constexpr std::size_t kMostHosts = 12;
  std::set<int> heard;  // by first rank
  for (const StackReport& report : reports)
    for (const NodeRanks& node : report.nodes)
      heard.insert(node.ranks.first);
  std::vector<std::string> hosts;
  StackNote note;
  for (const NodeRanks& place : places) {
    if (heard.contains(place.ranks.first)) continue;
    hosts.push_back(printable(place.host));
    note.ranks.push_back(place.ranks);
  }
  if (!hosts.empty()) note.text = ": " + folded_names({hosts.begin(), hosts.end()}, kMostHosts);
  return note;
}

}  // namespace

std::size_t longest_answer(std::size_t nodes) {
  return std::clamp(kLongestOfAll / std::max<std::size_t>(nodes, 1), kShortestAnswer,
                    kLongestAnswer);
}

std::string encode(const JobLook& look) {
  return json_text(nlohmann::json{{"id", look.id},
                                  {"unwind", look.unwind},
                                  {"limit_ms", look.limit.count()},
                                  {"last", look.last},
                                  {"longest", look.longest},
                                  {"round", look.round}});
}

std::optional<JobLook> decode_job_look(std::string_view text) {
  constexpr std::size_t kLongestId = 64;
  constexpr std::chrono::milliseconds kShortest{100};
  constexpr std::chrono::milliseconds kLongest{60'000};
  const auto object = parse_json(text);
  JobLook look;
  try {
    look.id = object.at("id").get<std::string>();
    look.unwind = object.at("unwind").get<bool>();
    look.limit = std::clamp(std::chrono::milliseconds(object.at("limit_ms").get<std::int64_t>()),
                            kShortest, kLongest);
    look.last = object.at("last").get<bool>();
    look.longest =
        std::clamp(object.at("longest").get<std::size_t>(), kShortestAnswer, kLongestAnswer);
    look.round = object.at("round").get<int>();
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  // It becomes a part of keys.
  const bool plain = std::all_of(look.id.begin(), look.id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
  if (!plain || look.id.empty() || look.id.size() > kLongestId) return std::nullopt;
  return look;
}

StackReport fold_answers(const std::map<std::string, std::string>& answers, std::size_t nodes,
                         const std::vector<NodeRanks>& places) {
  std::vector<StackReport> reports;
  for (const auto& [key, text] : answers)
    if (auto report = parse_report(text)) reports.push_back(std::move(*report));
  if (reports.size() < nodes) {
    StackNote note = silent_places(places, reports);
    note.text = std::to_string(nodes - reports.size()) + " of " + std::to_string(nodes) +
                " nodes gave no answer in time" + note.text;
    StackReport missing;
    missing.notes.push_back(std::move(note));
    reports.push_back(std::move(missing));
  }
  return fold(reports);
}

}  // namespace drun::stacks
