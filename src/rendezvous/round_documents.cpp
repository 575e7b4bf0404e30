// The documents of a round and of the rounds before it, as JSON.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/document_parts.hpp"
#include "rendezvous/documents.hpp"
#include "rendezvous/history.hpp"

namespace drun::rendezvous {
namespace {

constexpr std::size_t kMaxCause = 256;  // of a cause among many

constexpr std::array<const char*, 5> kPhases = {"gathering", "preparing", "running", "stopping",
                                                "closed"};

void read(JsonReader& in, const char* name, std::vector<Successor>& successors) {
  in.each(name, [&](const Json& each) {
    const bool sound = each.is_array() && each.size() == 2 && each[0].is_string() &&
                       each[1].is_number_integer() && each[1] >= 1 && each[1] <= 65535;
    if (!sound)
      return in.fail(std::string(name) + " holds something else than addresses and ports");
    successors.push_back({each[0].get<std::string>(), each[1].get<std::uint16_t>()});
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

}  // namespace

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

}  // namespace drun::rendezvous
