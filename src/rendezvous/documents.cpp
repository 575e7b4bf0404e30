#include "rendezvous/documents.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "rendezvous/document_parts.hpp"
#include "rendezvous/failure_json.hpp"

namespace drun::rendezvous {
namespace {

constexpr std::int64_t kMaxTime = std::int64_t{1} << 53;  // may be multiplied

constexpr std::array<const char*, 7> kEnds = {"success",    "failure", "stopped",   "timeout",
                                              "nodes-lost", "refused", "store-lost"};

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
  if (d.failing != 0) json["failing"] = d.failing;
  if (d.failed != 0) json["failed"] = d.failed;
  if (d.stop) json["stop"] = to_json(*d.stop);
  if (d.leave) json["leave"] = to_json(*d.leave);
  if (!d.end.empty()) json["end"] = d.end;
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
  in.integer("failing", d.failing, 0, kMaxInt, false);
  in.integer("failed", d.failed, 0, kMaxInt, false);
  read_nested(in, "failure", d.failure);
  read_nested(in, "stop", d.stop);
  read_nested(in, "leave", d.leave);
  in.text("end", d.end, false);
  if (d.end.size() > kMaxEnd) in.fail("end is too long");
  if (d.failed != 0 && !d.failure) in.fail("failure is missing");
  return in.finish(std::move(d));
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
    if (o.all_heard) json["all_heard"] = true;
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
  in.flag("all_heard", o.all_heard);
  return in.finish(std::move(o));
}

}  // namespace drun::rendezvous
