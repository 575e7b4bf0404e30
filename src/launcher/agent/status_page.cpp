#include "launcher/agent/status_page.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/deadline.hpp"
#include "base/log.hpp"
#include "jobs/metrics.hpp"
#include "launcher/page/page_html.hpp"

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
constexpr std::string_view kMetrics = "metrics";
constexpr std::string_view kOpenMetrics = "open-metrics";
constexpr std::string_view kRanks = " ranks";

HttpAnswer answer_for(std::string_view topic, const std::optional<jobs::JobView>& job,
                      const status::AgentStatus& own) {
  HttpAnswer answer;
  if (topic == kJson) {
    if (!job) return plain_answer(503, "the job's store gives no answer");
    answer.type = "application/json";
    answer.body = share(to_json(*job, false) + "\n");
    return answer;
  }
  const auto format =
      topic.starts_with(kOpenMetrics) ? MetricsFormat::OpenMetrics : MetricsFormat::Prometheus;
  answer.type = jobs::content_type(format);
  answer.body = share(
      jobs::metrics_text(metrics_of(own), job ? &*job : nullptr, topic.ends_with(kRanks), format));
  return answer;
}

}  // namespace

StatusPage::StatusPage(asio::io_context& io, const Options& options, const std::string& host_name,
                       std::function<status::AgentStatus()> own)
    : options_(options),
      host_name_(host_name),
      own_(std::move(own)),
      watch_(options.run_id),
      server_(io, options.status_socket.empty() ? host_name : "",
              [this](const HttpRequest& request, const PageServer::Answer& answer) {
                serve(request, answer);
              }),
      desk_(io, [] {}),
      timer_(io, [this] { on_time(); }) {}

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
      return log::warning("no status page: cannot {}", sockets.error().what());
    listen_again_ = Clock::now() + kBetweenTries;
    return arm_timer();
  }
  listens_ = true;
  log::info("the job's status is at {}", sockets->place);
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
  const std::string_view ranks = has_part(request.query, "ranks=1") ? kRanks : "";
  if (request.path == "/") {
    HttpAnswer page;
    page.type = "text/html; charset=utf-8";
    page.body = share(std::string(page_html()));
    return answer(std::move(page));
  }
  if (request.path == "/status.json") return ask(std::string(kJson), answer);
  if (request.path == "/metrics") {
    const bool open = prefers_open_metrics(request.accept);
    return ask(std::string(open ? kOpenMetrics : kMetrics).append(ranks), answer);
  }
  if (request.path == "/healthz") return answer(plain_answer(200, "ok"));
  if (request.path == "/readyz") {
    const auto phase = own_().phase;
    return answer(plain_answer(phase == status::Phase::Running ? 200 : 503, name_of(phase)));
  }
  answer(plain_answer(404, "there are /, /status.json, /metrics, /healthz and /readyz"));
}

void StatusPage::ask(std::string topic, const PageServer::Answer& answer) {
  const auto now = Clock::now();
  watch_until_ = now + kWatchOn;
  watch_.begin();
  if (!no_longer_) no_longer_ = now + kForSnapshot;
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
  if (waiting_.empty()) return;
  if (watch_.settled() || now >= no_longer_) make(std::exchange(waiting_, {}));
}

void StatusPage::make(std::vector<Request> requests) {
  making_ = true;
  std::vector<std::string> topics;
  for (const auto& request : requests)
    if (std::find(topics.begin(), topics.end(), request.topic) == topics.end())
      topics.push_back(request.topic);
  const auto* known = watch_.documents();
  std::function<std::vector<HttpAnswer>()> work =
      [topics, own = own_(), documents = known != nullptr ? *known : jobs::Documents()] {
        const auto job = job_of(documents, own);
        std::vector<HttpAnswer> answers;
        for (const auto& topic : topics)
          answers.push_back(answer_for(topic, job, own));
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
