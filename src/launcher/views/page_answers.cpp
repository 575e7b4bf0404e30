#include "launcher/views/page_answers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/deadline.hpp"
#include "base/json.hpp"
#include "base/unix_time.hpp"
#include "jobs/metrics.hpp"
#include "launcher/page/page_server.hpp"
#include "launcher/page/page_text.hpp"

namespace drun::launcher {
namespace {

using jobs::MetricsFormat;

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

// As this agent knows it: the job may go on without it.
const char* end_state(const rendezvous::Outcome& outcome) {
  if (outcome.leaves || outcome.end == rendezvous::End::Refused) return "left";
  if (outcome.end == rendezvous::End::StoreLost) return "lost";
  return outcome.exit_code == 0 ? "succeeded" : "failed";
}

// For who has seen the job run, and does not see it any more.
HttpAnswer end_answer(const rendezvous::Outcome& outcome) {
  const nlohmann::ordered_json end{{"ended", true},
                                   {"state", end_state(outcome)},
                                   {"exit_code", outcome.exit_code},
                                   {"text", outcome.text}};
  return json_answer(json_text(end) + "\n");
}

// What the answers are made of: copies, for another thread.
struct Known {
  status::AgentStatus own;
  jobs::Documents documents;
  EventMemory events;
  std::int64_t monotonic_ns = 0;  // now
};

HttpAnswer answer_for(std::string_view topic, const Known& known,
                      const std::optional<jobs::JobView>& job) {
  if (topic == kEvents) return json_answer(events_json(known.events));
  if (topic == kTrace) return json_answer(events_trace(known.events, known.monotonic_ns));
  if (topic == kJson) {
    if (!job) return plain_answer(503, "the job's store gives no answer");
    return json_answer(to_json(status_of(*job, unix_ms())) + "\n");
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

PageAnswers::PageAnswers(Parts parts) : parts_(std::move(parts)), watch_(parts_.run_id) {}

void PageAnswers::close() {
  closed_ = true;
  waiting_.clear();
  await_end_.clear();
  watch_.set_link(nullptr);
}

void PageAnswers::set_link(rendezvous::KeyValue* link) {
  watch_.set_link(link);
  advance();
}

bool PageAnswers::on_event(const rendezvous::KeyValueEvent& event) {
  const bool taken = watch_.on_event(event);
  if (taken) advance();
  return taken;
}

void PageAnswers::serve(const HttpRequest& request, const Answer& answer) {
  if (request.post) return answer(refusal(405));
  const std::string_view ranks = has_part(request.query, "ranks=1") ? kRanks : "";
  if (request.path == "/") {
    HttpAnswer page;
    page.type = "text/html; charset=utf-8";
    page.body = share(page_text(parts_.takes_stacks));
    return answer(std::move(page));
  }
  if (request.path == "/status.json") return ask(std::string(kJson), answer);
  if (request.path == "/events.json") return ask(std::string(kEvents), answer);
  if (request.path == "/trace.json") return ask(std::string(kTrace), answer);
  if (request.path == "/end.json") return await_end(answer);
  if (request.path == "/metrics") {
    const bool open = prefers_open_metrics(request.accept);
    return ask(std::string(open ? kOpenMetrics : kMetrics).append(ranks), answer);
  }
  if (request.path == "/healthz") return answer(plain_answer(200, "ok"));
  if (request.path == "/readyz") {
    const auto phase = parts_.own().phase;
    return answer(plain_answer(phase == status::Phase::Running ? 200 : 503, name_of(phase)));
  }
  answer(plain_answer(
      404,
      "there are /, /status.json, /end.json, /events.json, /trace.json, /metrics, /healthz and "
      "/readyz"));
}

void PageAnswers::await_end(const Answer& answer) {
  if (end_) return answer(*end_);
  // The server has no more callers: one that came first has gone, or gives its place to this one.
  if (await_end_.size() >= PageServer::kMostCallers) wait_no_longer();
  await_end_.push_back({parts_.clock() + kForEnd, answer});
}

// The first of them.
void PageAnswers::wait_no_longer() {
  const Answer answer = std::move(await_end_.front().answer);
  await_end_.pop_front();
  answer(json_answer("{}\n"));
}

void PageAnswers::tell_end(const rendezvous::Outcome& outcome) {
  end_ = end_answer(outcome);
  for (const Waiter& waiter : std::exchange(await_end_, {}))
    waiter.answer(*end_);
}

void PageAnswers::ask(std::string topic, const Answer& answer) {
  const auto now = parts_.clock();
  watch_until_ = now + kWatchOn;
  if (is_of_job(topic)) {
    watch_.begin();
    if (!no_longer_) no_longer_ = now + kForSnapshot;
  }
  waiting_.push_back({std::move(topic), answer});
  advance();
}

void PageAnswers::advance() {
  if (making_ || closed_ || waiting_.empty()) return;
  const auto now = parts_.clock();
  std::erase_if(kept_, [now](const auto& each) { return now - each.second.made >= kKeep; });
  std::erase_if(waiting_, [this](const Request& request) {
    const auto kept = kept_.find(request.topic);
    if (kept == kept_.end()) return false;
    request.answer(kept->second.answer);
    return true;
  });
  if (auto due = take_due(now); !due.empty()) make(std::move(due));
}

std::vector<PageAnswers::Request> PageAnswers::take_due(Time now) {
  if (watch_.settled() || (no_longer_ && now >= *no_longer_)) return std::exchange(waiting_, {});
  const auto first = std::stable_partition(waiting_.begin(), waiting_.end(),
                                           [](const auto& each) { return is_of_job(each.topic); });
  std::vector<Request> due(std::make_move_iterator(first), std::make_move_iterator(waiting_.end()));
  waiting_.erase(first, waiting_.end());
  return due;
}

void PageAnswers::make(std::vector<Request> requests) {
  making_ = true;
  std::vector<std::string> topics;
  for (const auto& request : requests)
    if (std::find(topics.begin(), topics.end(), request.topic) == topics.end())
      topics.push_back(request.topic);
  Known known;
  known.own = parts_.own();
  if (const auto* documents = watch_.documents();
      documents != nullptr && std::any_of(topics.begin(), topics.end(), is_of_job))
    known.documents = *documents;
  if (!std::all_of(topics.begin(), topics.end(), is_of_job)) known.events = parts_.events;
  known.monotonic_ns = std::chrono::nanoseconds(parts_.clock().time_since_epoch()).count();
  std::function<std::vector<HttpAnswer>()> work = [topics, known = std::move(known)] {
    const auto job = job_of(known.documents, known.own);
    std::vector<HttpAnswer> answers;
    for (const auto& topic : topics)
      answers.push_back(answer_for(topic, known, job));
    return answers;
  };
  parts_.files.ask<std::vector<HttpAnswer>>(
      kFilesLimit, std::move(work),
      [this, topics, requests = std::move(requests)](Result<std::vector<HttpAnswer>> made) {
        making_ = false;
        if (closed_) return;
        const auto now = parts_.clock();
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

void PageAnswers::on_time() {
  if (const auto now = parts_.clock(); watch_until_ && now >= *watch_until_) {
    watch_until_.reset();
    no_longer_.reset();
    kept_.clear();
    watch_.end();
  }
  // Before the server gives the caller up.
  while (!await_end_.empty() && parts_.clock() >= await_end_.front().until)
    wait_no_longer();
  advance();
}

std::optional<PageAnswers::Time> PageAnswers::next_deadline() const {
  EarliestDeadline due;
  due.include(watch_until_);
  if (!await_end_.empty()) due.include(await_end_.front().until);
  if (!waiting_.empty() && !making_) due.include(no_longer_);
  return due.time();
}

}  // namespace drun::launcher
