#include "rendezvous/failure_json.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace drun::rendezvous {
namespace {

constexpr std::size_t kMaxLines = 100;
constexpr std::size_t kMaxRanges = 64;

void write(Json& json, const HangPlace& place, const Room& room) {
  if (!place.frame.empty()) json["frame"] = clip(place.frame, room.text);
  if (!place.call.empty()) json["call"] = clip(place.call, room.text);
}

// A drun that knows of none says none.
void read(JsonReader& in, HangPlace& place) {
  in.text("frame", place.frame, false);
  in.text("call", place.call, false);
}

Json to_json(const FailedRanks& group, const Room& room) {
  Json ranks = Json::array();
  for (std::size_t i = 0; i < std::min(group.ranks.size(), kMaxRanges); ++i)
    ranks.push_back({group.ranks[i].first, group.ranks[i].last});
  Json json = {{"ranks", std::move(ranks)}, {"cause", clip(group.cause, room.text)}};
  if (!group.last_words.empty()) json["last_words"] = clip(group.last_words, room.text);
  if (group.pid > 0) json["pid"] = group.pid;
  write(json, group.place, room);
  return json;
}

void read(JsonReader& in, FailedRanks& group) {
  in.each("ranks", [&](const Json& pair) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer() ||
        !pair[1].is_number_integer())
      return in.fail("ranks holds something else than pairs");
    const auto first = pair[0].get<std::int64_t>();
    const auto last = pair[1].get<std::int64_t>();
    if (first < 0 || last < first || last >= kMaxRanks) return in.fail("ranks holds a bad pair");
    group.ranks.push_back({static_cast<int>(first), static_cast<int>(last)});
  });
  if (group.ranks.empty()) in.fail("ranks is missing");
  in.text("cause", group.cause);
  in.text("last_words", group.last_words, false);
  in.integer("pid", group.pid, 0, kMaxInt64, false);
  read(in, group.place);
}

Json to_json(const HangClue& clue, const Room& room) {
  Json json = {{"alike", clue.alike}, {"others_ms", clue.others_within.count()}};
  if (clue.behind) json["behind"] = true;
  if (clue.for_own_child) json["for_own_child"] = true;
  if (clue.for_others) json["for_others"] = true;
  if (clue.step) json["step"] = *clue.step;
  write(json, clue.place, room);
  return json;
}

void read(JsonReader& in, HangClue& clue) {
  std::int64_t others_ms = 0;
  in.flag("behind", clue.behind);
  in.flag("for_own_child", clue.for_own_child);
  in.flag("for_others", clue.for_others);
  if (in.object("step") != nullptr)
    in.integer("step", clue.step.emplace(), std::numeric_limits<std::int64_t>::min(), kMaxInt64);
  read(in, clue.place);
  in.integer("alike", clue.alike, 0, kMaxRanks);
  in.integer("others_ms", others_ms, 0, kOthersHang.count());
  clue.others_within = Milliseconds(others_ms);
}

}  // namespace

std::vector<std::string> clip(const std::vector<std::string>& lines, std::size_t room) {
  std::vector<std::string> out;
  const auto skipped = lines.size() - std::min(lines.size(), kMaxLines);
  std::size_t bytes = 0;
  for (auto line = lines.rbegin(); line != lines.rend() - static_cast<std::ptrdiff_t>(skipped);
       ++line) {
    bytes += line->size();
    if (bytes > room) break;
    out.push_back(*line);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Json to_json(const FailureSummary& f, const Room& room) {
  Json json = {{"rank", f.rank},
               {"local_rank", f.local_rank},
               {"group_rank", f.group_rank},
               {"host", f.host},
               {"pid", f.pid},
               {"exit_code", f.exit_code},
               {"signal", f.signal},
               {"cause", clip(f.cause, room.text)},
               {"time_ms", f.time_ms},
               {"uptime_ms", f.uptime_ms},
               {"restartable", f.restartable},
               {"requeue", f.requeue},
               {"highest_code", f.highest_code}};
  if (!f.why_no_restart.empty()) json["why_no_restart"] = clip(f.why_no_restart, room.text);
  if (!f.traceback.empty()) json["traceback"] = clip(f.traceback, room.text);
  if (!f.core_file.empty()) json["core_file"] = clip(f.core_file, room.text);
  if (!f.tail.empty()) json["tail"] = clip(f.tail, room.text);
  if (!f.log_file.empty()) json["log_file"] = clip(f.log_file, room.text);
  if (!f.last_words.empty()) json["last_words"] = clip(f.last_words, room.text);
  if (f.timed_out) json["timed_out"] = true;
  if (f.hung) json["hung"] = true;
  if (f.clue != HangClue()) json["clue"] = to_json(f.clue, room);
  if (f.lowest_rank >= 0) {
    json["lowest_rank"] = f.lowest_rank;
    json["lowest_code"] = f.lowest_code;
  }
  int unlisted = f.unlisted;
  for (std::size_t i = 0; i < f.others.size(); ++i) {
    if (i < room.groups) {
      json["others"].push_back(to_json(f.others[i], room));
    } else {
      unlisted = add_ranks(unlisted, f.others[i]);
    }
  }
  if (unlisted != 0) json["unlisted"] = unlisted;
  return json;
}

void read(JsonReader& in, FailureSummary& f) {
  in.integer("rank", f.rank, 0, kMaxInt);
  in.integer("local_rank", f.local_rank, 0, kMaxInt);
  in.integer("group_rank", f.group_rank, 0, kMaxInt);
  in.text("host", f.host);
  in.integer("pid", f.pid, 0, kMaxInt64);
  in.integer("exit_code", f.exit_code, 0, 255);
  in.integer("signal", f.signal, 0, 127);
  in.text("cause", f.cause);
  in.integer("time_ms", f.time_ms, -kMaxInt64, kMaxInt64);
  in.integer("uptime_ms", f.uptime_ms, -kMaxInt64, kMaxInt64);
  in.flag("timed_out", f.timed_out);
  in.flag("hung", f.hung);
  if (const Json* clue = in.object("clue")) {
    JsonReader nested("clue", *clue);
    read(nested, f.clue);
    if (!nested.error().empty()) in.fail("clue: " + nested.error());
  }
  in.flag("restartable", f.restartable);
  in.text("why_no_restart", f.why_no_restart, false);
  in.flag("requeue", f.requeue);
  in.integer("highest_code", f.highest_code, 0, 255, false);
  in.text("traceback", f.traceback, false);
  in.text("core_file", f.core_file, false);
  in.lines("tail", f.tail);
  in.text("log_file", f.log_file, false);
  in.text("last_words", f.last_words, false);
  in.integer("lowest_rank", f.lowest_rank, 0, kMaxInt, false);
  in.integer("lowest_code", f.lowest_code, 0, 255, false);
  in.each("others", [&](const Json& element) {
    JsonReader nested("others", element);
    FailedRanks group;
    read(nested, group);
    if (!nested.error().empty()) return in.fail("others: " + nested.error());
    f.others.push_back(std::move(group));
  });
  in.integer("unlisted", f.unlisted, 0, kMaxRanks, false);
}

}  // namespace drun::rendezvous
