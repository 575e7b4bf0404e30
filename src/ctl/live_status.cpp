#include "ctl/live_status.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/unix_time.hpp"
#include "ctl/redraw.hpp"
#include "ctl/status_view.hpp"
#include "drun/store/errors.hpp"
#include "rendezvous/keys.hpp"

namespace drun::ctl {
namespace {

namespace control = store::control;
using store::ControlQuery;
using store::Errc;

// A store that is lost: how long it is sought, in all, and the pause before it is again.
constexpr std::chrono::milliseconds kBetweenSearches{200};
constexpr std::chrono::milliseconds kSearchLimit{60'000};
constexpr const char* kClearScreen = "\x1b[H\x1b[J";

// Shows the jobs again whenever something has changed, until they have ended or the reader goes.
class LiveView {
 public:
  explicit LiveView(const CtlOptions& options)
      : options_(options), redraw_(!options.json && on_terminal()) {}

  // Nullopt: the store has gone, and the jobs have not ended.
  std::optional<int> run(ControlQuery& query, WatchedDocuments watched,
                         std::optional<Deadline> end) {
    query.end_without_reader(STDOUT_FILENO);
    documents_ = std::move(watched.documents);
    show();
    while (!ended_) {
      const auto now = Clock::now();
      if (end && now >= *end) return at_end();
      const auto next = redraw_.wait_until(now);
      const auto reply = query.receive(watched.watch, end ? std::min(next, *end) : next);
      if (query.has_no_reader()) throw NoReader();
      if (!reply && reply.error().code() != Errc::Timeout) {
        if (redraw_.state() == Redraw::State::Changed) show();
        return ended_ ? std::optional(code_) : std::nullopt;
      }
      if (reply) take(*reply);
      if (redraw_.is_due(Clock::now())) show();
    }
    return code_;
  }

  // Where a store that has gone may be found again, beside `endpoint`.
  [[nodiscard]] std::vector<Endpoint> places(const Endpoint& endpoint) const {
    std::vector<Endpoint> result{endpoint};
    for (const jobs::JobView& job : jobs::jobs_in(documents_))
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
    redraw_.on_change();
  }
  void show() {
    const View view = view_of(documents_, options_, {on_terminal(), unix_ms()});
    redraw_.on_shown(Clock::now());
    code_ = view.code;
    ended_ = view.ended && !view.empty;
    // A store that succeeds another hears of the jobs again in a moment.
    if (view.empty) return;
    // The last one is not drawn over, and is to be read whole.
    std::string text =
        redraw_.in_place() && !ended_ ? fitted(view.text, terminal_size(STDOUT_FILENO)) : view.text;
    if (text == last_) return;
    last_ = std::move(text);
    print(redraw_.in_place() ? kClearScreen + last_ : last_);
  }

  const CtlOptions& options_;
  Documents documents_;
  Redraw redraw_;
  std::string last_;
  bool ended_ = false;
  int code_ = kOk;
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

}  // namespace

std::string named(const CtlOptions& options) {
  return options.words.empty() ? "" : " '" + escaped(options.words.front()) + "'";
}

std::string prefix_of(const std::optional<std::string>& job) {
  return job ? rendezvous::Keys(*job).prefix : std::string(rendezvous::kAllJobs);
}

int watch_at(const CtlOptions& options, const Endpoint& endpoint,
             const std::optional<std::string>& job, ControlQuery query, WatchedDocuments watched,
             std::optional<Deadline> end) {
  LiveView view(options);
  if (view_of(watched.documents, options, {}).empty)
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

}  // namespace drun::ctl
