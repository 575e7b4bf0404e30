#include "launcher/views/status_page.hpp"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/addresses.hpp"
#include "base/deadline.hpp"
#include "base/log.hpp"
#include "base/unix_time.hpp"
#include "jobs/metrics.hpp"
#include "launcher/page/page_text.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using jobs::MetricsFormat;

constexpr std::chrono::milliseconds kKeep{1'000};          // an answer
constexpr std::chrono::milliseconds kForSnapshot{3'000};   // a store that does not answer
constexpr std::chrono::milliseconds kWatchOn{30'000};      // after the last request
constexpr std::chrono::milliseconds kBetweenTries{1'000};  // of the local agents, for one port
constexpr std::chrono::milliseconds kForRemoval{2'000};

constexpr std::string_view kJson = "json";
constexpr std::string_view kEvents = "events";
constexpr std::string_view kTrace = "trace";
constexpr std::string_view kMetrics = "metrics";
constexpr std::string_view kOpenMetrics = "open-metrics";
constexpr std::string_view kRanks = " ranks";

// Who asks for what this agent has seen itself does not wait for the store.
bool is_of_job(std::string_view topic) {
  return topic != kEvents && topic != kTrace;
}

HttpAnswer json_answer(std::string text) {
  return {200, "application/json", share(std::move(text))};
}

// What the answers are made of: copies, for another thread.
struct Known {
  status::AgentStatus own;
  jobs::Documents documents;
  EventMemory events;
};

HttpAnswer answer_for(std::string_view topic, const Known& known,
                      const std::optional<jobs::JobView>& job) {
  if (topic == kEvents) return json_answer(events_json(known.events));
  if (topic == kTrace) return json_answer(events_trace(known.events));
  if (topic == kJson) {
    if (!job) return plain_answer(503, "the job's store gives no answer");
    return json_answer(to_json(*job, false, unix_ms()) + "\n");
  }
  HttpAnswer answer;
  const auto format =
      topic.starts_with(kOpenMetrics) ? MetricsFormat::OpenMetrics : MetricsFormat::Prometheus;
  answer.type = jobs::content_type(format);
  answer.body = share(jobs::metrics_text(metrics_of(known.own), job ? &*job : nullptr,
                                         topic.ends_with(kRanks), format));
  return answer;
}

}  // namespace

StatusPage::StatusPage(asio::io_context& io, const Options& options, const std::string& host_name,
                       std::function<status::AgentStatus()> own, const EventMemory& events,
                       PageStacks::Take stacks)
    : options_(options),
      host_name_(host_name),
      own_(std::move(own)),
      events_(events),
      watch_(options.run_id),
      server_(io, host_name,
              [this](const HttpRequest& request, const PageServer::Answer& answer) {
                serve(request, answer);
              }),
      desk_(io, [] {}),
      timer_(io, [this] { on_time(); }) {
  if (options.token) stacks_.emplace(io, *options.token, std::move(stacks));
}

StatusPage::~StatusPage() {
  close();
  if (!listens_ || options_.status_socket.empty()) return;
  (void)ask_files<bool>(kForRemoval, [path = options_.status_socket] {
    about_to("remove " + path);
    remove_socket(path);
    return true;
  });
}

void StatusPage::open() {
  const bool any_port = options_.status_endpoint && options_.status_endpoint->port == 0;
  if (options_.local_node <= 0) return try_to_listen();
  // One of the agents on this machine has the place; if that one goes, another takes it.
  if (any_port) return;
  listen_again_ = Clock::now() + kBetweenTries;
  arm_timer();
}

void StatusPage::close() {
  closed_ = true;
  server_.close();
  desk_.cancel();
  if (stacks_) stacks_->cancel();
  timer_.set(std::nullopt);
  waiting_.clear();
  watch_.set_link(nullptr);
}

void StatusPage::try_to_listen() {
  std::function<Result<PageSockets>()> work;
  if (options_.status_endpoint) {
    work = [address = *options_.status_endpoint] { return listen_at(address); };
  } else {
    work = [path = options_.status_socket] {
      about_to("listen at " + path);
      return listen_at(path);
    };
  }
  desk_.ask<Result<PageSockets>>(
      kFilesLimit, std::move(work), [this](Result<Result<PageSockets>> answer) {
        on_listening(answer ? std::move(*answer) : Result<PageSockets>(answer.error()));
      });
}

void StatusPage::on_listening(Result<PageSockets> sockets) {
  if (closed_) return;
  if (!sockets) {
    if (options_.local_node < 0 || sockets.error().code() != std::errc::address_in_use)
      return log::warning(
          "--status-listen: cannot {}; the job runs without a status page: "
          "give another port, or an address of this machine",
          sockets.error().what());
    listen_again_ = Clock::now() + kBetweenTries;
    return arm_timer();
  }
  listens_ = true;
  log::info("the job's status is at {}", sockets->place);
  if (stacks_ && options_.status_endpoint && !is_loopback_address(options_.status_endpoint->host))
    log::warning(
        "--status-listen {}: who can read the network reads a token that is sent there; "
        "safe is a PORT alone, and ssh -L to it",
        to_string(*options_.status_endpoint));
  server_.listen(std::move(sockets->sockets));
}

void StatusPage::set_link(rendezvous::KeyValue* link) {
  watch_.set_link(link);
  advance();
}

bool StatusPage::on_event(const rendezvous::KeyValueEvent& event) {
  const bool taken = watch_.on_event(event);
  if (taken) advance();
  return taken;
}

void StatusPage::serve(const HttpRequest& request, const PageServer::Answer& answer) {
  if (stacks_ && request.path == PageStacks::kPath)
    return stacks_->serve(request, answer, Clock::now());
  if (request.post) return answer(refusal(405));
  const std::string_view ranks = has_part(request.query, "ranks=1") ? kRanks : "";
  if (request.path == "/") {
    HttpAnswer page;
    page.type = "text/html; charset=utf-8";
    page.body = share(page_text(stacks_.has_value()));
    return answer(std::move(page));
  }
  if (request.path == "/status.json") return ask(std::string(kJson), answer);
  if (request.path == "/events.json") return ask(std::string(kEvents), answer);
  if (request.path == "/trace.json") return ask(std::string(kTrace), answer);
  if (request.path == "/metrics") {
    const bool open = prefers_open_metrics(request.accept);
    return ask(std::string(open ? kOpenMetrics : kMetrics).append(ranks), answer);
  }
  if (request.path == "/healthz") return answer(plain_answer(200, "ok"));
  if (request.path == "/readyz") {
    const auto phase = own_().phase;
    return answer(plain_answer(phase == status::Phase::Running ? 200 : 503, name_of(phase)));
  }
  answer(plain_answer(
      404, "there are /, /status.json, /events.json, /trace.json, /metrics, /healthz and /readyz"));
}

void StatusPage::ask(std::string topic, const PageServer::Answer& answer) {
  const auto now = Clock::now();
  watch_until_ = now + kWatchOn;
  if (is_of_job(topic)) {
    watch_.begin();
    if (!no_longer_) no_longer_ = now + kForSnapshot;
  }
  waiting_.push_back({std::move(topic), answer});
  advance();
  arm_timer();
}

void StatusPage::advance() {
  if (making_ || closed_ || waiting_.empty()) return;
  const auto now = Clock::now();
  std::erase_if(kept_, [now](const auto& each) { return now - each.second.made >= kKeep; });
  std::erase_if(waiting_, [this](const Request& request) {
    const auto kept = kept_.find(request.topic);
    if (kept == kept_.end()) return false;
    request.answer(kept->second.answer);
    return true;
  });
  if (auto due = take_due(now); !due.empty()) make(std::move(due));
}

std::vector<StatusPage::Request> StatusPage::take_due(Time now) {
  if (watch_.settled() || (no_longer_ && now >= *no_longer_)) return std::exchange(waiting_, {});
  const auto first = std::stable_partition(waiting_.begin(), waiting_.end(),
                                           [](const auto& each) { return is_of_job(each.topic); });
  std::vector<Request> due(std::make_move_iterator(first), std::make_move_iterator(waiting_.end()));
  waiting_.erase(first, waiting_.end());
  return due;
}

void StatusPage::make(std::vector<Request> requests) {
  making_ = true;
  std::vector<std::string> topics;
  for (const auto& request : requests)
    if (std::find(topics.begin(), topics.end(), request.topic) == topics.end())
      topics.push_back(request.topic);
  Known known;
  known.own = own_();
  if (const auto* documents = watch_.documents();
      documents != nullptr && std::any_of(topics.begin(), topics.end(), is_of_job))
    known.documents = *documents;
  if (!std::all_of(topics.begin(), topics.end(), is_of_job)) known.events = events_;
  std::function<std::vector<HttpAnswer>()> work = [topics, known = std::move(known)] {
    const auto job = job_of(known.documents, known.own);
    std::vector<HttpAnswer> answers;
    for (const auto& topic : topics)
      answers.push_back(answer_for(topic, known, job));
    return answers;
  };
  desk_.ask<std::vector<HttpAnswer>>(
      kFilesLimit, std::move(work),
      [this, topics, requests = std::move(requests)](Result<std::vector<HttpAnswer>> made) {
        making_ = false;
        if (closed_) return;
        const auto now = Clock::now();
        for (std::size_t i = 0; made && i < topics.size(); ++i)
          kept_.insert_or_assign(topics[i], Kept{now, std::move((*made)[i])});
        for (const auto& request : requests) {
          const auto kept = kept_.find(request.topic);
          request.answer(kept != kept_.end() ? kept->second.answer
                                             : plain_answer(503, "no answer in time"));
        }
        advance();
      });
}

void StatusPage::on_time() {
  const auto now = Clock::now();
  if (listen_again_ && now >= *listen_again_) {
    listen_again_.reset();
    try_to_listen();
  }
  if (watch_until_ && now >= *watch_until_) {
    watch_until_.reset();
    no_longer_.reset();
    kept_.clear();
    watch_.end();
  }
  advance();
  arm_timer();
}

void StatusPage::arm_timer() {
  EarliestDeadline due;
  due.include(listen_again_);
  due.include(watch_until_);
  if (!waiting_.empty() && !making_) due.include(no_longer_);
  timer_.set(due.time());
}

}  // namespace drun::launcher
