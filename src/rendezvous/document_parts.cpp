#include "rendezvous/document_parts.hpp"

#include <algorithm>

namespace drun::rendezvous {

std::string clip(const std::string& text, std::size_t room) {
  return text.size() <= room ? text : "..." + text.substr(text.size() - room);
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

Json to_json(const StopRequest& request) {
  return {{"reason", clip(request.reason)}, {"exit_code", request.exit_code}};
}

void read(JsonReader& in, StopRequest& stop) {
  in.text("reason", stop.reason);
  in.integer("exit_code", stop.exit_code, 0, 255);
}

}  // namespace drun::rendezvous
