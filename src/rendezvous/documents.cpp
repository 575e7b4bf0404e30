#include "rendezvous/documents.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/json.hpp"
#include "rendezvous/failure_merge.hpp"
#include "rendezvous/history.hpp"
#include "rendezvous/json_reader.hpp"

namespace drun::rendezvous {
namespace {

using Json = nlohmann::json;

constexpr int kMaxRound = 1'000'000'000;  // no job comes there; the next number is one, too
constexpr int kMaxInt = std::numeric_limits<int>::max();
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxTime = std::int64_t{1} << 53;  // may be multiplied
constexpr std::size_t kMaxText = 8 * 1024;                // of one text
constexpr std::size_t kMaxLines = 100;
constexpr std::size_t kMaxRanges = 64;
constexpr std::size_t kMaxCause = 256;  // of a cause among many
// Of a document that tells of a failure. Every member of a large job may have failed, and a leader
// reads the documents of all at once: so many fit 16,384 times into the 256 MiB that a store shows
// of its keys. The outcome goes to every agent.
constexpr std::size_t kMaxDocument = 14 * 1024;

// How much of a failure's texts is told.
struct Room {
  std::size_t text = kMaxText;             // bytes of each
  std::size_t groups = kMaxFailureGroups;  // of ranks that failed in the same way
  [[nodiscard]] Room half() const { return {text / 2, groups / 2}; }
};

constexpr std::array<const char*, 5> kPhases = {"gathering", "preparing", "running", "stopping",
                                                "closed"};
constexpr std::array<const char*, 5> kCauses = {"none", "failure", "membership", "resize",
                                                "time-limit"};
constexpr std::array<const char*, 7> kEnds = {"success",    "failure", "stopped",   "timeout",
                                              "nodes-lost", "refused", "store-lost"};

// With as much of a failure's texts as fits.
template <typename Build>
std::string dump_in_room(const Build& build) {
  std::string text;
  Room room;
  do {
    text = json_text(build(room));
    room = room.half();
  } while (text.size() > kMaxDocument && room.text > 0);
  return text;
}

// Keeps the end of a long text: the last lines of a traceback or a log matter most.
std::string clip(const std::string& text, std::size_t room = kMaxText) {
  return text.size() <= room ? text : "..." + text.substr(text.size() - room);
}

std::vector<std::string> clip(const std::vector<std::string>& lines, std::size_t room = kMaxText) {
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

Json to_json(const Assignment& a) {
  Json json = {{"round", a.round},
               {"group_rank", a.group_rank},
               {"nodes", a.group_world_size},
               {"first_rank", a.first_rank},
               {"world_size", a.world_size},
               {"first_role_rank", a.first_role_rank},
               {"role_world_size", a.role_world_size},
               {"restart_count", a.restart_count},
               {"address", a.master_address},
               {"port", a.master_port}};
  if (a.ends_ms != 0) json["ends_ms"] = a.ends_ms;
  return json;
}

void read(JsonReader& in, Assignment& a) {
  in.integer("round", a.round, 1, kMaxRound);
  in.integer("nodes", a.group_world_size, 1, kMaxInt);
  in.integer("group_rank", a.group_rank, 0, std::max(a.group_world_size, 1) - 1);
  in.integer("world_size", a.world_size, 1, kMaxInt);
  in.integer("first_rank", a.first_rank, 0, std::max(a.world_size, 1) - 1);
  in.integer("role_world_size", a.role_world_size, 1, kMaxInt);
  in.integer("first_role_rank", a.first_role_rank, 0, std::max(a.role_world_size, 1) - 1);
  in.integer("restart_count", a.restart_count, 0, kMaxInt);
  in.text("address", a.master_address);
  in.integer("port", a.master_port, 0, 65535);
  in.integer("ends_ms", a.ends_ms, 0, kMaxInt64, false);
}

Json to_json(const FailedRanks& group, const Room& room) {
  Json ranks = Json::array();
  for (std::size_t i = 0; i < std::min(group.ranks.size(), kMaxRanges); ++i)
    ranks.push_back({group.ranks[i].first, group.ranks[i].last});
  Json json = {{"ranks", std::move(ranks)}, {"cause", clip(group.cause, room.text)}};
  if (!group.last_words.empty()) json["last_words"] = clip(group.last_words, room.text);
  if (group.pid > 0) json["pid"] = group.pid;
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
}

Json to_json(const HangClue& clue) {
  Json json = {{"alike", clue.alike}, {"others_ms", clue.others_within.count()}};
  if (clue.behind) json["behind"] = true;
  if (clue.step) json["step"] = *clue.step;
  return json;
}

void read(JsonReader& in, HangClue& clue) {
  std::int64_t others_ms = 0;
  in.flag("behind", clue.behind);
  if (in.object("step") != nullptr)
    in.integer("step", clue.step.emplace(), std::numeric_limits<std::int64_t>::min(), kMaxInt64);
  in.integer("alike", clue.alike, 0, kMaxRanks);
  in.integer("others_ms", others_ms, 0, kOthersHang.count());
  clue.others_within = Milliseconds(others_ms);
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
  if (!f.traceback.empty()) json["traceback"] = clip(f.traceback, room.text);
  if (!f.core_file.empty()) json["core_file"] = clip(f.core_file, room.text);
  if (!f.tail.empty()) json["tail"] = clip(f.tail, room.text);
  if (!f.log_file.empty()) json["log_file"] = clip(f.log_file, room.text);
  if (!f.last_words.empty()) json["last_words"] = clip(f.last_words, room.text);
  if (f.timed_out) json["timed_out"] = true;
  if (f.hung) json["hung"] = true;
  if (f.clue != HangClue()) json["clue"] = to_json(f.clue);
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

Json to_json(const Place& place) {
  Json json = {{"era", place.era}, {"round", place.round}, {"nodes", place.nodes}};
  if (place.rank >= 0) json["rank"] = place.rank;
  if (place.casting >= 0) json["casting"] = place.casting;
  return json;
}

void read(JsonReader& in, Place& place) {
  in.integer("era", place.era, 1, kMaxInt64);
  in.integer("round", place.round, 1, kMaxRound);
  in.integer("nodes", place.nodes, 1, kMaxInt);
  in.integer("rank", place.rank, 0, std::max(place.nodes, 1) - 1, false);
  in.integer("casting", place.casting, 0, std::max(place.nodes, 1) - 1, false);
}

void read(JsonReader& in, const char* name, std::vector<Successor>& successors) {
  in.each(name, [&](const Json& each) {
    const bool sound = each.is_array() && each.size() == 2 && each[0].is_string() &&
                       each[1].is_number_integer() && each[1] >= 1 && each[1] <= 65535;
    if (!sound)
      return in.fail(std::string(name) + " holds something else than addresses and ports");
    successors.push_back({each[0].get<std::string>(), each[1].get<std::uint16_t>()});
  });
}

// Calls `take` with a reader of each object in the array `name`.
template <typename F>
void read_objects(JsonReader& in, const char* name, F take) {
  in.each(name, [&](const Json& element) {
    JsonReader nested(name, element);
    take(nested);
    if (!nested.error().empty()) in.fail(std::string(name) + ": " + nested.error());
  });
}

void read_costs(JsonReader& in, RoundDocument& d) {
  read_objects(in, "costs", [&d](JsonReader& each) {
    std::string ticket;
    NodeCost cost;
    each.text("ticket", ticket);
    each.integer("restarts", cost.restarts, 0, kMaxInt);
    each.integer("rank", cost.rank, -1, kMaxInt);
    each.text("cause", cost.cause);
    d.costs.emplace(std::move(ticket), std::move(cost));
  });
  read_objects(in, "lost_hosts", [&d](JsonReader& each) {
    std::string host;
    int losses = 0;
    int agents = 0;
    each.text("host", host);
    each.integer("losses", losses, 0, kMaxRound);
    each.integer("agents", agents, 0, kMostAgentsOfHost, false);
    if (agents > 0) d.agents_of_lost.emplace(host, agents);
    d.lost_hosts.emplace(std::move(host), losses);
  });
  read_objects(in, "set_aside", [&d](JsonReader& each) {
    SetAside aside;
    each.text("ticket", aside.ticket);
    each.text("host", aside.host);
    each.text("why", aside.why);
    each.integer("rank", aside.rank, -1, kMaxInt);
    each.text("cause", aside.cause);
    each.flag("cleared", aside.cleared);
    d.set_aside.push_back(std::move(aside));
  });
}

void read(JsonReader& in, StopRequest& stop) {
  in.text("reason", stop.reason);
  in.integer("exit_code", stop.exit_code, 0, 255);
}

// Reads the nested object `name`, if there is one.
template <typename T, typename Out>
void read_nested_as(JsonReader& in, const char* name, Out& out) {
  const Json* field = in.object(name);
  if (field == nullptr) return;
  JsonReader nested(name, *field);
  T value;
  read(nested, value);
  if (!nested.error().empty()) in.fail(std::string(name) + ": " + nested.error());
  out = std::move(value);
}

template <typename T>
void read_nested(JsonReader& in, const char* name, std::optional<T>& out) {
  read_nested_as<T>(in, name, out);
}

void read_nested(JsonReader& in, const char* name, Place& out) {
  read_nested_as<Place>(in, name, out);
}

Json to_json(const StopRequest& request) {
  return {{"reason", clip(request.reason)}, {"exit_code", request.exit_code}};
}

}  // namespace

std::string encode(const MemberDocument& d) {
  Json json = {{"v", d.version},
               {"host", d.host},
               {"address", d.address},
               {"worker_port", d.worker_store_port},
               {"local_world_size", d.local_world_size},
               {"role", d.role},
               {"agreement", d.agreement},
               {"left", d.left}};
  if (!d.network.empty()) json["network"] = d.network;
  if (d.node_rank) json["node_rank"] = *d.node_rank;
  if (d.node_rank_is_wish) json["node_rank_is_wish"] = true;
  if (d.is_host) json["is_host"] = true;
  if (d.successor_port != 0) json["successor_port"] = d.successor_port;
  if (d.listed >= 0) json["listed"] = d.listed;
  if (d.ends_ms != 0) json["ends_ms"] = d.ends_ms;
  if (d.claim) json["claim"] = to_json(*d.claim);
  if (d.latest.exists()) json["latest"] = to_json(d.latest);
  if (d.seen != 0) json["seen"] = d.seen;
  if (d.restarts != 0) json["restarts"] = d.restarts;
  if (d.losses != 0) json["losses"] = d.losses;
  if (d.prepared != 0) {
    json["prepared"] = d.prepared;
    json["prepared_port"] = d.prepared_worker_store_port;
  }
  if (d.succeeded != 0) json["succeeded"] = d.succeeded;
  if (d.stalled != 0) json["stalled"] = d.stalled;
  if (d.failed != 0) json["failed"] = d.failed;
  if (d.stop) json["stop"] = to_json(*d.stop);
  if (d.leave) json["leave"] = to_json(*d.leave);
  if (!d.failure) return json_text(json);
  return dump_in_room([&](const Room& room) {
    json["failure"] = to_json(*d.failure, room);
    return json;
  });
}

Result<MemberDocument> decode_member(std::string_view text) {
  JsonReader in("member", text);
  MemberDocument d;
  in.integer("v", d.version, 1, kMaxInt);
  if (in.error().empty() && d.version != kProtocolVersion) {
    // The other fields may mean anything; the name is wanted for the refusal.
    in.text("host", d.host, false);
    return in.finish(std::move(d));
  }
  in.text("host", d.host);
  in.text("address", d.address);
  in.text("network", d.network, false);
  if (d.network.size() > kMaxNetwork) in.fail("network is too long");
  in.integer("worker_port", d.worker_store_port, 0, 65535);
  in.integer("local_world_size", d.local_world_size, 1, kMaxLocalWorldSize);
  in.text("role", d.role);
  in.texts("agreement", d.agreement);
  in.integer("left", d.left, 0, kMaxRound);
  if (in.object("node_rank") != nullptr) in.integer("node_rank", d.node_rank.emplace(), 0, kMaxInt);
  in.flag("node_rank_is_wish", d.node_rank_is_wish);
  in.flag("is_host", d.is_host);
  in.integer("successor_port", d.successor_port, 0, 65535, false);
  in.integer("listed", d.listed, -1, kMaxInt, false);
  in.integer("ends_ms", d.ends_ms, 0, kMaxInt64, false);
  read_nested(in, "claim", d.claim);
  read_nested(in, "latest", d.latest);
  in.integer("seen", d.seen, 0, kMaxRound, false);
  in.integer("restarts", d.restarts, 0, kMaxInt, false);
  in.integer("losses", d.losses, 0, kMaxRound, false);
  in.integer("prepared", d.prepared, 0, kMaxInt, false);
  in.integer("prepared_port", d.prepared_worker_store_port, 0, 65535, false);
  in.integer("succeeded", d.succeeded, 0, kMaxInt, false);
  in.integer("stalled", d.stalled, 0, kMaxRound, false);
  in.integer("failed", d.failed, 0, kMaxInt, false);
  read_nested(in, "failure", d.failure);
  read_nested(in, "stop", d.stop);
  read_nested(in, "leave", d.leave);
  if (d.failed != 0 && !d.failure) in.fail("failure is missing");
  return in.finish(std::move(d));
}

std::string encode(const RoundDocument& d) {
  Json json = {{"v", d.version},
               {"epoch", d.epoch},
               {"number", d.number},
               {"phase", kPhases[static_cast<std::size_t>(d.phase)]},
               {"ran", d.ran},
               {"restart_count", d.restart_count},
               {"losses", d.losses},
               {"nodes", d.nodes},
               {"world_size", d.world_size},
               {"cause", kCauses[static_cast<std::size_t>(d.cause)]}};
  if (!d.master.empty()) json["master"] = d.master;
  if (!d.root.empty()) json["root"] = d.root;
  if (!d.reason.empty()) json["reason"] = d.reason;
  if (!d.waiting.empty()) json["waiting"] = d.waiting;
  if (d.latest.exists()) json["latest"] = to_json(d.latest);
  if (d.before.exists()) json["before"] = to_json(d.before);
  if (!d.store_host.empty()) json["store_host"] = d.store_host;
  for (const Successor& successor : d.successors)
    json["successors"].push_back({successor.address, successor.port});
  if (d.unsure) json["unsure"] = true;
  for (const auto& [ticket, cost] : d.costs)
    json["costs"].push_back({{"ticket", ticket},
                             {"restarts", cost.restarts},
                             {"rank", cost.rank},
                             {"cause", clip(cost.cause, kMaxCause)}});
  for (const auto& [host, losses] : d.lost_hosts) {
    Json each = {{"host", host}, {"losses", losses}};
    if (const auto several = d.agents_of_lost.find(host); several != d.agents_of_lost.end())
      each["agents"] = several->second;
    json["lost_hosts"].push_back(std::move(each));
  }
  for (const SetAside& each : d.set_aside)
    json["set_aside"].push_back({{"ticket", each.ticket},
                                 {"host", each.host},
                                 {"why", clip(each.why, kMaxCause)},
                                 {"rank", each.rank},
                                 {"cause", clip(each.cause, kMaxCause)},
                                 {"cleared", each.cleared}});
  if (d.since_ms != 0) json["since_ms"] = d.since_ms;
  if (d.hung) json["hung"] = true;
  if (d.brief) json["brief"] = true;
  return json_text(json);
}

Result<RoundDocument> decode_round(std::string_view text) {
  JsonReader in("round", text);
  RoundDocument d;
  in.integer("v", d.version, 1, kMaxInt);
  if (in.error().empty() && d.version != kProtocolVersion) return in.finish(std::move(d));
  in.integer("epoch", d.epoch, 0, kMaxInt64);
  in.integer("number", d.number, 0, kMaxRound);
  in.choice("phase", d.phase, kPhases);
  in.integer("ran", d.ran, 0, kMaxRound);
  in.integer("restart_count", d.restart_count, 0, kMaxInt);
  in.integer("losses", d.losses, 0, kMaxRound);
  in.integer("nodes", d.nodes, 0, kMaxInt);
  in.integer("world_size", d.world_size, 0, kMaxInt);
  in.choice("cause", d.cause, kCauses);
  in.text("master", d.master, false);
  in.text("root", d.root, false);
  in.text("reason", d.reason, false);
  in.text("waiting", d.waiting, false);
  read_nested(in, "latest", d.latest);
  read_nested(in, "before", d.before);
  in.text("store_host", d.store_host, false);
  read(in, "successors", d.successors);
  in.flag("unsure", d.unsure);
  read_costs(in, d);
  in.integer("since_ms", d.since_ms, 0, kMaxInt64, false);
  in.flag("hung", d.hung);
  in.flag("brief", d.brief);
  return in.finish(std::move(d));
}

std::string encode(const History& history) {
  Json rounds = Json::array();
  for (const PastRound& round : history.rounds) {
    Json json = {
        {"number", round.number},         {"nodes", round.nodes},
        {"world_size", round.world_size}, {"waited_ms", round.waited_ms},
        {"began_ms", round.began_ms},     {"stopping_ms", round.stopping_ms},
        {"ended_ms", round.ended_ms},     {"cause", kCauses[static_cast<std::size_t>(round.cause)]},
        {"restart", round.restart}};
    if (!round.reason.empty()) json["reason"] = round.reason;
    rounds.push_back(std::move(json));
  }
  return json_text(Json{{"v", kProtocolVersion},
                        {"max_restarts", history.max_restarts},
                        {"nnodes", history.nnodes},
                        {"rounds", std::move(rounds)}});
}

Result<History> decode_history(std::string_view text) {
  JsonReader in("history", text);
  History history;
  in.integer("max_restarts", history.max_restarts, 0, kMaxInt, false);
  in.text("nnodes", history.nnodes, false);
  in.each("rounds", [&](const Json& json) {
    JsonReader each("history", json);
    PastRound round;
    each.integer("number", round.number, 1, kMaxRound);
    each.integer("nodes", round.nodes, 0, kMaxInt);
    each.integer("world_size", round.world_size, 0, kMaxInt);
    each.integer("waited_ms", round.waited_ms, 0, kMaxInt64);
    each.integer("began_ms", round.began_ms, 0, kMaxInt64);
    each.integer("stopping_ms", round.stopping_ms, 0, kMaxInt64);
    each.integer("ended_ms", round.ended_ms, 0, kMaxInt64);
    each.integer("restart", round.restart, 0, kMaxInt);
    each.choice("cause", round.cause, kCauses);
    each.text("reason", round.reason, false);
    if (!each.error().empty()) return in.fail(each.error());
    if (history.rounds.size() >= kMaxHistory) return in.fail("there are too many rounds");
    history.rounds.push_back(std::move(round));
  });
  return in.finish(std::move(history));
}

std::string encode(const AssignmentDocument& d) {
  if (!d.refused.empty()) {
    Json refusal = {{"refused", d.refused}};
    if (d.unfit) refusal["unfit"] = true;
    return json_text(refusal);
  }
  Json json = to_json(d.assignment);
  json["go"] = d.go;
  if (d.last_rank >= 0) json["last_rank"] = d.last_rank;
  if (!d.host.empty()) json["host"] = d.host;
  return json_text(json);
}

Result<AssignmentDocument> decode_assignment(std::string_view text) {
  JsonReader in("assignment", text);
  AssignmentDocument d;
  in.text("refused", d.refused, false);
  in.flag("unfit", d.unfit);
  if (!d.refused.empty()) return in.finish(std::move(d));
  read(in, d.assignment);
  in.flag("go", d.go);
  in.integer("last_rank", d.last_rank, 0, kMaxInt, false);
  in.text("host", d.host, false);
  return in.finish(std::move(d));
}

std::string encode(const LeaderDocument& d) {
  Json json = {{"ticket", d.ticket}, {"epoch", d.epoch}};
  if (!d.host.empty()) json["host"] = d.host;
  return json_text(json);
}

Result<LeaderDocument> decode_leader(std::string_view text) {
  JsonReader in("leader", text);
  LeaderDocument d;
  in.text("ticket", d.ticket);
  in.integer("epoch", d.epoch, 0, kMaxInt64);
  in.text("host", d.host, false);
  return in.finish(std::move(d));
}

std::string encode(const JobDocument& d) {
  return json_text(Json{{"agreement", d.agreement}});
}

Result<JobDocument> decode_job(std::string_view text) {
  JsonReader in("job", text);
  JobDocument d;
  in.texts("agreement", d.agreement);
  return in.finish(std::move(d));
}

std::string encode(const BeatDocument& d) {
  return json_text(Json{{"round", d.round},
                        {"rank", d.rank},
                        {"step", d.step},
                        {"time_ms", d.time_ms},
                        {"most_step", d.most_step},
                        {"most_time_ms", d.most_time_ms}});
}

Result<BeatDocument> decode_beat(std::string_view text) {
  JsonReader in("beat", text);
  BeatDocument d;
  in.integer("round", d.round, 0, kMaxRound);
  in.integer("rank", d.rank, 0, kMaxInt);
  in.integer("step", d.step, -1, kMaxInt64);
  in.integer("time_ms", d.time_ms, 0, kMaxTime);
  in.integer("most_step", d.most_step, -1, kMaxInt64, false);
  in.integer("most_time_ms", d.most_time_ms, 0, kMaxTime, false);
  return in.finish(d);
}

std::string encode(const Outcome& o) {
  return dump_in_room([&](const Room& room) {
    Json json = {{"end", kEnds[static_cast<std::size_t>(o.end)]},
                 {"exit_code", o.exit_code},
                 {"text", clip(o.text, room.text)}};
    if (o.failure) json["failure"] = to_json(*o.failure, room);
    if (!o.notes.empty()) json["notes"] = clip(o.notes, room.text);
    return json;
  });
}

Result<Outcome> decode_outcome(std::string_view text) {
  JsonReader in("outcome", text);
  Outcome o;
  in.choice("end", o.end, kEnds);
  in.integer("exit_code", o.exit_code, 0, 255);
  in.text("text", o.text);
  read_nested(in, "failure", o.failure);
  in.lines("notes", o.notes);
  return in.finish(std::move(o));
}

}  // namespace drun::rendezvous
