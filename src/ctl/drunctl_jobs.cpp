#include "ctl/drunctl_jobs.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "base/log.hpp"
#include "drun/store/errors.hpp"
#include "rendezvous/documents.hpp"
#include "rendezvous/keys.hpp"

namespace drun::ctl {
namespace {

namespace control = store::control;
using store::ControlQuery;

constexpr std::chrono::milliseconds kSignpostLimit{1'000};
constexpr int kMostHops = 4;

// The answer to a request; its views live until the next one.
Result<control::Reply> ask(ControlQuery& query, const control::Request& request,
                           Deadline deadline) {
  const auto number = query.send(request, deadline);
  if (!number) return number.error();
  return query.receive(*number, deadline);
}

Error unexpected() {
  return {store::Errc::Malformed, "the store gave an unexpected answer"};
}

// nullopt: it is there, or nobody says anything else.
std::optional<Endpoint> moved_to(const Endpoint& place, Deadline deadline,
                                 const ControlQuery::Tls& tls) {
  const auto limit = std::min(deadline, std::chrono::steady_clock::now() + kSignpostLimit);
  auto query = ControlQuery::open(place, limit, false, tls);
  if (!query) return std::nullopt;
  const auto reply = ask(*query, control::Find{}, limit);
  const auto* moved = reply ? std::get_if<control::Moved>(&*reply) : nullptr;
  if (moved == nullptr || moved->generation == 0 || moved->host.empty()) return std::nullopt;
  return Endpoint{std::string(moved->host), moved->port};
}

}  // namespace

Endpoint followed(const Endpoint& endpoint, Deadline deadline, const ControlQuery::Tls& tls) {
  Endpoint place = endpoint;
  for (int hop = 0; hop < kMostHops; ++hop) {
    const auto moved = moved_to(place, deadline, tls);
    if (!moved) break;
    place = *moved;
  }
  if (place != endpoint) log::info("the store is now at {}", to_string(place));
  return place;
}

Result<WatchedDocuments> read_documents(ControlQuery& query, const std::string& prefix,
                                        Deadline deadline) {
  const auto watch = query.send(control::Watch{prefix, true}, deadline);
  if (!watch) return watch.error();
  const auto reply = query.receive(*watch, deadline);
  if (!reply) return reply.error();
  const auto* snapshot = std::get_if<control::Snapshot>(&*reply);
  if (snapshot == nullptr) return unexpected();
  WatchedDocuments result{*watch, {}};
  for (const control::Entry& entry : snapshot->entries)
    if (entry.value) result.documents.emplace(entry.key, *entry.value);
  return result;
}

jobs::LastWords last_words(ControlQuery& query, const std::string& prefix, Deadline deadline) {
  jobs::LastWords words;
  const auto reply = ask(query, control::LastWords{prefix}, deadline);
  const auto* heard = reply ? std::get_if<control::Heard>(&*reply) : nullptr;
  if (heard == nullptr) return words;
  for (const control::Heard::Entry& entry : heard->entries)
    words.emplace(entry.key, jobs::LastWord{entry.age_ms, entry.lease_ms});
  return words;
}

Result<Deletion> delete_job(ControlQuery& query, const std::string& id, Deadline deadline) {
  const rendezvous::Keys keys(id);
  const auto found = ask(query, control::Watch{keys.prefix, true}, deadline);
  if (!found) return found.error();
  const auto* snapshot = std::get_if<control::Snapshot>(&*found);
  if (snapshot == nullptr) return unexpected();
  if (snapshot->entries.empty()) return Deletion::NoSuchJob;
  std::vector<std::string> names;
  std::optional<std::string> round;
  for (const control::Entry& entry : snapshot->entries) {
    if (entry.key.starts_with(keys.members)) return Deletion::HasAgents;
    if (entry.key == keys.round && entry.value) round = std::string(*entry.value);
    names.emplace_back(entry.key);
  }
  control::Transaction all;
  all.guards.push_back({keys.leader, std::nullopt});
  all.guards.push_back({keys.round, round ? control::OptionalBytes(*round) : std::nullopt});
  for (const std::string& name : names)
    all.writes.push_back({name, std::nullopt, false});
  const auto deleted = ask(query, std::move(all), deadline);
  if (!deleted) return deleted.error();
  if (std::holds_alternative<control::Refused>(*deleted)) return Deletion::HasAgents;
  if (!std::holds_alternative<control::Committed>(*deleted)) return unexpected();
  return Deletion::Done;
}

}  // namespace drun::ctl
