#include "ctl/drunctl_status.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/unix_time.hpp"
#include "cli/usage_error.hpp"
#include "ctl/drunctl_health.hpp"
#include "ctl/job_key.hpp"
#include "ctl/live_status.hpp"
#include "ctl/status_view.hpp"
#include "status/agent_socket.hpp"

namespace drun::ctl {
namespace {

namespace control = store::control;
using status::AgentStatus;
using store::ControlQuery;

constexpr std::chrono::milliseconds kAgentTimeout{2'000};
// For one that asks etcd first.
constexpr std::chrono::milliseconds kJobTimeout{5'000};
constexpr std::chrono::milliseconds kUsageTimeout{2'000};
constexpr std::size_t kLongestJob = std::size_t{256} << 20;

Shown shown_now() {
  return {on_terminal(), unix_ms()};
}

int no_job(const CtlOptions& options, const Endpoint& endpoint) {
  log::error("there is no job{} at {}", named(options), to_string(endpoint));
  return kGone;
}

// Empty: the store does not say.
std::string load_of(ControlQuery& query, const Endpoint& place, Deadline deadline) {
  const auto request = query.send(control::Stats{}, deadline);
  if (!request) return "";
  const auto reply = query.receive(*request, deadline);
  const auto* counters = reply ? std::get_if<control::Counters>(&*reply) : nullptr;
  return counters == nullptr ? "" : load_line(*counters, place);
}

// A job that has left a store.
struct GoneOn {
  Endpoint place;
  Documents documents;
};

// A job without agents at this store may go on at one of its successors: to its agents this store
// was lost for a while.
std::optional<GoneOn> gone_on(const jobs::JobView& job, const CtlOptions& options,
                              Deadline deadline) {
  if (job.state != jobs::JobState::Abandoned) return std::nullopt;
  for (const auto& successor : job.round.successors) {
    const auto limit = std::min(deadline, Clock::now() + kPlaceLimit);
    const Endpoint place = followed({successor.address, successor.port}, limit, options.tls);
    auto query = ControlQuery::open(place, limit, false, options.tls);
    if (!query) continue;
    auto found = read_documents(*query, prefix_of(job.id), limit);
    if (!found) continue;
    const auto jobs = jobs::jobs_in(found->documents);
    if (jobs.empty() || jobs.front().state == jobs::JobState::Abandoned) continue;
    log::info("job {} is not with its store any more; it goes on at {}", escaped(job.id),
              to_string(place));
    return GoneOn{place, std::move(found->documents)};
  }
  return std::nullopt;
}

int status_at(const CtlOptions& options, const Endpoint& endpoint,
              const std::optional<std::string>& job, Deadline deadline, Asides asides = {}) {
  const Endpoint place = followed(endpoint, deadline, options.tls);
  auto query = ControlQuery::open(place, deadline, options.retry, options.tls);
  if (!query) return unreachable(query.error());
  auto watched = read_documents(*query, prefix_of(job), deadline);
  if (!watched) return failed(watched.error());
  const auto jobs = jobs::jobs_in(watched->documents);
  for (const jobs::JobView& each : jobs) {
    auto found = gone_on(each, options, deadline);
    if (found && options.live && jobs.size() == 1)
      return status_at(options, found->place, job, deadline);
    if (!found) continue;
    // What it says counts; what is left here of other jobs stays.
    std::erase_if(watched->documents, [prefix = prefix_of(each.id)](const auto& document) {
      return document.first.starts_with(prefix);
    });
    watched->documents.merge(found->documents);
  }
  if (options.live)
    return watch_at(options, endpoint, job, std::move(*query), std::move(*watched),
                    options.timeout ? std::optional(deadline) : std::nullopt);
  asides.words = last_words(*query, prefix_of(job), deadline);
  const View view = view_of(watched->documents, options, shown_now(), asides);
  if (view.empty) return no_job(options, endpoint);
  const bool tells_load = options.command == "status" && !options.json;
  print(view.text + (tells_load ? load_of(*query, place, deadline) : ""));
  return view.code;
}

// The first of several where a store is, or else the first.
Endpoint first_there(const std::vector<Endpoint>& places, Deadline deadline,
                     const ControlQuery::Tls& tls) {
  for (const Endpoint& place : places)
    if (places.size() == 1 ||
        ControlQuery::open(place, std::min(deadline, Clock::now() + kPlaceLimit), false, tls))
      return place;
  return places.front();
}

// An agent of a job that no store of drun's knows.
struct Alone {
  std::string socket;
  AgentStatus status;
  Asides asides;
};

Result<Documents> documents_of(const Alone& agent, Deadline deadline) {
  const auto answer = status::ask(agent.socket, deadline, status::Question::Job, kLongestJob);
  if (!answer) return answer.error();
  return jobs::decode_documents(*answer);
}

// What it reads of its job; without any, what it says of itself.
View view_of(const Alone& agent, const CtlOptions& options, const Shown& shown, Deadline deadline) {
  const auto documents = documents_of(agent, deadline);
  if (View view = documents ? view_of(*documents, options, shown, agent.asides) : View();
      !view.empty)
    return view;
  return view_of(agent.status, options, shown);
}

// What the workers of an agent have used; nullopt: it has none, or does not say.
std::optional<jobs::NodeUsage> usage_at(const std::string& socket, const AgentStatus& status,
                                        const CtlOptions& options, Deadline deadline) {
  if (status.round == 0 || options.live || options.command != "status") return std::nullopt;
  const auto answer = status::ask(socket, std::min(deadline, Clock::now() + kUsageTimeout),
                                  status::Question::Usage, kLongestJob);
  if (!answer) return std::nullopt;
  const auto usage = jobs::decode_usage(*answer);
  return usage ? std::optional(*usage) : std::nullopt;
}

// Of the jobs that have an agent of this user on this host.
int status_of_host(const CtlOptions& options, const std::optional<std::string>& job,
                   Deadline deadline) {
  int code = -1;
  std::multimap<std::pair<std::string, std::string>, Alone> alone;  // by job and where it meets
  std::map<std::pair<std::string, std::string>, Asides> places;     // by endpoint and job
  const auto limit = std::min(deadline, Clock::now() + kAgentTimeout);
  for (const auto& socket : status::find_sockets(job)) {
    // One that keeps us waiting says nothing of those after it.
    const auto status = ask_status(socket, std::max(limit, Clock::now() + kLeastForAgent));
    if (!status) {
      if (is_gone(status.error())) continue;
      log::warning("{}", status.error().what());
      code = std::max(code, kTimeLimit);
      continue;
    }
    Asides* asides = nullptr;
    if (places_of(status->endpoint).empty()) {
      // Of several of one job at etcd one is enough to tell of it.
      const std::pair key(status->job, status->endpoint);
      auto found = status->endpoint.empty() ? alone.end() : alone.find(key);
      if (found == alone.end()) found = alone.emplace(key, Alone{socket, *status, {}});
      asides = &found->second.asides;
    } else {
      asides = &places[{status->store.empty() ? status->endpoint : status->store, status->job}];
    }
    if (asides->collective.empty()) asides->collective = status->collective;
    if (auto own = usage_at(socket, *status, options, deadline))
      asides->usage.push_back(std::move(*own));
  }
  if (options.live && places.size() + alone.size() > 1)
    throw cli::UsageError("--watch shows one store: name it with --endpoint");
  if (options.live && !alone.empty())
    throw cli::UsageError("--watch needs a store of drun's; this job has none");
  for (const auto& [place, agent] : alone) {
    const View view =
        view_of(agent, options, shown_now(), std::min(deadline, Clock::now() + kJobTimeout));
    print(view.text);
    code = std::max(code, view.code);
  }
  for (const auto& [place, asides] : places) {
    const auto& [endpoint, id] = place;
    CtlOptions own = options;
    if (own.tls == nullptr) own.tls = made_key(id, endpoint, deadline);
    code = std::max(code, status_at(own, first_there(places_of(endpoint), deadline, own.tls), id,
                                    deadline, asides));
  }
  if (code >= 0) return code;
  log::error("no drun of this user runs here{}: name the store with --endpoint",
             job ? " with job " + escaped(*job) : "");
  return kGone;
}

}  // namespace

int status(const CtlOptions& options, Deadline deadline) {
  const auto job = options.words.empty() ? std::nullopt : std::optional(options.words.front());
  return options.endpoint_given ? status_at(options, options.endpoint, job, deadline)
                                : status_of_host(options, job, deadline);
}

}  // namespace drun::ctl
