#include "rendezvous/last_to_leave.hpp"

#include <utility>

#include "rendezvous/documents.hpp"

namespace drun::rendezvous {

LastToLeave::LastToLeave(Milliseconds limit, std::string ticket, const Keys& keys, Outbox& outbox)
    : limit_(limit), ticket_(std::move(ticket)), keys_(keys), outbox_(outbox) {}

void LastToLeave::listen() {
  if (watch_ == 0) watch_ = outbox_.watch(keys_.members, true);
}

void LastToLeave::begin(Time now) {
  if (begun_) return;
  begun_ = now;
  listen();
}

void LastToLeave::on_snapshot(const WatchSnapshot& snapshot) {
  if (watch_ == 0 || snapshot.watch != watch_) return;
  others_.emplace();
  for (const auto& entry : snapshot.entries) {
    others_->insert(entry.key);
    note_end(entry);
  }
  others_->erase(keys_.member(ticket_));
}

// Each is kept when its member has gone.
void LastToLeave::note_end(const Change& member) {
  if (!member.value || member.key == keys_.member(ticket_)) return;
  if (member.value->find("\"end\":") == std::string::npos) return;  // of thousands, after a success
  auto document = decode_member(*member.value);
  if (document && !document->end.empty()) ends_[member.key] = std::move(document->end);
}

void LastToLeave::on_changes(const WatchChanges& changes) {
  if (watch_ == 0 || changes.watch != watch_ || !others_) return;
  for (const auto& change : changes.changes) {
    const auto& [key, value] = change;
    if (key == keys_.member(ticket_)) continue;
    if (value) {
      others_->insert(key);
      note_end(change);
    } else {
      others_->erase(key);
    }
  }
}

LastToLeave::State LastToLeave::state() const {
  if (!begun_) return State::Open;
  if (!others_) return State::Asking;
  return others_->empty() ? State::Alone : State::Waiting;
}

std::vector<std::string> LastToLeave::ends() const {
  std::vector<std::string> ends;
  for (const auto& [member, end] : ends_)
    ends.push_back(end);
  return ends;
}

std::optional<Time> LastToLeave::limit() const {
  return begun_ ? std::optional(*begun_ + limit_) : std::nullopt;
}

}  // namespace drun::rendezvous
