#include "fuzz/control_stream.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "fuzz/fuzz.hpp"

namespace drun::fuzz {

namespace control = store::control;

void ControlStream::sent(const control::Frame& frame) {
  const auto type = static_cast<control::FrameType>(frame.type);
  Pending request{frame.request, type, 0, "", false};
  control::Request message;
  if (control::decode_request(frame, frame.body.size(), message) == control::DecodeStatus::Ok) {
    if (const auto* unwatch = std::get_if<control::Unwatch>(&message))
      request.argument = unwatch->watch;
    if (const auto* cancel = std::get_if<control::CancelWait>(&message))
      request.argument = cancel->wait;
    if (const auto* watch = std::get_if<control::Watch>(&message)) {
      request.key = watch->key;
      request.prefix = watch->prefix;
    }
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
    received(found.frame, reply, closed);
  }
  pass_waits();
  require(pending_.empty(), "every request but a wait is answered at once");
}

// A wait has no place in the order of replies once it was reached.
void ControlStream::pass_waits() {
  while (!pending_.empty() && pending_.front().type == control::FrameType::Wait) {
    waits_.insert(pending_.front().id);
    pending_.pop_front();
  }
}

void ControlStream::received(const control::Frame& frame, const control::Reply& reply,
                             bool closed) {
  if (!is_welcome_) {
    const bool refused = std::holds_alternative<control::VersionRefused>(reply);
    require(refused || std::holds_alternative<control::Welcome>(reply), "first it is welcomed");
    require(frame.request == 0, "a welcome answers no request");
    is_welcome_ = true;
    return;
  }
  if (const auto* changes = std::get_if<control::Changes>(&reply)) {
    const auto watch = watches_.find(frame.request);
    require(watch != watches_.end(), "changes are for a watch");
    return apply(watch->second, *changes);
  }
  if (frame.request == 0 && std::holds_alternative<control::SessionEnded>(reply)) return;
  pass_waits();
  const auto wait = waits_.find(frame.request);
  // A request may have the id of a wait only once that is over: the wait's answer comes first.
  if (wait != waits_.end() && std::holds_alternative<control::Done>(reply)) {
    waits_.erase(wait);
    return;
  }
  const bool is_error = std::holds_alternative<control::Error>(reply);
  if (!pending_.empty() && pending_.front().id == frame.request) {
    const Pending request = pending_.front();
    pending_.pop_front();
    // The error may have been that of a wait before it with the same id; then its own answer comes.
    if (is_error && wait != waits_.end()) unsure_.push_back(request);
    return answer(request, reply);
  }
  if (wait != waits_.end()) {
    waits_.erase(wait);
    if (is_error) return;
    const auto own = std::find_if(unsure_.begin(), unsure_.end(), [&](const Pending& request) {
      return request.id == frame.request;
    });
    require(own != unsure_.end(), "a wait is over or refused");
    const Pending request = *own;
    unsure_.erase(own);
    return answer(request, reply);
  }
  require(is_error && closed && !is_ended_, "replies come in the order of their requests");
  is_ended_ = true;
}

void ControlStream::answer(const Pending& request, const control::Reply& reply) {
  if (std::holds_alternative<control::Error>(reply)) return;
  if (const auto* snapshot = std::get_if<control::Snapshot>(&reply)) {
    require(request.type == control::FrameType::Watch, "a snapshot answers a watch");
    Mirror mirror{request.key, request.prefix, snapshot->revision, {}};
    for (const control::Entry& entry : snapshot->entries) {
      require(entry.value.has_value(), "a snapshot has values");
      require(mirror.entries.emplace(entry.key, *entry.value).second, "each key once");
    }
    require(watches_.emplace(request.id, std::move(mirror)).second, "a watch has its own id");
  }
  if (request.type == control::FrameType::Unwatch) watches_.erase(request.argument);
  if (request.type == control::FrameType::CancelWait) waits_.erase(request.argument);
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
