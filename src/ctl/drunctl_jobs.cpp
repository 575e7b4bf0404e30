#include "ctl/drunctl_jobs.hpp"

#include <string_view>
#include <utility>
#include <variant>

#include "drun/store/errors.hpp"
#include "rendezvous/documents.hpp"
#include "rendezvous/keys.hpp"

namespace drun::ctl {
namespace {

namespace control = store::control;
using store::ControlQuery;

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

}  // namespace

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
