#include "store/relay/relay_mux.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace drun::store {
namespace {

using tcpstore::Op;
using tcpstore::ReplyShape;
using Type = relay_frames::Type;

constexpr std::uint64_t kBegin = 1;    // the request's number
constexpr RelayMux::Stream kSync = 0;  // no client's
constexpr std::size_t kMostQueues = 4096;

// Of one string, so that a rest that is often looked at does not keep much memory.
void take_off(std::string& bytes, std::size_t size) {
  constexpr std::size_t kKept = 4 * 1024;
  if (size < bytes.size())
    bytes.erase(0, size);
  else if (bytes.capacity() > kKept)
    std::string().swap(bytes);
  else
    bytes.clear();
}

}  // namespace

RelayMux::RelayMux(const Limits& limits) : limits_(limits) {
  control::encode_opening(to_store_);
  relay_frames::append_frame(to_store_, kBegin, Type::Begin);
}

// ---- clients ----

RelayMux::Stream RelayMux::add() {
  const Stream stream = next_stream();
  Client& client = clients_[stream];
  if (state_ == State::Refused) promote(stream, client);
  return stream;
}

RelayMux::Stream RelayMux::next_stream() {
  do {
    ++last_stream_;
  } while (last_stream_ == kSync || clients_.contains(last_stream_) ||
           sums_.contains(last_stream_) || shared_waits_.contains(last_stream_));
  return last_stream_;
}

void RelayMux::change(Stream stream, Client& client) {
  if (!std::exchange(client.changed, true)) changed_.push_back(stream);
}

std::vector<RelayMux::Stream> RelayMux::take_changed() {
  for (const Stream stream : changed_)
    if (const auto it = clients_.find(stream); it != clients_.end()) it->second.changed = false;
  return std::exchange(changed_, {});
}

void RelayMux::take(Stream stream, std::string_view bytes) {
  Client& client = clients_.at(stream);
  if (client.fate == Fate::Closing) return;
  client.input += bytes;
  go_on(stream, client);
}

void RelayMux::end(Stream stream) {
  Client& client = clients_.at(stream);
  client.ended = true;
  go_on(stream, client);
}

void RelayMux::lose(Stream stream) {
  Client& client = clients_.at(stream);
  client.lost = true;
  take_off(client.output, client.output.size());
  go_on(stream, client);
}

bool RelayMux::wants(Stream stream) const {
  const Client& client = clients_.at(stream);
  if (client.ended || client.fate != Fate::Served) return false;
  return client.input.size() <
         std::max(kLongest, client.awaits == Awaits::Nothing ? client.needed : 0);
}

std::string_view RelayMux::output(Stream stream) const {
  return clients_.at(stream).output;
}

void RelayMux::on_sent(Stream stream, std::size_t bytes) {
  Client& client = clients_.at(stream);
  take_off(client.output, bytes);
  go_on(stream, client);
}

RelayMux::Fate RelayMux::fate(Stream stream) const {
  return clients_.at(stream).fate;
}

const std::string& RelayMux::reason(Stream stream) const {
  return clients_.at(stream).reason;
}

// A client of 2.1 that has shown what it is does so at once, by a request without a reply.
std::string RelayMux::take_over(Stream stream) {
  const auto it = clients_.find(stream);
  Client& client = it->second;
  std::string bytes;
  if (client.decoder && client.decoder->version() == TcpStoreVersion::Torch2_2) {
    bytes = tcpstore::kHandshake;
  } else if (client.decoder && client.decoder->version() == TcpStoreVersion::Torch2_1) {
    tcpstore::Request nothing;
    nothing.op = Op::MultiGet;
    tcpstore::encode(bytes, TcpStoreVersion::Torch2_1, nothing);
  }
  bytes += client.input;
  clients_.erase(it);
  return bytes;
}

void RelayMux::forget(Stream stream) {
  const auto it = clients_.find(stream);
  if (it == clients_.end()) return;
  drop_shares(stream, it->second);
  if (it->second.touched && it->second.awaits != Awaits::Leave)
    relay_frames::append_frame(to_store_, stream, Type::Leave);
  clients_.erase(it);
}

// As the store does it for its own connections: all requests that are complete, in order.
void RelayMux::go_on(Stream stream, Client& client) {
  const auto is_served = [&] {
    return state_ == State::Open && client.fate == Fate::Served && client.awaits == Awaits::Nothing;
  };
  bool holds = false;  // until there is room for more
  while (is_served() && client.served < client.input.size()) {
    holds = to_store_.size() >= kMostToSend || client.output.size() >= kLongest;
    if (holds || (!client.decoder ? !detect(stream, client) : !serve_next(stream, client))) break;
  }
  if (holds && client.output.size() < kLongest) held_up_.push_back(stream);
  take_off(client.input, std::exchange(client.served, 0));
  if (is_served() && client.ended && !holds) {
    client.awaits = Awaits::Leave;
    drop_shares(stream, client);
    send_leave(stream, client);
  }
  change(stream, client);
}

void RelayMux::send_leave(Stream stream, Client& client) {
  ++client.leaves;
  relay_frames::append_frame(to_store_, stream, Type::Leave);
}

// False: what has come is too little, or it is no TCPStore client's.
bool RelayMux::detect(Stream stream, Client& client) {
  const auto found =
      tcpstore::detect_version(std::string_view(client.input).substr(client.served), limits_);
  switch (found.status) {
    case tcpstore::Detection::Status::NeedMore:
      return false;
    case tcpstore::Detection::Status::Rejected:
      close(stream, client, "it is no TCPStore client's");
      return false;
    case tcpstore::Detection::Status::Decided:
      break;
  }
  client.decoder.emplace(found.version);
  client.served += found.consumed;
  return true;
}

// False: the next request is not there, or is not for this connection.
bool RelayMux::serve_next(Stream stream, Client& client) {
  const auto bytes = std::string_view(client.input).substr(client.served);
  if (bytes.size() < client.needed) return false;
  const auto decoded = client.decoder->next(bytes, limits_, request_);
  const bool is_long = decoded.size > kLongest;
  switch (decoded.status) {
    case tcpstore::Decoder::Status::Refused:
      close(stream, client, decoded.reason);
      return false;
    case tcpstore::Decoder::Status::NeedMore:
      client.needed = decoded.size;
      if (is_long && !client.is_waiting()) promote(stream, client);
      return false;
    case tcpstore::Decoder::Status::Complete:
      break;
  }
  client.needed = 1;
  if (is_long && !client.is_waiting()) {
    promote(stream, client);
    return false;
  }
  if (decoded.size > limits_.request_bytes - control::kHeaderBytes) {
    close(stream, client, "request too long");
    return false;
  }
  serve(stream, client, decoded.size);
  return true;
}

// The request that was decoded last, which comes next in its input.
void RelayMux::serve(Stream stream, Client& client, std::size_t size) {
  const TcpStoreVersion version = client.decoder->version();
  // A client of the old versions sends again only when it has given up its wait.
  if (version != TcpStoreVersion::Torch2_2 && client.is_waiting()) {
    drop_shares(stream, client);
    send_leave(stream, client);
    client.own_waits = 0;
  }
  const bool queues =
      request_.op == Op::QueuePush || request_.op == Op::QueuePop || request_.op == Op::QueueLen;
  if (queues) note_queue(request_.key);
  if (request_.op == Op::Wait && request_.keys.size() == 1 &&
      !queues_.contains(std::string(request_.keys.front()))) {
    share_wait(stream, client, std::string(request_.keys.front()));
    client.served += size;
    return;
  }
  if (request_.op == Op::CancelWait) drop_shares(stream, client);
  // The store may refuse what it has said before: then it is to do nothing more.
  if (request_.op == Op::Add && !client.unsynced) {
    const std::string key(request_.key);
    Adds& adds = adds_[key];
    if (adds.waiting.empty() && adds.sent.empty()) keys_.push_back(key);
    adds.waiting.push_back({stream, request_.number});
    client.touched = true;
    client.awaits = Awaits::Sum;
    client.served += size;
    return;
  }
  std::string encoded;
  std::string_view bytes = std::string_view(client.input).substr(client.served, size);
  if (version != TcpStoreVersion::Torch2_2) {
    tcpstore::encode(encoded, TcpStoreVersion::Torch2_2, request_);
    bytes = encoded;
  }
  const bool waits = request_.op == Op::Wait || request_.op == Op::Barrier;
  // With a wait pending it cannot move to a connection of its own.
  send(stream, client, bytes, client.is_waiting());
  if (waits) ++client.own_waits;
  client.unsynced = true;
  if (waits || row_of(request_.op).reply == ReplyShape::None) {
    client.served += size;
    return;
  }
  client.cancels = request_.op == Op::CancelWait;
  client.asked = size;
  client.awaits = Awaits::Answer;
}

void RelayMux::send(Stream stream, Client& client, std::string_view bytes, bool whole) {
  client.touched = true;
  relay_frames::append_frame(to_store_, stream, whole ? Type::WholeRequest : Type::Request, bytes);
}

// What it has said must be done before what it says on another connection.
void RelayMux::promote(Stream stream, Client& client) {
  if (!client.unsynced) {
    client.fate = Fate::Own;
    return change(stream, client);
  }
  tcpstore::Request ping;
  ping.op = Op::Ping;
  std::string bytes;
  tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, ping);
  send(stream, client, bytes, false);
  client.awaits = Awaits::Sync;
}

void RelayMux::close(Stream stream, Client& client, std::string_view reason) {
  if (client.fate == Fate::Closing) return;
  drop_shares(stream, client);
  if (client.touched && client.awaits != Awaits::Leave) send_leave(stream, client);
  client.awaits = Awaits::Leave;  // nothing more is sent for it
  client.fate = Fate::Closing;
  client.reason = reason;
  take_off(client.input, client.input.size());
  client.served = 0;
  change(stream, client);
}

void RelayMux::reply(Stream stream, Client& client, std::string_view bytes) {
  if (!client.lost) client.output += bytes;
  change(stream, client);
}

// ---- waits ----

// Whoever joins a WAIT that is on its way or at the store may do so too late: the key may have been
// there since, and be gone. So it counts from the moment on at which the store answers something
// that was said later; if the WAIT is over before, another one begins. Likewise what the client has
// said before it may be on its way still, and be refused.
void RelayMux::share_wait(Stream stream, Client& client, const std::string& key) {
  const auto found = waits_of_.find(key);
  const bool is_first = found == waits_of_.end();
  const Stream wait = is_first ? begin_shared_wait(key) : found->second;
  SharedWait& shared = shared_waits_.at(wait);
  const bool is_late = !is_first && (client.unsynced || taken_ > shared.begins);
  shared.members.push_back({stream, is_late ? last_sync_ + 1 : 0});
  client.touched = true;
  client.shares.push_back(wait);
  if (!is_late) return;
  ++client.joins;
  client.awaits = Awaits::Join;
  joins_.push_back(stream);
}

RelayMux::Stream RelayMux::begin_shared_wait(const std::string& key) {
  const Stream wait = next_stream();
  tcpstore::Request request;
  request.op = Op::Wait;
  request.keys = {key};
  std::string bytes;
  tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, request);
  shared_waits_.emplace(wait, SharedWait{key, taken_ + to_store_.size()});
  waits_of_[key] = wait;
  relay_frames::append_frame(to_store_, wait, Type::SharedWait, bytes);
  return wait;
}

void RelayMux::drop_shares(Stream stream, Client& client) {
  for (const Stream wait : std::exchange(client.shares, {})) {
    auto& members = shared_waits_.at(wait).members;
    std::erase_if(members, [&](const SharedWait::Member& m) { return m.client == stream; });
    if (members.empty()) deserted_.push_back(wait);
  }
  client.joins = 0;
  if (client.awaits == Awaits::Join) client.awaits = Awaits::Nothing;
}

// Its share of that WAIT: it is no longer a member. It may have come too late to others.
void RelayMux::take_member_off(Client& client, Stream wait, const SharedWait::Member& member) {
  client.shares.erase(std::find(client.shares.begin(), client.shares.end(), wait));
  if (member.sync == 0 || --client.joins > 0) return;
  if (client.awaits == Awaits::Join) client.awaits = Awaits::Nothing;
}

// The store has it no more, or is to forget it.
void RelayMux::end_shared_wait(Stream wait) {
  const auto it = shared_waits_.find(wait);
  const auto by_key = waits_of_.find(it->second.key);
  if (by_key != waits_of_.end() && by_key->second == wait) waits_of_.erase(by_key);
  shared_waits_.erase(it);
}

void RelayMux::note_queue(std::string_view key) {
  if (queues_.size() >= kMostQueues) queues_.clear();
  queues_.emplace(key);
}

// All that came before it was sent are members.
void RelayMux::take_sync() {
  syncs_ = false;
  const std::uint64_t answered = last_sync_;
  std::vector<Stream> later;
  for (const Stream stream : std::exchange(joins_, {})) {
    const auto it = clients_.find(stream);
    if (it == clients_.end() || it->second.joins == 0) continue;
    for (const Stream wait : it->second.shares)
      for (SharedWait::Member& member : shared_waits_.at(wait).members) {
        if (member.client != stream || member.sync == 0 || member.sync > answered) continue;
        member.sync = 0;
        --it->second.joins;
      }
    if (it->second.joins > 0) {
      later.push_back(stream);
      continue;
    }
    it->second.awaits = Awaits::Nothing;
    it->second.unsynced = false;
    go_on(stream, it->second);
  }
  joins_.insert(joins_.begin(), later.begin(), later.end());
}

void RelayMux::take_woken(Stream wait) {
  const std::string key = shared_waits_.at(wait).key;
  const auto members = std::exchange(shared_waits_.at(wait).members, {});
  end_shared_wait(wait);
  std::vector<Stream> go;
  for (const SharedWait::Member& member : members) {
    Client& client = clients_.at(member.client);
    const bool is_late = member.sync > 0;
    take_member_off(client, wait, member);
    if (is_late) {
      share_wait(member.client, client, key);
      go.push_back(member.client);
    } else {
      reply(member.client, client, {&tcpstore::kStopWaiting, 1});
    }
  }
  for (const Stream stream : go)
    if (const auto it = clients_.find(stream); it != clients_.end()) go_on(stream, it->second);
}

// The store wakes one waiter. Those that are too late wait by themselves, like all others from now
// on.
void RelayMux::take_push(Stream wait, std::string_view queue) {
  note_queue(queue);
  const auto it = shared_waits_.find(wait);
  if (it == shared_waits_.end())
    return relay_frames::append_frame(to_store_, wait, Type::PassOn, queue);
  waits_of_.erase(it->second.key);
  auto& members = it->second.members;
  std::vector<SharedWait::Member> late;
  for (const SharedWait::Member& member : members)
    if (member.sync > 0) late.push_back(member);
  std::erase_if(members, [](const SharedWait::Member& member) { return member.sync > 0; });
  const bool is_taken = !members.empty();
  if (is_taken) {
    const SharedWait::Member first = members.front();
    members.erase(members.begin());
    Client& client = clients_.at(first.client);
    take_member_off(client, wait, first);
    reply(first.client, client, {&tcpstore::kStopWaiting, 1});
  } else {
    relay_frames::append_frame(to_store_, wait, Type::PassOn, queue);
  }
  if (members.empty()) deserted_.push_back(wait);
  tcpstore::Request request;
  request.op = Op::Wait;
  request.keys = {queue};
  std::string bytes;
  tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, request);
  for (const SharedWait::Member& member : late) {
    Client& client = clients_.at(member.client);
    take_member_off(client, wait, member);
    send(member.client, client, bytes, false);
    ++client.own_waits;
    client.unsynced = true;
    go_on(member.client, client);
  }
}

void RelayMux::take_refused_wait(Stream wait, std::string_view reason) {
  const auto members = std::exchange(shared_waits_.at(wait).members, {});
  relay_frames::append_frame(to_store_, wait, Type::Leave);
  end_shared_wait(wait);
  for (const SharedWait::Member& member : members)
    take_member_off(clients_.at(member.client), wait, member);
  for (const SharedWait::Member& member : members)
    close(member.client, clients_.at(member.client), reason);
}

// ---- adds ----

void RelayMux::end_turn() {
  if (state_ != State::Open) return;
  for (const Stream wait : std::exchange(deserted_, {})) {
    const auto it = shared_waits_.find(wait);
    if (it == shared_waits_.end() || !it->second.members.empty()) continue;
    relay_frames::append_frame(to_store_, wait, Type::Leave);
    end_shared_wait(wait);
  }
  if (!syncs_ && !joins_.empty()) {
    syncs_ = true;
    tcpstore::Request ping;
    ping.op = Op::Ping;
    ping.nonce = static_cast<std::uint32_t>(++last_sync_);
    std::string bytes;
    tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, ping);
    relay_frames::append_frame(to_store_, kSync, Type::Request, bytes);
  }
  for (const std::string& key : std::exchange(keys_, {}))
    if (const auto it = adds_.find(key); it != adds_.end()) send_adds(it->first, it->second);
}

// Sums wrap around in the store as they do here, so that the last of several is what their sum
// gives, whatever the key held.
void RelayMux::send_adds(const std::string& key, Adds& adds) {
  if (!adds.sent.empty() || adds.waiting.empty()) return;
  if (adds.alone > 0) {
    --adds.alone;
    adds.sent.assign(adds.waiting.begin(), adds.waiting.begin() + 1);
    adds.waiting.erase(adds.waiting.begin());
  } else {
    adds.sent.swap(adds.waiting);
  }
  std::uint64_t sum = 0;
  for (const Term& term : adds.sent)
    sum += static_cast<std::uint64_t>(term.delta);
  const Stream stream = next_stream();
  tcpstore::Request request;
  request.op = Op::Add;
  request.key = key;
  request.number = static_cast<std::int64_t>(sum);
  std::string bytes;
  tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, request);
  relay_frames::append_frame(to_store_, stream, Type::Request, bytes);
  sums_.emplace(stream, key);
}

// False: it is not the answer to adds.
bool RelayMux::take_sum(Stream stream, std::string_view sum) {
  const auto sent = sums_.find(stream);
  if (sent == sums_.end()) return false;
  if (sum.size() != sizeof(std::int64_t)) {
    state_ = State::Broken;
    return true;
  }
  const std::string key = std::move(sent->second);
  sums_.erase(sent);
  const auto it = adds_.find(key);
  const std::vector<Term> terms = std::exchange(it->second.sent, {});
  if (it->second.waiting.empty())
    adds_.erase(it);
  else
    keys_.push_back(key);
  std::vector<std::uint64_t> sums(terms.size());
  auto value = load<std::uint64_t>(sum);
  for (std::size_t i = terms.size(); i-- > 0;) {
    sums[i] = value;
    value -= static_cast<std::uint64_t>(terms[i].delta);
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto client = clients_.find(terms[i].client);
    if (client == clients_.end() || client->second.awaits != Awaits::Sum) continue;
    std::string bytes;
    append(bytes, sums[i]);
    client->second.awaits = Awaits::Nothing;
    reply(terms[i].client, client->second, bytes);
    go_on(terms[i].client, client->second);
  }
  return true;
}

// Nothing was added. One by one some of them may pass: a sum may be longer than the store has room
// for. Of one that is refused alone the client is closed.
bool RelayMux::take_refused_adds(Stream stream, std::string_view reason) {
  const auto sent = sums_.find(stream);
  if (sent == sums_.end()) return false;
  relay_frames::append_frame(to_store_, stream, Type::Leave);
  const std::string key = std::move(sent->second);
  sums_.erase(sent);
  const auto it = adds_.find(key);
  Adds& adds = it->second;
  const std::vector<Term> terms = std::exchange(adds.sent, {});
  if (terms.size() > 1) {
    adds.waiting.insert(adds.waiting.begin(), terms.begin(), terms.end());
    adds.alone += terms.size();
  }
  if (adds.waiting.empty())
    adds_.erase(it);
  else
    keys_.push_back(key);
  if (terms.size() > 1) return true;
  const auto client = clients_.find(terms.front().client);
  if (client != clients_.end() && client->second.awaits == Awaits::Sum)
    close(terms.front().client, client->second, reason);
  return true;
}

// ---- the store ----

void RelayMux::on_store_took(std::size_t bytes) {
  taken_ += bytes;
  take_off(to_store_, bytes);
  if (to_store_.size() >= kMostToSend) return;
  for (const Stream stream : std::exchange(held_up_, {}))
    if (const auto it = clients_.find(stream); it != clients_.end()) go_on(stream, it->second);
}

void RelayMux::take_from_store(std::string_view bytes) {
  from_store_ += bytes;
  std::size_t taken = 0;
  while (state_ == State::Opening || state_ == State::Open) {
    const auto found =
        control::next_frame(std::string_view(from_store_).substr(taken), control::kLongestReply);
    if (found.status == control::FrameStatus::NeedMore) break;
    if (found.status != control::FrameStatus::Complete) {
      state_ = State::Broken;
      break;
    }
    if (state_ == State::Opening)
      take_opening(found.frame);
    else
      take_frame(found.frame);
    taken += found.size;
  }
  take_off(from_store_, taken);
}

void RelayMux::take_opening(const control::Frame& frame) {
  control::Reply reply;
  if (control::decode_reply(frame, reply) != control::DecodeStatus::Ok) {
    state_ = State::Broken;
  } else if (std::holds_alternative<control::Done>(reply) && frame.request == kBegin) {
    state_ = State::Open;
    resume_all();
  } else if (const auto* error = std::get_if<control::Error>(&reply)) {
    const bool old = error->code == control::ErrorCode::UnknownRequest && frame.request == kBegin;
    state_ = old ? State::Refused : State::Broken;
    if (old)
      for (auto& [stream, client] : clients_)
        promote(stream, client);
  } else if (!std::holds_alternative<control::Welcome>(reply)) {
    state_ = State::Broken;
  }
}

void RelayMux::resume_all() {
  std::vector<Stream> streams;
  for (const auto& [stream, client] : clients_)
    streams.push_back(stream);
  std::sort(streams.begin(), streams.end());
  for (const Stream stream : streams)
    go_on(stream, clients_.at(stream));
}

void RelayMux::take_frame(const control::Frame& frame) {
  const auto stream = static_cast<Stream>(frame.request);
  const auto it = clients_.find(stream);
  Client* client = it == clients_.end() ? nullptr : &it->second;
  switch (static_cast<Type>(frame.type)) {
    case Type::Answer:
      if (stream == kSync) return take_sync();
      if (take_sum(stream, frame.body) || client == nullptr) return;
      if (client->awaits == Awaits::Sync) {
        client->awaits = Awaits::Nothing;
        client->unsynced = false;
        return promote(stream, *client);
      }
      if (client->awaits != Awaits::Answer) return;
      client->awaits = Awaits::Nothing;
      client->unsynced = false;
      if (std::exchange(client->cancels, false)) client->own_waits = 0;
      take_off(client->input, std::exchange(client->asked, 0));
      reply(stream, *client, frame.body);
      return go_on(stream, *client);
    case Type::Woken:
      if (shared_waits_.contains(stream)) return take_woken(stream);
      if (client == nullptr || client->fate != Fate::Served || client->has_given_up()) return;
      if (client->own_waits == 0) return;
      --client->own_waits;
      return reply(stream, *client, {&tcpstore::kStopWaiting, 1});
    case Type::TooLong:
      if (client == nullptr || client->awaits != Awaits::Answer) return;
      client->awaits = Awaits::Nothing;
      client->unsynced = false;
      client->asked = 0;
      return promote(stream, *client);
    case Type::Pushed:
      return take_push(stream, frame.body);
    case Type::Closed:
      if (shared_waits_.contains(stream)) return take_refused_wait(stream, frame.body);
      if (take_refused_adds(stream, frame.body) || client == nullptr) return;
      return close(stream, *client, frame.body);
    default:
      break;
  }
  const bool is_done = frame.type == static_cast<std::uint8_t>(control::FrameType::Done);
  if (!is_done || (client != nullptr && client->leaves == 0)) {
    state_ = State::Broken;
  } else if (client != nullptr && --client->leaves == 0 && client->awaits == Awaits::Leave &&
             client->fate == Fate::Served) {
    client->fate = Fate::Closing;
    change(stream, *client);
  }
}

}  // namespace drun::store
