#include "ctl/drunctl_status.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/unix_time.hpp"
#include "cli/usage_error.hpp"
#include "ctl/drunctl_health.hpp"
#include "drun/store/errors.hpp"
#include "jobs/history_view.hpp"
#include "jobs/job_view.hpp"
#include "rendezvous/keys.hpp"
#include "status/agent_socket.hpp"

namespace drun::ctl {
namespace {

namespace control = store::control;
using jobs::JobState;
using jobs::JobView;
using status::AgentStatus;
using store::ControlQuery;
using store::Errc;
using Clock = std::chrono::steady_clock;

// A start changes a document for each node: what came meanwhile is shown at once.
constexpr std::chrono::milliseconds kBetweenViews{200};
// How long it has been so is shown anew on a terminal.
constexpr std::chrono::milliseconds kTick{1'000};
constexpr std::chrono::milliseconds kLongTick{86'400'000};
// A store that is lost: how long it is sought, at one place, and in all.
constexpr std::chrono::milliseconds kPlaceLimit{2'000};
constexpr std::chrono::milliseconds kBetweenSearches{200};
constexpr std::chrono::milliseconds kSearchLimit{60'000};
constexpr std::chrono::milliseconds kAgentTimeout{2'000};
// For one that asks etcd first.
constexpr std::chrono::milliseconds kJobTimeout{5'000};
constexpr std::chrono::milliseconds kUsageTimeout{2'000};
constexpr std::size_t kLongestJob = std::size_t{256} << 20;
constexpr const char* kClearScreen = "\x1b[H\x1b[J";

int code_of(JobState state) {
  switch (state) {
    case JobState::Running:
    case JobState::Succeeded:
      return kOk;
    case JobState::Failed:
      return kNo;
    case JobState::Gathering:
    case JobState::Stopping:
      return kNotRunning;
    case JobState::Abandoned:
      break;
  }
  return kGone;
}

// What is seen of a store's jobs: text, and the exit code, of several the highest.
struct View {
  std::string text;
  int code = kOk;
  bool empty = true;
  bool ended = true;  // all of them
};

// What was asked for beside the documents.
struct Asides {
  jobs::LastWords words;
  // Of the job: what its ranks on this host have used, and what the agents here know of
  // collectives.
  std::vector<jobs::NodeUsage> usage;
  std::string collective;
};

std::string json_of(const JobView& job, bool past) {
  const status::JobStatus status = status_of(job, unix_ms());
  return past ? history_json(status, on_terminal()) : to_json(status, on_terminal());
}

View view_of(const Documents& documents, const CtlOptions& options, const Asides& asides = {}) {
  const bool past = options.command == "history";
  View view;
  for (JobView& job : jobs::jobs_in(documents, asides.words)) {
    if (!job.outcome) {
      job.usage = asides.usage;
      job.collective = asides.collective;
    }
    view.empty = false;
    view.ended = view.ended && job.outcome.has_value();
    view.code = std::max(view.code, code_of(job.state));
    if (options.json)
      view.text += json_of(job, past) + "\n";
    else
      view.text += past ? history_text(job, unix_ms()) : jobs::text_of(job, unix_ms());
  }
  // To ask what was is no question of how it is.
  if (past) view.code = kOk;
  return view;
}

// " 'ID'", if one was asked for.
std::string named(const CtlOptions& options) {
  return options.words.empty() ? "" : " '" + escaped(options.words.front()) + "'";
}

int no_job(const CtlOptions& options, const Endpoint& endpoint) {
  log::error("there is no job{} at {}", named(options), to_string(endpoint));
  return kGone;
}

std::string prefix_of(const std::optional<std::string>& job) {
  return job ? rendezvous::Keys(*job).prefix : std::string(rendezvous::kAllJobs);
}

// Shows the jobs again whenever something has changed, until they have ended or the reader goes.
class LiveView {
 public:
  explicit LiveView(const CtlOptions& options)
      : options_(options), redraws_(!options.json && on_terminal()) {}

  // Nullopt: the store has gone, and the jobs have not ended.
  std::optional<int> run(ControlQuery& query, WatchedDocuments watched,
                         std::optional<Deadline> end) {
    query.end_without_reader(STDOUT_FILENO);
    documents_ = std::move(watched.documents);
    show();
    while (!ended_) {
      const auto now = Clock::now();
      if (end && now >= *end) return at_end();
      const auto next = changed_ ? shown_ + kBetweenViews : now + (redraws_ ? kTick : kLongTick);
      const auto reply = query.receive(watched.watch, end ? std::min(next, *end) : next);
      if (query.has_no_reader()) throw NoReader();
      if (!reply && reply.error().code() != Errc::Timeout) {
        if (changed_) show();
        return ended_ ? std::optional(code_) : std::nullopt;
      }
      if (reply) take(*reply);
      if ((changed_ || redraws_) && Clock::now() >= shown_ + kBetweenViews) show();
    }
    return code_;
  }

  // Where a store that has gone may be found again, beside `endpoint`.
  [[nodiscard]] std::vector<Endpoint> places(const Endpoint& endpoint) const {
    std::vector<Endpoint> result{endpoint};
    for (const JobView& job : jobs::jobs_in(documents_))
      for (const auto& successor : job.round.successors)
        result.push_back({successor.address, successor.port});
    return result;
  }

 private:
  [[nodiscard]] int at_end() const {
    if (last_.empty()) log::error("no job{} has come within --timeout", named(options_));
    return kTimeLimit;
  }
  void take(const control::Reply& reply) {
    const auto* changes = std::get_if<control::Changes>(&reply);
    if (changes == nullptr) return;
    for (const control::Entry& entry : changes->changes) {
      if (entry.value)
        documents_.insert_or_assign(std::string(entry.key), std::string(*entry.value));
      else
        documents_.erase(std::string(entry.key));
    }
    changed_ = true;
  }
  void show() {
    const View view = view_of(documents_, options_);
    changed_ = false;
    shown_ = Clock::now();
    code_ = view.code;
    ended_ = view.ended && !view.empty;
    // A store that succeeds another hears of the jobs again in a moment.
    if (view.empty) return;
    // The last one is not drawn over, and is to be read whole.
    std::string text = redraws_ && !ended_ ? fitted(view.text, screen_size()) : view.text;
    if (text == last_) return;
    last_ = std::move(text);
    print(redraws_ ? kClearScreen + last_ : last_);
  }

  const CtlOptions& options_;
  const bool redraws_;
  Documents documents_;
  std::string last_;
  bool changed_ = false;
  bool ended_ = false;
  int code_ = kOk;
  Clock::time_point shown_;
};

// The first that answers, tried again and again until the deadline.
Result<ControlQuery> find_store(const std::vector<Endpoint>& places, Deadline deadline,
                                const ControlQuery::Tls& tls) {
  for (;;) {
    Error last;
    for (const Endpoint& place : places) {
      const auto limit = std::min(deadline, Clock::now() + kPlaceLimit);
      auto query = ControlQuery::open(followed(place, limit, tls), limit, false, tls);
      if (query) return query;
      last = query.error();
    }
    if (Clock::now() + kBetweenSearches >= deadline) return last;
    std::this_thread::sleep_for(kBetweenSearches);
  }
}

// Follows a store that moves. It goes with the job, whose end was shown by then; for a store that
// is lost there may be another.
int watch_at(const CtlOptions& options, const Endpoint& endpoint,
             const std::optional<std::string>& job, ControlQuery query, WatchedDocuments watched,
             std::optional<Deadline> end) {
  LiveView view(options);
  if (view_of(watched.documents, options).empty)
    log::info("there is no job{} at {} yet; waiting for it", named(options), to_string(endpoint));
  for (;;) {
    if (const auto code = view.run(query, std::move(watched), end)) return *code;
    const auto limit = std::min(end.value_or(Deadline::max()), Clock::now() + kSearchLimit);
    for (;;) {
      auto next = find_store(view.places(endpoint), limit, options.tls);
      if (!next) return unreachable(next.error());
      auto documents = read_documents(*next, prefix_of(job), limit);
      if (!documents && Clock::now() < limit) continue;
      if (!documents) return failed(documents.error());
      query = std::move(*next);
      watched = std::move(*documents);
      break;
    }
  }
}

// "store 10.0.0.1:29400: 12 keys, 3 sessions, 5 connections, 14382 bytes"; empty: it does not say.
std::string load_of(ControlQuery& query, const Endpoint& place, Deadline deadline) {
  const auto request = query.send(control::Stats{}, deadline);
  if (!request) return "";
  const auto reply = query.receive(*request, deadline);
  const auto* counters = reply ? std::get_if<control::Counters>(&*reply) : nullptr;
  if (counters == nullptr) return "";
  std::string text;
  for (const std::string_view wanted : {"keys", "sessions", "connections", "bytes"})
    for (const auto& [name, value] : counters->counters)
      if (name == wanted)
        text += (text.empty() ? "" : ", ") + std::to_string(value) + " " + std::string(wanted);
  return "store " + to_string(place) + ": " + text + "\n";
}

int status_at(const CtlOptions& options, const Endpoint& endpoint,
              const std::optional<std::string>& job, Deadline deadline, Asides asides = {}) {
  const Endpoint place = followed(endpoint, deadline, options.tls);
  auto query = ControlQuery::open(place, deadline, options.retry, options.tls);
  if (!query) return unreachable(query.error());
  auto watched = read_documents(*query, prefix_of(job), deadline);
  if (!watched) return failed(watched.error());
  if (options.live)
    return watch_at(options, endpoint, job, std::move(*query), std::move(*watched),
                    options.timeout ? std::optional(deadline) : std::nullopt);
  asides.words = last_words(*query, prefix_of(job), deadline);
  const View view = view_of(watched->documents, options, asides);
  if (view.empty) return no_job(options, endpoint);
  const bool tells_load = options.command == "status" && !options.json;
  print(view.text + (tells_load ? load_of(*query, place, deadline) : ""));
  return view.code;
}

int code_of(const AgentStatus& status) {
  using enum status::Phase;
  return status.phase == Running || status.phase == Starting ? kOk : kNotRunning;
}

// Of what an agent says, "node0:29400,node1:29400"; empty: no store of drun's is there, as with
// etcd.
std::vector<Endpoint> places_of(std::string_view meeting_place) {
  std::vector<Endpoint> result;
  if (meeting_place.find(' ') != std::string_view::npos) return result;
  while (!meeting_place.empty())
    if (const auto endpoint = parse_endpoint(take_until(meeting_place, ','), 0))
      result.push_back(*endpoint);
  return result;
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
View view_of(const Alone& agent, const CtlOptions& options, Deadline deadline) {
  const auto documents = documents_of(agent, deadline);
  if (View view = documents ? view_of(*documents, options, agent.asides) : View(); !view.empty)
    return view;
  View view;
  view.empty = false;
  view.code = options.command == "history" ? kOk : code_of(agent.status);
  view.text =
      (options.json ? to_json(agent.status, on_terminal()) : health_line(agent.status)) + "\n";
  return view;
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
    const View view = view_of(agent, options, std::min(deadline, Clock::now() + kJobTimeout));
    print(view.text);
    code = std::max(code, view.code);
  }
  for (const auto& [place, asides] : places) {
    const auto& [endpoint, id] = place;
    code =
        std::max(code, status_at(options, first_there(places_of(endpoint), deadline, options.tls),
                                 id, deadline, asides));
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
