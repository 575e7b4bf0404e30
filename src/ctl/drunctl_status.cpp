#include "ctl/drunctl_status.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "base/log.hpp"
#include "cli/usage_error.hpp"
#include "ctl/drunctl_health.hpp"
#include "ctl/job_view.hpp"
#include "drun/store/errors.hpp"
#include "rendezvous/keys.hpp"
#include "status/agent_socket.hpp"

namespace drun::ctl {
namespace {

namespace control = store::control;
using status::AgentStatus;
using store::ControlQuery;
using store::Errc;
using Clock = std::chrono::steady_clock;

// A start changes a document for each node: what came meanwhile is shown at once.
constexpr std::chrono::milliseconds kBetweenViews{200};
constexpr std::chrono::milliseconds kAgentTimeout{2'000};
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
};

View view_of(const Documents& documents, bool json) {
  View view;
  for (const JobView& job : jobs_in(documents)) {
    view.empty = false;
    view.code = std::max(view.code, code_of(job.state));
    view.text += json ? to_json(job, on_terminal()) + "\n" : text_of(job);
  }
  return view;
}

int no_job(const CtlOptions& options, const Endpoint& endpoint) {
  log::error("there is no job{} at {}",
             options.words.empty() ? "" : " '" + escaped(options.words.front()) + "'",
             to_string(endpoint));
  return kGone;
}

std::string prefix_of(const std::optional<std::string>& job) {
  return job ? rendezvous::Keys(*job).prefix : std::string(rendezvous::kAllJobs);
}

// Shows the jobs again whenever something has changed, until the store or the reader goes.
class LiveView {
 public:
  LiveView(const CtlOptions& options, ControlQuery& query, std::uint64_t watch, Documents documents)
      : options_(options), query_(query), watch_(watch), documents_(std::move(documents)) {}

  int run(std::optional<Deadline> end) {
    query_.end_without_reader(STDOUT_FILENO);
    show();
    for (;;) {
      const auto now = Clock::now();
      if (end && now >= *end) return kTimeLimit;
      const auto next = changed_ ? shown_ + kBetweenViews : now + std::chrono::hours(24);
      const auto reply = query_.receive(watch_, end ? std::min(next, *end) : next);
      if (query_.has_no_reader()) throw NoReader();
      if (!reply && reply.error().code() != Errc::Timeout) return failed(reply.error());
      if (reply) take(*reply);
      if (changed_ && Clock::now() >= shown_ + kBetweenViews) show();
    }
  }

 private:
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
    const View view = view_of(documents_, options_.json);
    changed_ = false;
    shown_ = Clock::now();
    if (view.text == last_) return;
    last_ = view.text;
    const bool redraw = !options_.json && on_terminal();
    print(redraw ? kClearScreen + last_ : last_);
  }

  const CtlOptions& options_;
  ControlQuery& query_;
  const std::uint64_t watch_;
  Documents documents_;
  std::string last_;
  bool changed_ = false;
  Clock::time_point shown_;
};

int status_at(const CtlOptions& options, const Endpoint& endpoint,
              const std::optional<std::string>& job, Deadline deadline) {
  auto query = ControlQuery::open(followed(endpoint, deadline), deadline, options.retry);
  if (!query) return unreachable(query.error());
  auto watched = read_documents(*query, prefix_of(job), deadline);
  if (!watched) return failed(watched.error());
  if (options.live)
    return LiveView(options, *query, watched->watch, std::move(watched->documents))
        .run(options.timeout ? std::optional(deadline) : std::nullopt);
  const View view = view_of(watched->documents, options.json);
  if (view.empty) return no_job(options, endpoint);
  print(view.text);
  return view.code;
}

int code_of(const AgentStatus& status) {
  using enum status::Phase;
  return status.phase == Running || status.phase == Starting ? kOk : kNotRunning;
}

// Of the jobs that have an agent of this user on this host.
int status_of_host(const CtlOptions& options, const std::optional<std::string>& job,
                   Deadline deadline) {
  int code = -1;
  std::multimap<std::pair<std::string, int>, AgentStatus> alone;  // by job and rank
  std::set<std::pair<std::string, std::string>> places;           // endpoint and job
  const auto limit = std::min(deadline, Clock::now() + kAgentTimeout);
  for (const auto& socket : status::find_sockets(job)) {
    // One that keeps us waiting says nothing of those after it.
    const auto status = ask_status(socket, std::max(limit, Clock::now() + kLeastForAgent));
    if (!status) {
      if (is_gone(status.error())) continue;
      log::warning("{}", status.error().what());
      code = std::max(code, kTimeLimit);
    } else if (status->endpoint.empty()) {
      alone.emplace(std::pair(status->job, status->first_rank), *status);
    } else {
      places.emplace(status->endpoint, status->job);
    }
  }
  if (options.live && places.size() + alone.size() > 1)
    throw cli::UsageError("--watch shows one store: name it with --endpoint");
  if (options.live && !alone.empty())
    throw cli::UsageError("--watch needs a store; this job is one node's alone");
  for (const auto& [place, status] : alone) {
    print((options.json ? to_json(status, on_terminal()) : health_line(status)) + "\n");
    code = std::max(code, code_of(status));
  }
  for (const auto& [place, id] : places) {
    const auto endpoint = parse_endpoint(place, 0);
    if (endpoint) code = std::max(code, status_at(options, *endpoint, id, deadline));
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
