#include "fuzz/control_stream.hpp"

#include <utility>
#include <variant>

#include "fuzz/fuzz.hpp"

namespace drun::fuzz {

namespace control = store::control;

void ControlStream::sent(const control::Frame& frame, std::size_t keys_per_request) {
  Pending request;
  request.id = frame.request;
  control::Request message;
  const auto decoded = control::decode_request(frame, keys_per_request, message);
  request.is_malformed = decoded == control::DecodeStatus::Malformed;
  if (decoded == control::DecodeStatus::Ok) {
    if (const auto* unwatch = std::get_if<control::Unwatch>(&message))
      request.unwatches = unwatch->watch;
    request.may_be_silent = std::holds_alternative<control::Confirm>(message);
    request.is_called = std::holds_alternative<control::OpenSuccessor>(message);
    if (const auto* watch = std::get_if<control::Watch>(&message))
      request.watches = Mirror{std::string(watch->key), watch->prefix, 0, {}};
  }
  pending_.push_back(std::move(request));
}

void ControlStream::received(std::string_view bytes, bool closed) {
  while (!bytes.empty()) {
    const control::FrameResult found = control::next_frame(bytes, bytes.size());
    require(found.status == control::FrameStatus::Complete, "answers in whole frames");
    control::Reply reply;
    require(control::decode_reply(found.frame, reply) == control::DecodeStatus::Ok, "a reply");
    bytes.remove_prefix(found.size);
    received(found.frame.request, reply, closed);
  }
  skip_silent();
  require(pending_.empty(), "every request is answered at once");
}

void ControlStream::received(std::uint64_t id, const control::Reply& reply, bool closed) {
  if (!is_welcome_) {
    const bool refused = std::holds_alternative<control::VersionRefused>(reply);
    require(refused || std::holds_alternative<control::Welcome>(reply), "first it is welcomed");
    require(id == 0, "a welcome answers no request");
    is_welcome_ = true;
    return;
  }
  if (const auto* changes = std::get_if<control::Changes>(&reply)) {
    const auto watch = watches_.find(id);
    require(watch != watches_.end(), "changes are for a watch");
    return apply(watch->second, *changes);
  }
  if (id == 0 && std::holds_alternative<control::SessionEnded>(reply)) return;
  skip_silent();
  if (!pending_.empty() && pending_.front().id == id) {
    // A call, which the session follows.
    if (pending_.front().is_called && std::holds_alternative<control::Pulsed>(reply)) return;
    Pending request = std::move(pending_.front());
    pending_.pop_front();
    return answer(std::move(request), reply);
  }
  const bool is_error = std::holds_alternative<control::Error>(reply);
  require(is_error && closed && !is_ended_, "replies come in the order of their requests");
  is_ended_ = true;
}

void ControlStream::skip_silent() {
  while (!pending_.empty() && pending_.front().may_be_silent && !is_in_use(pending_.front().id))
    pending_.pop_front();
}

bool ControlStream::is_in_use(std::uint64_t id) const {
  return id == 0 || watches_.contains(id);
}

void ControlStream::answer(Pending request, const control::Reply& reply) {
  if (const auto* error = std::get_if<control::Error>(&reply)) {
    require(request.is_malformed == (error->code == control::ErrorCode::Malformed),
            "what is malformed is refused as such");
    require(request.is_malformed ||
                is_in_use(request.id) == (error->code == control::ErrorCode::RequestIdInUse),
            "only an id in use is refused as such");
    return;
  }
  require(!request.is_malformed && !is_in_use(request.id), "what is not right is refused");
  const auto* snapshot = std::get_if<control::Snapshot>(&reply);
  require(request.watches.has_value() == (snapshot != nullptr), "a snapshot answers a watch");
  if (snapshot != nullptr) {
    request.watches->revision = snapshot->revision;
    for (const control::Entry& entry : snapshot->entries) {
      require(entry.value.has_value(), "a snapshot has values");
      const auto [_, is_new] =
          request.watches->entries.emplace(entry.key, std::string(*entry.value));
      require(is_new, "each key once");
    }
    watches_.emplace(request.id, std::move(*request.watches));
  }
  if (request.unwatches) watches_.erase(*request.unwatches);
}

void ControlStream::apply(Mirror& mirror, const control::Changes& changes) {
  require(changes.revision > mirror.revision, "each change comes once, in order");
  mirror.revision = changes.revision;
  std::set<std::string_view> seen;
  for (const control::Entry& change : changes.changes) {
    require(seen.insert(change.key).second, "a key changes once at a time");
    const bool watched = mirror.prefix ? change.key.starts_with(mirror.key)  //
                                       : change.key == mirror.key;
    require(watched, "nothing that is not watched");
    if (change.value)
      mirror.entries[std::string(change.key)] = *change.value;
    else
      mirror.entries.erase(std::string(change.key));
  }
}

void ControlStream::check_watches(const store::KeyTable& table) const {
  for (const auto& [id, mirror] : watches_) {
    std::size_t count = 0;
    table.for_each([&](std::string_view key, std::string_view value, store::SessionId) {
      if (mirror.prefix ? !key.starts_with(mirror.key) : key != mirror.key) return;
      ++count;
      const auto known = mirror.entries.find(std::string(key));
      require(known != mirror.entries.end() && known->second == value, "a watch misses nothing");
    });
    require(count == mirror.entries.size(), "a watch knows of what has gone");
  }
}

}  // namespace drun::fuzz
