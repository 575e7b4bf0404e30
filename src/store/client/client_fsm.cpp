#include "store/client/client_fsm.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "drun/store/errors.hpp"

namespace drun::store {

using tcpstore::Op;
using tcpstore::Reply;
using tcpstore::ReplyReader;
using tcpstore::ReplyShape;

namespace {

// May be answered after requests that were sent later.
bool is_wait(const ClientStep& step) {
  return step.op == Op::Wait || step.op == Op::Barrier;
}

bool has_reply(const ClientStep& step) {
  const ReplyShape shape = tcpstore::row_of(step.op).reply;
  return shape != ReplyShape::None && (shape != ReplyShape::Values || step.count > 0);
}

Error nonsense() {
  return Error(Errc::Malformed, "the reply makes no sense in this protocol");
}

}  // namespace

ClientFsm::ClientFsm(Endpoint endpoint, TcpStoreVersion version, std::size_t max_value_bytes)
    : endpoint_(std::move(endpoint)), version_(version), max_value_bytes_(max_value_bytes) {}

void ClientFsm::start(ClientCall call, Milliseconds limit, Time now, Finished finished) {
  if (!open_) {
    outcomes_.push_back({std::move(finished), closed(call)});
    return;
  }
  for (const ClientStep& step : call.steps) {
    if (!step.bytes.empty()) continue;
    outcomes_.push_back(
        {std::move(finished),
         Error(Errc::Unsupported, where(call, step) + "a store of this age has no such "
                                                      "request")});
    return;
  }
  // Longer than any program runs, and short enough for the clock's arithmetic.
  const Milliseconds safe = std::min<Milliseconds>(limit, std::chrono::hours(24 * 365 * 100));
  Active& active = calls_.emplace_back();
  active.call = std::move(call);
  active.finished = std::move(finished);
  active.deadline = now + safe;
  active.limit = limit;
  next_check_ = std::min(next_check_, active.deadline);
  pump();
}

std::string_view ClientFsm::output() const {
  return std::string_view(output_).substr(output_begin_);
}

void ClientFsm::append(std::string bytes) {
  handed_out_ += bytes.size();
  if (output_.empty()) {
    output_ = std::move(bytes);
  } else {
    output_.append(bytes);
  }
}

void ClientFsm::on_sent(std::size_t bytes) {
  assert(bytes <= output().size());
  sent_ += bytes;
  output_begin_ += bytes;
  if (output_begin_ == output_.size()) {
    output_.clear();
    output_begin_ = 0;
  }
  settle();
}

// Makes output of what may be sent now.
void ClientFsm::pump() {
  while (open_ && unsent_ < calls_.size()) {
    Active& active = calls_[unsent_];
    if (!std::exchange(active.sent, true)) {
      append(std::move(active.call.steps[active.step].bytes));
      active.sent_at = handed_out_;
    }
    if (!active.at_last_step() || is_wait(active.now())) return;
    ++unsent_;
  }
}

// Ends the calls that have no reply and are sent.
void ClientFsm::settle() {
  while (open_ && !calls_.empty()) {
    const Active& front = calls_.front();
    if (!front.sent || has_reply(front.now()) || sent_ < front.sent_at) return;
    if (front.at_last_step()) {
      finish_front(Reply{});
    } else {
      advance();
    }
  }
}

void ClientFsm::finish_front(Result<Reply> result) {
  outcomes_.push_back({std::move(calls_.front().finished), std::move(result)});
  calls_.pop_front();
  if (unsent_ > 0) --unsent_;
  if (calls_.empty()) next_check_ = Time::max();
  pump();
}

void ClientFsm::advance() {
  Active& front = calls_.front();
  ++front.step;
  front.sent = front.cancelling = front.released = false;
  pump();
}

void ClientFsm::on_received(std::string_view bytes) {
  std::string joined;
  if (!input_.empty()) {
    joined = std::exchange(input_, {}).append(bytes);
    bytes = joined;
  }
  while (open_ && !bytes.empty()) {
    if (calls_.empty() || !calls_.front().sent || !has_reply(calls_.front().now())) {
      on_closed(Error(Errc::Malformed, "it sends what nobody has asked for"));
      return;
    }
    const ClientStep& step = calls_.front().now();
    if (!reader_) reader_.emplace(tcpstore::row_of(step.op).reply, step.count, max_value_bytes_);
    std::size_t taken = 0;
    const auto state = reader_->read(bytes, taken);
    bytes.remove_prefix(taken);
    switch (state) {
      case ReplyReader::State::NeedMore:
        input_.assign(bytes);
        return;
      case ReplyReader::State::TooLarge:
        break_off(0, Error(Errc::LimitExceeded, "the reply is longer than max_value_bytes"));
        return;
      case ReplyReader::State::Malformed:
        break_off(0, nonsense());
        return;
      case ReplyReader::State::Done:
        Reply reply = std::move(reader_->reply());
        reader_.reset();
        on_reply(std::move(reply));
        settle();
        break;
    }
  }
}

void ClientFsm::on_reply(Reply reply) {
  Active& front = calls_.front();
  const ClientStep& step = front.now();
  if (is_wait(step) && !on_wait_reply(reply.integer)) return;
  const bool absent = step.op == Op::Check && reply.integer != tcpstore::kReady;
  if (front.at_last_step() || absent) {
    finish_front(std::move(reply));
  } else {
    advance();
  }
}

// True: the wait is over, and has succeeded. Two bytes come if it was released in the moment in
// which its time ended.
bool ClientFsm::on_wait_reply(std::int64_t byte) {
  Active& front = calls_.front();
  if (!front.cancelling) {
    if (byte == tcpstore::kStopWaiting) return true;
    break_off(0, nonsense());
  } else if (byte == tcpstore::kWaitCanceled) {
    if (front.released) return true;
    finish_front(late(front));
  } else if (byte == tcpstore::kStopWaiting && !front.released) {
    front.released = true;
  } else {
    break_off(0, nonsense());
  }
  return false;
}

void ClientFsm::on_closed(const Error& cause) {
  if (!open_) return;
  if (!calls_.empty()) {
    break_off(0, cause);
    return;
  }
  open_ = false;
  why_closed_ = cause.what();
}

// Ends the connection because of this call; the others end with it.
void ClientFsm::break_off(std::size_t index, const Error& cause) {
  open_ = false;
  output_.clear();
  output_begin_ = 0;
  reader_.reset();
  input_.clear();
  next_check_ = Time::max();
  std::deque<Active> calls = std::exchange(calls_, {});
  const Active& guilty = calls[index];
  Error error = cause;
  if (cause.code() == Errc::Timeout) {
    error = late(guilty);
  } else if (!guilty.call.bare) {
    const bool closed = cause.code() == Errc::Closed;
    error = Error(cause.code(), where(guilty.call, guilty.now()) + cause.what() +
                                    std::string(closed ? closing_hint(guilty.now().op) : ""));
  }
  why_closed_ = error.what();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    outcomes_.push_back({std::move(calls[i].finished), i == index ? error : closed(calls[i].call)});
  }
}

void ClientFsm::on_time(Time now) {
  if (now < next_check_) return;
  next_check_ = Time::max();
  for (std::size_t i = 0; i < calls_.size();) {
    Active& active = calls_[i];
    if (active.deadline > now) {
      next_check_ = std::min(next_check_, active.deadline);
      ++i;
    } else if (i > unsent_) {  // nothing of it has left: the others are not concerned
      outcomes_.push_back({std::move(active.finished), late(active)});
      calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (const auto cancel = tcpstore::opcode_of(version_, Op::CancelWait);
               is_wait(active.now()) && !active.cancelling && cancel) {
      // The server confirms that it waits no longer, so the connection stays usable.
      active.cancelling = true;
      active.deadline = now + kCancelLimit;
      append(std::string(1, static_cast<char>(*cancel)));
    } else if (active.step > 0 && !active.extended) {
      // Its wait ended in time: what follows is a quick request, and may not have had its share.
      active.extended = true;
      active.deadline = now + kCancelLimit;
    } else {
      break_off(i, late(active));
      return;
    }
  }
}

std::optional<ClientFsm::Time> ClientFsm::next_deadline() const {
  if (next_check_ == Time::max()) return std::nullopt;
  return next_check_;
}

std::vector<ClientFsm::Outcome> ClientFsm::take_outcomes() {
  return std::exchange(outcomes_, {});
}

std::string ClientFsm::where(const ClientCall& call, const ClientStep& step) const {
  if (call.bare) return "";
  return std::string(tcpstore::row_of(step.op).name) + call.about + " at " + to_string(endpoint_) +
         ": ";
}

Error ClientFsm::late(const Active& active) const {
  return Error(Errc::Timeout,
               where(active.call, active.now()) + "timed out after " + to_text(active.limit));
}

Error ClientFsm::closed(const ClientCall& call) const {
  return Error(Errc::Closed,
               where(call, call.steps.front()) +
                   (why_closed_.empty() ? "there is no connection"
                                        : "the connection is closed, after '" + why_closed_ + "'"));
}

}  // namespace drun::store
