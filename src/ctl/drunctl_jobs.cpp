#include "ctl/drunctl_jobs.hpp"

#include <array>
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

constexpr std::array<const char*, 5> kStates{"gathering", "preparing", "running", "stopping",
                                             "ended"};

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

void note(Job& job, std::string_view name, std::string_view value) {
  if (name.starts_with("member/")) {
    ++job.agents;
  } else if (name == "round") {
    const auto round = rendezvous::decode_round(value);
    if (!round) return;
    job.round = round->number;
    job.state = kStates.at(static_cast<std::size_t>(round->phase));
  } else if (name == "outcome") {
    const auto outcome = rendezvous::decode_outcome(value);
    if (outcome) job.exit_code = outcome->exit_code;
  }
}

}  // namespace

Result<std::vector<Job>> read_jobs(ControlQuery& query, Deadline deadline) {
  const auto reply = ask(query, control::Watch{rendezvous::kAllJobs, true}, deadline);
  if (!reply) return reply.error();
  const auto* snapshot = std::get_if<control::Snapshot>(&*reply);
  if (snapshot == nullptr) return unexpected();
  std::vector<Job> jobs;
  std::string_view last;
  for (const control::Entry& entry : snapshot->entries) {
    const std::string_view rest = entry.key.substr(rendezvous::kAllJobs.size());
    const auto slash = rest.find('/');
    if (slash == std::string_view::npos || !entry.value) continue;
    if (jobs.empty() || rest.substr(0, slash) != last) {
      last = rest.substr(0, slash);
      jobs.emplace_back().id = rendezvous::unescape_id(last);
    }
    note(jobs.back(), rest.substr(slash + 1), *entry.value);
  }
  for (Job& job : jobs) {
    if (job.exit_code)
      job.state = "ended";
    else if (job.agents == 0)
      job.state = "abandoned";
  }
  return jobs;
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
