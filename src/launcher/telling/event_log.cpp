#include "launcher/telling/event_log.hpp"

#include <utility>

#include "base/file_worker.hpp"
#include "base/log.hpp"

namespace drun::launcher {

using Clock = std::chrono::steady_clock;

namespace {

// At the end: for the thread to come back from a pipe, which it looks at for a second.
constexpr std::chrono::seconds kThreadLimit{2};

}  // namespace

EventLog::EventLog(asio::io_context& io, std::unique_ptr<EventSink> sink)
    : desk_(io, [] {}), limit_(io, [this] { on_limit(); }), sink_(std::move(sink)) {}

void EventLog::tell(events::Event event) {
  if (hung_ || sink_ended_) return lose(1, "");
  if (waiting_.size() >= kMostWaiting) return lose(1, "too many wait to be written");
  latest_ = event;
  waiting_.push_back(std::move(event));
  write();
}

// One after the other, so that what comes meanwhile goes together.
void EventLog::write() {
  if (busy_ || hung_ || sink_ended_) return;
  if (lines_ == nullptr) {
    if (waiting_.empty()) return over_ ? end_sink() : void();
    auto lines = std::make_shared<Lines>();
    tells_loss_ = untold_ > 0;
    if (tells_loss_) {
      events::Event loss = latest_;
      loss.kind = events::Kind::EventsLost;
      loss.lost = untold_;
      loss.reason = why_;
      lines->push_back(to_json(loss) + "\n");
    }
    for (const auto& event : waiting_)
      lines->push_back(to_json(event) + "\n");
    waiting_.clear();
    lines_ = std::move(lines);
    next_ = 0;
  }
  busy_ = true;
  desk_.ask<SinkResult>(
      kFilesLimit,
      [sink = sink_, lines = lines_, next = next_] {
        return sink->write(std::span(*lines).subspan(next));
      },
      [this](const Result<SinkResult>& result) {
        busy_ = false;
        if (result) return on_written(*result);
        // The thread may hang for ever, and has the sink.
        hung_ = true;
        why_.clear();
        const std::size_t left = (lines_ ? lines_->size() - next_ : 0) + waiting_.size();
        lines_.reset();
        waiting_.clear();
        lose(left, result.error().what());
        if (over_) end();
      });
}

void EventLog::on_written(const SinkResult& result) {
  if (dropped_) return write();
  const std::size_t failed = result.taken - result.written;
  if (tells_loss_ && next_ == 0 && result.taken > 0) {
    if (failed == 0) untold_ = 0;
    tells_loss_ = false;
    if (failed > 0) lose(failed - 1, result.why);
  } else if (failed > 0) {
    lose(failed, result.why);
  }
  next_ += result.taken;
  if (next_ >= lines_->size()) lines_.reset();
  if (over_ && result.taken > 0) limit_.set(Clock::now() + kEndLimit);
  write();
}

// Each reason is said once, and again when it has changed.
void EventLog::lose(std::size_t events, const std::string& why) {
  lost_ += static_cast<std::int64_t>(events);
  untold_ += static_cast<std::int64_t>(events);
  if (why.empty() || why == why_) return;
  why_ = why;
  log::warning("--events: {}; what cannot be written is lost", why);
}

void EventLog::finish(std::function<void()> over) {
  over_ = std::move(over);
  if (hung_) return end();
  limit_.set(Clock::now() + kEndLimit);
  write();
}

void EventLog::end_sink() {
  busy_ = true;
  limit_.set(std::nullopt);  // it has one of its own
  desk_.ask<std::string>(
      kFilesLimit, [sink = sink_] { return sink->end(); },
      [this](const Result<std::string>& ended) {
        busy_ = false;
        sink_ended_ = true;
        lose(std::exchange(waiting_, {}).size(), "");  // told meanwhile
        const std::string& why = ended ? *ended : ended.error().what();
        if (!why.empty()) log::warning("--events: the command: {}", why);
        end();
      });
}

// The thread comes back soon from a reader that takes nothing, and may not from a file system.
void EventLog::on_limit() {
  if (dropped_) return give_up();
  drop();
  limit_.set(Clock::now() + kThreadLimit);
  write();
}

void EventLog::drop() {
  dropped_ = true;
  const std::size_t left = (lines_ ? lines_->size() - next_ : 0) + waiting_.size();
  lines_.reset();
  waiting_.clear();
  if (left > 0) lose(left, "nobody takes them");
}

void EventLog::give_up() {
  if (!over_) return;
  if (!dropped_) drop();
  hung_ = true;
  end();
}

void EventLog::end() {
  limit_.set(std::nullopt);
  desk_.cancel();
  if (lost_ > 0) log::warning("--events: {} events were lost", lost_);
  if (auto over = std::exchange(over_, nullptr)) over();
}

}  // namespace drun::launcher
