// drunctl doctor as the program of a job: its nodes meet at the workers' store.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/deadline.hpp"
#include "base/fd_limit.hpp"
#include "base/random_bytes.hpp"
#include "ctl/drunctl_doctor.hpp"
#include "doctor/judge_nodes.hpp"
#include "doctor/link_server.hpp"
#include "doctor/link_test.hpp"
#include "doctor/network_plan.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/store/client.hpp"
#include "facts/gather.hpp"

namespace drun::ctl {
namespace {

using Time = std::chrono::steady_clock::time_point;

constexpr std::chrono::seconds kConnectLimit{5};

std::string key_of(const char* what, int node) {
  return std::string("doctor/") + what + "/" + std::to_string(node);
}

std::vector<std::string> keys_of(const char* what, const std::vector<int>& nodes) {
  std::vector<std::string> keys;
  for (const int node : nodes)
    keys.push_back(key_of(what, node));
  return keys;
}

std::vector<int> all_nodes(int nodes) {
  std::vector<int> all;
  for (int node = 0; node < nodes; ++node)
    all.push_back(node);
  return all;
}

// Who knows it may use the servers of all nodes.
Result<std::string> agree_on_token(store::Client& store, const Worker& worker, Time deadline) {
  const std::string key = "doctor/token";
  if (worker.group_rank == 0)
    if (const auto said = store.set(key, std::string_view(random_name(doctor::kTokenSize))); !said)
      return said.error();
  return store.get(key, time_left(deadline));
}

Result<FileDescriptor> connect_link(const Endpoint& place) {
  return std::move(
      doctor::connect_links({place}, std::chrono::steady_clock::now() + kConnectLimit).front());
}

void measure(doctor::LinkReport& link, const Endpoint& place, const std::string& token) {
  if (const auto socket = connect_link(place))
    if (const auto exchange = doctor::exchange_bytes(socket->get(), token))
      link.latency_us = exchange->latency_us;
  const auto socket = connect_link(place);
  if (!socket) return;
  if (const auto speed = doctor::stream_bytes(socket->get(), token)) link.mbit = *speed;
  link.path_mtu = doctor::path_mtu_of(socket->get());
}

std::optional<std::int64_t> clock_against(const Endpoint& place, const std::string& token) {
  const auto socket = connect_link(place);
  if (!socket) return std::nullopt;
  const auto exchange = doctor::exchange_bytes(socket->get(), token);
  return exchange ? std::optional(exchange->clock_us) : std::nullopt;
}

// Those that have not said anything by the deadline.
std::vector<doctor::Check> missing_nodes(store::Client& store, int nodes) {
  std::string names;
  std::size_t missing = 0;
  for (const int node : all_nodes(nodes)) {
    const auto there = store.check({key_of("report", node)});
    if (!there || *there) continue;
    if (++missing <= 8) names += (names.empty() ? "" : ", ") + std::to_string(node);
  }
  return {doctor::failed("nodes",
                         std::to_string(missing) + " of " + std::to_string(nodes) +
                             " have not told what they found: group ranks " + names +
                             (missing > 8 ? ", ..." : ""),
                         "run drunctl doctor there alone, or wait longer with --timeout")};
}

std::vector<doctor::Check> judge_all(store::Client& store, int nodes, Time deadline) {
  const auto texts = store.multi_get(keys_of("report", all_nodes(nodes)), time_left(deadline));
  if (!texts) return missing_nodes(store, nodes);
  std::vector<doctor::NodeReport> reports;
  for (const std::string& text : *texts) {
    auto report = doctor::decode_report(text);
    if (!report) return {doctor::failed("nodes", report.error().what(), "use one drun on all")};
    reports.push_back(std::move(*report));
  }
  return doctor::judge_nodes(reports);
}

}  // namespace

Result<std::vector<doctor::Check>> examine_nodes(const Worker& worker, doctor::NodeReport own,
                                                 Time deadline) {
  const int node = worker.group_rank;
  const int nodes = worker.group_world_size;
  auto store = store::Client::connect(worker.store, deadline);
  if (!store) return store.error();
  const auto token = agree_on_token(*store, worker, deadline);
  if (!token) return token.error();
  raise_fd_limit();  // the first node answers all others
  const doctor::LinkServer server(*token);
  const std::string address = store->local_endpoint().host;
  if (const int mtu = facts::mtu_at(address); mtu > 0) own.sheet["mtu"] = std::to_string(mtu);
  const std::string place = to_string(Endpoint{address, server.port()});
  if (const auto said = store->set(key_of("place", node), std::string_view(place)); !said)
    return said.error();

  const std::vector<int> peers = doctor::peers_of(node, nodes);
  const auto texts = store->multi_get(keys_of("place", peers), time_left(deadline));
  if (!texts) return texts.error();
  std::vector<Endpoint> places;
  for (const std::string& text : *texts)
    places.push_back(parse_endpoint(text, 0).value_or(Endpoint{}));
  {
    const auto links =
        doctor::connect_links(places, std::chrono::steady_clock::now() + kConnectLimit);
    for (std::size_t i = 0; i < peers.size(); ++i) {
      doctor::LinkReport& link = own.links.emplace_back();
      link.to = peers[i];
      if (!links[i]) link.error = places[i].host + ": " + links[i].error().what();
    }
  }
  for (std::size_t i = 0; i < peers.size(); ++i)
    if (peers[i] == doctor::neighbour_of(node, nodes) && own.links[i].error.empty()) {
      measure(own.links[i], places[i], *token);
      own.links[i].interface_mtu = facts::mtu_at(address);
    }
  if (node == 0) {
    own.clock_us = 0;
  } else if (const auto first = store->get(key_of("place", 0), time_left(deadline))) {
    own.clock_us = clock_against(parse_endpoint(*first, 0).value_or(Endpoint{}), *token);
  }
  if (const auto said = store->set(key_of("report", node), std::string_view(doctor::encode(own)));
      !said)
    return said.error();
  std::vector<doctor::Check> checks;
  if (node == 0) {
    checks = judge_all(*store, nodes, deadline);
    (void)store->set("doctor/done", std::string_view("1"));
  } else {
    // The server stays until the others have tried it.
    (void)store->get("doctor/done", time_left(deadline));
  }
  return checks;
}

}  // namespace drun::ctl
