#include "store/client/control_fsm.hpp"

#include <algorithm>

#include "store/client/client_calls.hpp"

namespace drun::store {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstRedial{10};
constexpr milliseconds kLongestRedial{1000};
// How long a peer may take for its answer in the handshake, and for the one attempt of a zero
// limit.
constexpr milliseconds kHelloLimit{5000};
constexpr milliseconds kGoodbyeLimit{1000};
constexpr milliseconds kShortestAttempt{200};
constexpr milliseconds kFirstUnsettledPause{10};
constexpr std::chrono::hours kNoLimit{24 * 365};  // of who ends the attempt otherwise
// A store that is ending closes a handshake once or twice; something else does so every time.
constexpr int kHandshakesRefused = 6;

}  // namespace

ControlFsm::ControlFsm(ControlOptions options, std::uint32_t seed)
    : options_(std::move(options)),
      backoff_(kFirstRedial, kLongestRedial, seed),
      time_to_live_(options_.time_to_live),
      generation_(options_.founding ? 0 : 1) {
  if (options_.founder.nodes > 0) voter_.found(options_.founder);
}

std::string ControlFsm::store() const {
  return "the store at " + to_string(options_.endpoint);
}

// ---- the caller ----

void ControlFsm::open(Time now) {
  if (phase_ != Phase::Idle) return;
  started_ = now;
  give_up_ = now + std::max(options_.connect_timeout, milliseconds(0));
  if (options_.connect_timeout <= milliseconds(0)) give_up_ = now + kHelloLimit;
  connect(now);
}

void ControlFsm::watch(std::uint32_t watch, std::string key, bool prefix) {
  if (phase_ == Phase::Over) return;
  unwatch(watch);
  Watch& entry = watches_[watch];
  entry = {std::move(key), prefix, 0};
  if (phase_ == Phase::Up) send_watch(watch, entry);
}

void ControlFsm::unwatch(std::uint32_t watch) {
  const auto entry = watches_.find(watch);
  if (entry == watches_.end()) return;
  if (phase_ == Phase::Up && entry->second.request != 0) {
    watch_of_request_.erase(entry->second.request);
    send(control::Unwatch{entry->second.request});
  }
  watches_.erase(entry);
}

void ControlFsm::commit(std::uint64_t request, ControlTransaction transaction) {
  if (phase_ == Phase::Over || phase_ == Phase::Closing) {
    events_.emplace_back(ControlCommit{request, ControlOutcome::Unknown});
    return;
  }
  Queued queued{request, std::move(transaction)};
  if (phase_ == Phase::Up) {
    send_commit(queued);
  } else {
    queued_.push_back(std::move(queued));
  }
}

void ControlFsm::vote(const Place& place, Time now) {
  const Vote before = voter_.vote();
  voter_.give(place);
  if (voter_.vote() == before) return;
  unsettled_pause_ = kFirstUnsettledPause;
  if (phase_ == Phase::Up && votes()) send_heartbeat(now);
}

void ControlFsm::go_to(Endpoint endpoint, Time now, bool founds) {
  if (phase_ == Phase::Over || phase_ == Phase::Closing) return;
  drop_connection();
  forget_commits();
  options_.endpoint = std::move(endpoint);
  session_.reset();
  has_moved_ = true;
  visiting_ = true;
  founds_ = founds;
  started_ = now;
  give_up_ = now + kNoLimit;
  connect(now);
}

void ControlFsm::close(Time now) {
  if (phase_ == Phase::Over || phase_ == Phase::Closing) return;
  if (phase_ != Phase::Up) {  // no goodbye can be sent: the session, if there is one, times out
    over(ControlState::Closed, "closed without a connection to " + store());
    return;
  }
  phase_ = Phase::Closing;
  phase_deadline_ = now + kGoodbyeLimit;
  goodbye_request_ = send(control::Goodbye{});
}

// ---- the network ----

std::optional<std::uint64_t> ControlFsm::wanted_connection() const {
  switch (phase_) {
    case Phase::Connecting:
    case Phase::Handshake:
    case Phase::Up:
    case Phase::Closing:
      return connection_;
    default:
      return std::nullopt;
  }
}

bool ControlFsm::is_reconnecting() const {
  return had_session_ && !visiting_ &&
         (phase_ == Phase::Connecting || phase_ == Phase::Handshake || phase_ == Phase::Pausing);
}

// After a break an attempt is short: TCP's own would come back to a mended network too late.
void ControlFsm::connect(Time now) {
  phase_ = Phase::Connecting;
  const bool short_one = had_session_ && !visiting_;
  phase_deadline_ = short_one ? std::min(give_up_, now + short_attempt()) : give_up_;
  ++connection_;
}

void ControlFsm::on_connected(Time now) {
  if (phase_ != Phase::Connecting) return;
  phase_ = Phase::Handshake;
  handshake_ = HandshakeStep::AwaitsWelcome;
  // A successor answers only when a majority has come to it.
  phase_deadline_ = visiting_ ? give_up_ : now + std::min(kHelloLimit, options_.read_timeout);
  control::encode_opening(output_);
  if (session_) {
    session_asked_ = now;
    send(*session_);
  } else if (!asks_after_welcome()) {
    send_open_session(now);
  }
}

void ControlFsm::on_connect_failed(const std::string& cause, Time now, bool refused) {
  if (phase_ != Phase::Connecting) return;
  handshakes_refused_ = 0;
  const bool tell = refused && !visiting_ && had_session_ && options_.tell_refusal;
  lost(cause, now, {}, refused);
  if (tell && phase_ == Phase::Pausing && !std::exchange(told_refusal_, true)) {
    ControlLink link{ControlState::Down, "lost " + store() + ": " + cause};
    link.refused = true;
    events_.emplace_back(std::move(link));
  }
}

void ControlFsm::on_disconnected(const std::string& cause, Time now) {
  if (!wanted_connection()) return;
  if (phase_ == Phase::Closing) {
    over(ControlState::Closed, store() + " closed the connection before it answered the goodbye");
    return;
  }
  if (phase_ == Phase::Handshake && handshake_ == HandshakeStep::AwaitsWelcome) {
    // What came fits so far: it may be the beginning of a welcome that the network has cut off. A
    // server that this client has used or was sent to is a store: it is only tried again. So is one
    // that ends TLS without a word, as a store does that has no room for strangers.
    const bool silent = input_.empty() && options_.tls != nullptr;
    if (!silent && !had_session_ && !visiting_ && ++handshakes_refused_ >= kHandshakesRefused) {
      fail(to_string(options_.endpoint) + " is not a drun store: " +
           (input_.empty() ? "it closes the connection when it is greeted"
                           : "it answered " + quote_bytes(input_)));
      return;
    }
    lost(silent           ? "it closes the connection before it has shown a token"
         : input_.empty() ? "it closes the connection when it is greeted"
                          : cause,
         now);
    return;
  }
  lost(cause, now);
}

// Trying again does not help. But whoever answers may be no store of the job at all, so a client
// that was in the job already, or looks for its store in several places, goes on.
void ControlFsm::on_refused(const std::string& cause, Time now) {
  if (!wanted_connection()) return;
  if (phase_ == Phase::Closing || had_session_ || visiting_) return lost("it " + cause, now);
  fail(store() + " " + cause);
}

void ControlFsm::on_received(std::string_view bytes, Time now) {
  if (!wanted_connection() || phase_ == Phase::Connecting) return;
  last_heard_ = now;
  heartbeat_sent_.reset();
  input_.append(bytes);
  if (phase_ == Phase::Handshake && handshake_ == HandshakeStep::AwaitsWelcome &&
      !first_bytes_fit()) {
    const std::string detail =
        to_string(options_.endpoint) + " is not a drun store: it answered " + quote_bytes(input_);
    if (had_session_ || visiting_) {
      lost(detail, now);  // another program has the port, perhaps for a moment
    } else {
      fail(detail);
    }
    return;
  }
  const std::uint64_t connection = connection_;
  std::size_t used = 0;
  while (wanted_connection() == connection) {
    const auto result =
        control::next_frame(std::string_view(input_).substr(used), control::kLongestReply);
    if (result.status == control::FrameStatus::NeedMore) break;
    control::Reply reply;
    auto status = control::DecodeStatus::Malformed;
    if (result.status == control::FrameStatus::Complete) {
      status = control::decode_reply(result.frame, reply);
      used += result.size;
    }
    if (status == control::DecodeStatus::UnknownType) continue;  // of no use to us
    if (status != control::DecodeStatus::Ok) {
      lost("it sent a malformed message", now);
      return;
    }
    if (phase_ == Phase::Handshake) {
      on_handshake_reply(reply, now);
    } else {
      // Answers come in the order of the requests: this one says that all before it were served.
      while (!unanswered_.empty() && unanswered_.front().first <= result.frame.request) {
        if (!votes()) renewed(unanswered_.front().second);
        unanswered_.pop_front();
      }
      handle(result.frame.request, reply, now);
    }
  }
  if (wanted_connection() == connection) input_.erase(0, used);
}

// A client that votes hears of renewals more often: the store's word is itself as old as the
// majority's last one, and time that is kept back here would be missing from the lease while the
// client goes to another store.
void ControlFsm::renewed(Time sent) {
  const ElectorateId settled = voter_.vote().settled.electorate;
  const milliseconds least = heartbeat_interval() / (votes() ? 4 : 2);
  if (sent < renewed_ + least && settled == told_settled_) return;
  renewed_ = std::max(renewed_, sent);
  told_settled_ = settled;
  events_.emplace_back(ControlRenewal{renewed_, settled});
}

milliseconds ControlFsm::heartbeat_interval() const {
  return std::min(options_.heartbeat_interval, time_to_live_ / 3);
}

milliseconds ControlFsm::short_attempt() const {
  return std::max(heartbeat_interval() / (votes() ? 4 : 2), kShortestAttempt);
}

// The first frame has request id 0 and is a welcome, a refusal or an error, whatever the version.
bool ControlFsm::first_bytes_fit() const {
  constexpr std::size_t kIdBegin = 4;
  constexpr std::size_t kIdEnd = 12;
  for (std::size_t i = kIdBegin; i < std::min(input_.size(), kIdEnd); ++i) {
    if (input_[i] != 0) return false;
  }
  if (input_.size() <= kIdEnd) return true;
  const auto type = static_cast<control::FrameType>(input_[kIdEnd]);
  return type == control::FrameType::Welcome || type == control::FrameType::VersionRefused ||
         type == control::FrameType::Error;
}

// ---- breaks, time and the end ----

ControlFsm::Time ControlFsm::answer_due() const {
  Time due = last_heard_ + time_to_live_;
  if (heartbeat_sent_) due = std::min(due, *heartbeat_sent_ + options_.heartbeat_timeout);
  if (!unanswered_.empty()) due = std::min(due, unanswered_.front().second + options_.read_timeout);
  return due;
}

// Everything that is numbered by the connection's own requests goes with it.
void ControlFsm::drop_connection() {
  input_.clear();
  output_.clear();
  watch_of_request_.clear();
  unanswered_.clear();
  pulses_.clear();
  next_request_ = 1;
  for (auto& [name, entry] : watches_)
    entry.request = 0;
}

void ControlFsm::forget_commits() {
  for (const auto& [request, callers] : std::exchange(commits_, {})) {
    events_.emplace_back(ControlCommit{callers, ControlOutcome::Unknown});
  }
}

void ControlFsm::lost(const std::string& cause, Time now, milliseconds silent, bool refused) {
  const bool was_up = phase_ == Phase::Up;
  if (phase_ == Phase::Closing) {
    over(ControlState::Closed, "lost " + store() + " while leaving it: " + cause);
    return;
  }
  last_error_ = cause;
  drop_connection();
  if (was_up) {
    started_ = now;
    give_up_ = now + options_.keep_alive;
    events_.emplace_back(ControlLink{ControlState::Down, "lost " + store() + ": " + cause, silent});
    told_refusal_ = false;
    // Nobody can say whether the store applied those that it got and did not answer.
    forget_commits();
    connect(now);  // at once: the session goes on to grow old
    return;
  }
  if (visiting_) {
    phase_ = Phase::Stranded;
    ControlLink link{ControlState::Down, "could not reach " + store() + ": " + cause};
    link.refused = refused;
    events_.emplace_back(std::move(link));
    return;
  }
  // Without a connect_timeout the first connection has one attempt.
  const bool single = !had_session_ && options_.connect_timeout <= milliseconds(0);
  if (single || now >= give_up_) {
    const std::string tried = single ? "" : " within " + to_text(give_up_ - started_);
    fail((had_session_ ? "lost " + store() + " and could not reach it again" + tried
                       : "could not reach " + store() + tried) +
         ": " + cause);
    return;
  }
  phase_ = Phase::Pausing;
  phase_deadline_ = std::min<Time>(now + backoff_.next(), give_up_);
  // A link that is down refuses each attempt at once; the lease is as long as after a silence.
  if (had_session_) phase_deadline_ = std::min(phase_deadline_, now + short_attempt());
}

void ControlFsm::fail(std::string detail) {
  last_error_ = detail;
  over(ControlState::Failed, std::move(detail));
}

void ControlFsm::over(ControlState state, std::string detail) {
  drop_connection();
  phase_ = Phase::Over;
  forget_commits();
  for (const Queued& queued : std::exchange(queued_, {})) {
    events_.emplace_back(ControlCommit{queued.first, ControlOutcome::Unknown});
  }
  events_.emplace_back(ControlLink{state, std::move(detail)});
}

void ControlFsm::on_time(Time now) {
  switch (phase_) {
    case Phase::Pausing:
      if (now >= give_up_) {
        lost(last_error_, now);
      } else if (now >= phase_deadline_) {
        connect(now);
      }
      break;
    case Phase::Connecting:
      if (now >= give_up_) {
        lost(last_error_.empty() ? "no answer" : last_error_, now);
      } else if (now >= phase_deadline_) {
        connect(now);
      }
      break;
    case Phase::Handshake:
      if (now >= std::min(phase_deadline_, give_up_)) {
        lost("it accepts the connection but does not answer", now);
      }
      break;
    case Phase::Up:
      if (now >= answer_due()) {
        const auto silent = std::chrono::duration_cast<milliseconds>(now - last_heard_);
        lost("no answer for " + to_text(silent), now, silent);
      } else if (now >= next_heartbeat_) {
        send_heartbeat(now);
      }
      break;
    case Phase::Closing:
      if (now >= phase_deadline_) {
        over(ControlState::Closed, store() + " did not answer the goodbye");
      }
      break;
    case Phase::Idle:
    case Phase::Stranded:
    case Phase::Over:
      break;
  }
}

// The connection is given up; whoever knows where to go says so with go_to().
void ControlFsm::strand(ControlLink link) {
  if (phase_ == Phase::Closing)
    return over(ControlState::Closed, "left " + store() + ": " + link.detail);
  drop_connection();
  forget_commits();
  phase_ = Phase::Stranded;
  last_error_ = link.detail;
  events_.emplace_back(std::move(link));
}

std::optional<ControlFsm::Time> ControlFsm::next_deadline() const {
  switch (phase_) {
    case Phase::Pausing:
    case Phase::Connecting:
    case Phase::Handshake:
      return std::min(phase_deadline_, give_up_);
    case Phase::Up:
      return std::min(next_heartbeat_, answer_due());
    case Phase::Closing:
      return phase_deadline_;
    default:
      return std::nullopt;
  }
}

std::string ControlFsm::take_output(Time now) {
  if (phase_ == Phase::Up && !output_.empty()) unanswered_.emplace_back(next_request_ - 1, now);
  return std::exchange(output_, {});
}

std::vector<ControlEvent> ControlFsm::take_events() {
  return std::exchange(events_, {});
}

}  // namespace drun::store
