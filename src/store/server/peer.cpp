#include "store/server/peer.hpp"

#include <algorithm>
#include <utility>

#include "secure/tls_engine.hpp"
#include "store/server/control_handler.hpp"
#include "store/server/tcpstore_handler.hpp"

namespace drun::store {
namespace {

constexpr const char* kRefusedFirstBytes = "neither a TCPStore client nor a drun agent";
// Changes from this size on are not copied for each of those who are told of them.
constexpr std::size_t kShared = 16 * 1024;
// Of a relay. It says Leave of each as soon as it hears of it. The memory that they take is not
// counted: it is less than a connection has anyway.
constexpr std::size_t kMostClosed = 512;

// The numbers of the waits of a relay's client.
std::uint64_t first_wait_of(relay_frames::Stream client) {
  return std::uint64_t{client} << 32U;
}
std::uint64_t last_wait_of(relay_frames::Stream client) {
  return first_wait_of(client) | 0xFFFFFFFFU;
}

}  // namespace

Peer::~Peer() {
  table().drop(*this);
}

KeyTable& Peer::table() const {
  return is_control() ? context_.control_table : context_.tcpstore_table;
}

void Peer::disconnect(Time now) {
  table().drop(*this);
  if (waiting_) context_.succession.withdraw(std::exchange(waiting_, std::nullopt)->number, now);
  if (session_ != kNoSession) context_.sessions.detach(std::exchange(session_, kNoSession), now);
}

Peer::State Peer::close(const char* reason) {
  close_reason_ = reason;
  return State::Closed;
}

Peer::Fed Peer::feed(std::string_view bytes, Time now) {
  Fed fed;
  feeding_ = true;
  sent_now_ = 0;
  Turn::Share share;
  while (fed.state == State::Open && !bytes.empty() && !is_given_up_) {
    if (has_much_output() || share.is_used_up()) {
      fed.state = State::Paused;
      break;
    }
    const std::size_t before = fed.consumed;
    fed.needed = 0;
    switch (phase_) {
      case Phase::Unknown:
        fed.state = detect(bytes, fed);
        break;
      case Phase::TcpStore:
        fed.state = feed_tcpstore(bytes, fed, share);
        break;
      case Phase::ControlOpening:
        fed.state = next_opening(bytes, fed);
        break;
      case Phase::Control:
        fed.state = next_frame(bytes, fed, share, now);
        break;
      case Phase::Relay:
        fed.state = next_relayed(bytes, fed, share);
        break;
    }
    if (fed.needed > 0) break;
    bytes.remove_prefix(fed.consumed - before);
  }
  fed.needed = std::max(fed.needed, std::size_t{1});
  feeding_ = false;
  return fed;
}

Peer::State Peer::detect(std::string_view bytes, Fed& fed) {
  if (context_.tls != nullptr && !is_proven_) {
    const bool certified = context_.tls->has_certificate();
    const char* const missing = certified ? kNeedsCertificate : kNeedsToken;
    if (control::may_be_opening(bytes)) {
      const control::Error error =
          certified ? control::Error{control::ErrorCode::NeedsCertificate,
                                     "it asks for a certificate: give --tls-cert, --tls-key and "
                                     "--tls-ca on every node"}
                    : control::Error{control::ErrorCode::NeedsToken,
                                     "it asks for a token: give the same DRUN_TOKEN or "
                                     "--token-file on every node"};
      control::encode(output_, 0, error);
      return close(missing);
    }
    if (!context_.serves_strangers()) return close(missing);
  } else if (bytes.front() == secure::kTlsHello) {
    output_ += secure::kNoTokenAnswer;
    return close(kHasToken);
  }
  if (control::may_be_opening(bytes)) {
    phase_ = Phase::ControlOpening;
    return State::Open;
  }
  const tcpstore::Detection found = tcpstore::detect_version(bytes, context_.limits);
  switch (found.status) {
    case tcpstore::Detection::Status::NeedMore:
      fed.needed = bytes.size() + 1;
      return State::Open;
    case tcpstore::Detection::Status::Rejected:
      return close(kRefusedFirstBytes);
    case tcpstore::Detection::Status::Decided:
      break;
  }
  // Both open without a handshake: only the user can tell them apart (--legacy-clients).
  const bool is_2_1 = found.version == TcpStoreVersion::Torch1_13 && context_.old_clients_are_2_1;
  decoder_ = tcpstore::Decoder(is_2_1 ? TcpStoreVersion::Torch2_1 : found.version);
  phase_ = Phase::TcpStore;
  fed.consumed += found.consumed;
  return State::Open;
}

// All requests, as many as there are.
Peer::State Peer::feed_tcpstore(std::string_view bytes, Fed& fed, Turn::Share& share) {
  tcpstore::Request& request = context_.tcpstore_request;
  KeyTable& table = context_.tcpstore_table;
  while (!bytes.empty()) {
    if (has_much_output() || share.is_used_up()) return State::Paused;
    const auto decoded = decoder_.next(bytes, context_.limits, request);
    switch (decoded.status) {
      case tcpstore::Decoder::Status::NeedMore:
        fed.needed = decoded.size;
        return State::Open;
      case tcpstore::Decoder::Status::Refused:
        return close(decoded.reason);
      case tcpstore::Decoder::Status::Complete:
        break;
    }
    if (scope_ && !scope_->holds(request)) return close(kOtherJobsKeys);
    if (!context_.turn.has_room() && tcpstore::takes_much(table, request, scope()))
      return State::AwaitsTurn;
    // A client of the old versions sends again only when it has given up its wait.
    if (KeyTable::is_waiting(*this) && decoder_.version() != TcpStoreVersion::Torch2_2)
      table.cancel_waits(*this);
    ++context_.counters.requests;
    const std::size_t before = output_.size() + sent_now_;
    const std::size_t keys = tcpstore::keys_of(table, request, scope());
    const std::uint64_t told_before = table.told();
    const char* failure =
        tcpstore::apply(table, *this, ++last_wait_, request, context_.limits, output_, scope());
    // What waited to be sent may have gone with the reply.
    const std::size_t after = std::max(before, output_.size() + sent_now_);
    const std::uint64_t told = table.told() - told_before;
    context_.turn.note(decoded.size + after - before + keys * Turn::kBytesOfAKey, told);
    // A number of keys is asked for and answered in few bytes, which hold nobody up.
    const bool is_number = request.op == tcpstore::Op::GetNumKeys;
    share.note(told + (is_number ? keys * Turn::kBytesOfAKey : 0));
    if (failure != nullptr) return close(failure);
    fed.consumed += decoded.size;
    bytes.remove_prefix(decoded.size);
  }
  return State::Open;
}

std::size_t Peer::send_now(std::string_view bytes) {
  if (phase_ == Phase::Relay) return 0;  // its frame is not there yet
  const std::size_t sent = send_directly(bytes);
  sent_now_ += sent;
  return sent;
}

Peer::State Peer::next_opening(std::string_view bytes, Fed& fed) {
  if (!control::may_be_opening(bytes)) return close(kRefusedFirstBytes);
  if (bytes.size() < control::kOpeningBytes) {
    fed.needed = bytes.size() + 1;
    return State::Open;
  }
  const auto version = control::choose_version(control::decode_opening(bytes));
  if (!version) {
    const control::VersionRefused refused{
        control::kLowestVersion, control::kHighestVersion,
        "this store speaks another version of drun's control protocol"};
    control::encode(output_, 0, control::Reply(refused));
    return close("no common version of the control protocol");
  }
  control::encode(output_, 0, control::Reply(welcome(context_.limits, *version)));
  phase_ = Phase::Control;
  version_ = *version;
  fed.consumed += control::kOpeningBytes;
  return State::Open;
}

bool Peer::take_frame(std::string_view bytes, Fed& fed, control::FrameResult& found, State& state) {
  found = control::next_frame(bytes, longest_frame(context_.limits));
  switch (found.status) {
    case control::FrameStatus::NeedMore:
      fed.needed = found.size;
      return false;
    case control::FrameStatus::Malformed:
      control::encode(output_, 0,
                      control::Error{control::ErrorCode::Malformed, "malformed frame header"});
      state = close("malformed frame");
      return false;
    case control::FrameStatus::TooLong:
      control::encode(output_, 0,
                      control::Error{control::ErrorCode::FrameTooLong, "frame too long"});
      state = close("frame too long");
      return false;
    case control::FrameStatus::Complete:
      break;
  }
  return true;
}

Peer::State Peer::next_frame(std::string_view bytes, Fed& fed, Turn::Share& share, Time now) {
  control::FrameResult found;
  State state = State::Open;
  if (!take_frame(bytes, fed, found, state)) return state;
  if (found.frame.type == static_cast<std::uint8_t>(relay_frames::Type::Begin) && may_relay()) {
    ++context_.counters.requests;
    phase_ = Phase::Relay;
    control::encode(output_, found.frame.request, control::Reply(control::Done{}));
    fed.consumed += found.size;
    return State::Open;
  }
  if (!context_.turn.has_room() && takes_much(context_, session_, found.frame))
    return State::AwaitsTurn;
  ++context_.counters.requests;
  const std::size_t before = output_.size();
  const std::uint64_t told_before = context_.control_table.told();
  const Budget::WithReserve reserve(context_.budget);
  ControlHandler requests(context_, *this, session_, now, output_);
  const bool good = requests.apply(found.frame);
  const std::uint64_t told = context_.control_table.told() - told_before;
  context_.turn.note(found.size + output_.size() - std::min(before, output_.size()), told);
  share.note(told);
  if (!good) return close("malformed frame");
  fed.consumed += found.size;
  return State::Open;
}

// ---- a relay ----

// What it has asked for before is not for relays. Nor is a job's token: whom a relay speaks for may
// ask for any key.
bool Peer::may_relay() const {
  return scope_ == nullptr && !has_session() && !is_waiting() && KeyTable::watch_count(*this) == 0;
}

Peer::State Peer::next_relayed(std::string_view bytes, Fed& fed, Turn::Share& share) {
  control::FrameResult found;
  State state = State::Open;
  if (!take_frame(bytes, fed, found, state)) return state;
  const control::Frame& frame = found.frame;
  const auto type = static_cast<relay_frames::Type>(frame.type);
  const auto client = static_cast<relay_frames::Stream>(frame.request);
  KeyTable& table = context_.tcpstore_table;
  if (client != frame.request) return close("malformed frame");
  if (type == relay_frames::Type::Leave) {
    if (!frame.body.empty()) return close("malformed frame");
    table.cancel_waits(*this, first_wait_of(client), last_wait_of(client));
    closed_.erase(client);
    control::encode(output_, client, control::Reply(control::Done{}));
    share.note(0);
    fed.consumed += found.size;
    return State::Open;
  }
  if (type == relay_frames::Type::PassOn) {
    table.pass_on(frame.body);
    share.note(0);
    fed.consumed += found.size;
    return State::Open;
  }
  const bool whole = type == relay_frames::Type::WholeRequest;
  const bool shared = type == relay_frames::Type::SharedWait;
  if ((!whole && !shared && type != relay_frames::Type::Request) || frame.body.empty())
    return close("malformed frame");
  tcpstore::Request& request = context_.tcpstore_request;
  const auto decoded =
      tcpstore::Decoder(TcpStoreVersion::Torch2_2).next(frame.body, context_.limits, request);
  if (decoded.status != tcpstore::Decoder::Status::Complete || decoded.size != frame.body.size())
    return close(*decoded.reason != '\0' ? decoded.reason : "malformed frame");
  if (shared && (request.op != tcpstore::Op::Wait || request.keys.size() != 1))
    return close("malformed frame");
  if (closed_.contains(client)) {
    share.note(0);
    fed.consumed += found.size;
    return State::Open;
  }
  if (!context_.turn.has_room() && tcpstore::takes_much(table, request)) return State::AwaitsTurn;
  ++context_.counters.requests;
  const std::size_t before = output_.size();
  const std::size_t keys = tcpstore::keys_of(table, request);
  const std::uint64_t told_before = table.told();
  if (!whole && tcpstore::replies_more_than(relay_frames::kLongestAnswer, table, request)) {
    relay_frames::append_frame(output_, client, relay_frames::Type::TooLong);
  } else if (const char* failure = serve_relayed(client, request, shared)) {
    if (closed_.size() >= kMostClosed) return close(failure);
    closed_.insert(client);
    relay_frames::append_frame(output_, client, relay_frames::Type::Closed, failure);
  }
  const std::uint64_t told = table.told() - told_before;
  const std::size_t after = std::max(before, output_.size());
  context_.turn.note(found.size + after - before + keys * Turn::kBytesOfAKey, told);
  share.note(told);
  fed.consumed += found.size;
  return State::Open;
}

// Whom it wakes is told in front of the answer.
const char* Peer::serve_relayed(relay_frames::Stream client, const tcpstore::Request& request,
                                bool shared) {
  KeyTable& table = context_.tcpstore_table;
  std::string& reply = context_.relayed_reply;
  reply.clear();
  if (request.op == tcpstore::Op::CancelWait) {
    table.cancel_waits(*this, first_wait_of(client), last_wait_of(client));
    reply.push_back(tcpstore::kWaitCanceled);
  } else {
    const std::uint64_t wait = first_wait_of(client) | (++last_wait_ & 0xFFFFFFFFU);
    if (shared) {
      const auto outcome = table.wait_shared(*this, wait, request.keys.front());
      if (outcome == KeyTable::WaitOutcome::OverBudget) return table.refusal();
      if (outcome == KeyTable::WaitOutcome::Done)
        relay_frames::append_frame(output_, client, relay_frames::Type::Woken);
      return nullptr;
    }
    const char* failure = tcpstore::apply(table, *this, wait, request, context_.limits, reply);
    if (failure != nullptr) return failure;
  }
  const bool waits = request.op == tcpstore::Op::Wait || request.op == tcpstore::Op::Barrier;
  if (waits && !reply.empty())
    relay_frames::append_frame(output_, client, relay_frames::Type::Woken);
  else if (!waits && row_of(request.op).reply != tcpstore::ReplyShape::None)
    relay_frames::append_frame(output_, client, relay_frames::Type::Answer, reply);
  if (reply.capacity() > kShared) std::string().swap(reply);
  return nullptr;
}

void Peer::on_wait_done(std::uint64_t wait) {
  if (phase_ == Phase::Relay)
    relay_frames::append_frame(output_, wait >> 32U, relay_frames::Type::Woken);
  else
    output_.push_back(tcpstore::kStopWaiting);
  if (!feeding_) on_unasked_output();
}

void Peer::on_push(std::uint64_t wait, std::string_view queue) {
  relay_frames::append_frame(output_, wait >> 32U, relay_frames::Type::Pushed, queue);
  if (!feeding_) on_unasked_output();
}

void Peer::on_changes(std::uint64_t watch, Publication& publication) {
  if (is_given_up_) return;
  // While it is fed nothing is sent: one request may touch all its watches.
  const std::size_t unread = feeding_ ? output_.size() : 0;
  if (unread + publication.bytes > context_.limits.unread_bytes) {
    give_up();
    return on_overflow();
  }
  const std::string_view frame = encode_changes(watch, publication);
  if (feeding_ || frame.size() < kShared) {
    output_.append(frame);
  } else {
    if (!has_room_to_tell(publication.bytes)) return give_up();
    output_.append(frame.substr(0, control::kHeaderBytes));
    send_later(publication.encoded, control::kHeaderBytes);
  }
  if (!feeding_) on_unasked_output();
}

void Peer::on_session_ended(control::EndReason reason) {
  session_ = kNoSession;
  control::encode(output_, 0, control::Reply(control::SessionEnded{reason}));
  if (!feeding_) on_unasked_output();
}

// ---- while the server does not serve ----

void Peer::wait(std::uint64_t request, const control::OpenSuccessor& application, Time now) {
  waiting_ = Waiting{request, application.ttl_ms, application.grace_ms, 0,
                     std::string(job_of(application.job))};
  waiting_->number = context_.succession.apply(*this, application, now);
}

void Peer::confirm(std::uint64_t stamp, Time now) {
  context_.succession.confirm_call(waiting_->number, stamp, now);
}

void Peer::on_call(const control::Pulsed& call) {
  control::encode(output_, waiting_->request, control::Reply(call));
  if (!feeding_) on_unasked_output();
}

void Peer::on_moved(const control::Moved& moved) {
  const std::uint64_t request = std::exchange(waiting_, std::nullopt)->request;
  encode_moved(output_, request, moved, version_);
  if (!feeding_) on_unasked_output();
}

SessionId Peer::on_welcome(Time now) {
  const Waiting asked = *std::exchange(waiting_, std::nullopt);
  session_ = open_session(context_, *this, {asked.ttl_ms, asked.grace_ms}, asked.job, asked.request,
                          now, output_);
  if (!feeding_) on_unasked_output();
  return session_;
}

}  // namespace drun::store
