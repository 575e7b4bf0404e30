#include "launcher/views/job_watch.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace drun::launcher {

JobWatch::JobWatch(const std::string& run_id, rendezvous::WatchId watch, AtEnd at_end)
    : keys_(run_id), id_(watch), at_end_(at_end) {}

bool JobWatch::ends_job(const rendezvous::WatchChanges& changes) const {
  return std::any_of(
      changes.changes.begin(), changes.changes.end(),
      [this](const rendezvous::Change& each) { return each.key == keys_.outcome && each.value; });
}

void JobWatch::set_link(rendezvous::KeyValue* link) {
  link_ = link;
  rejected_ = false;
  if (wanted_ && link_ != nullptr) link_->watch(id_, keys_.prefix, true);
}

void JobWatch::begin() {
  if (wanted_) return;
  wanted_ = true;
  if (link_ != nullptr) link_->watch(id_, keys_.prefix, true);
}

void JobWatch::end() {
  if (!wanted_) return;
  wanted_ = came_ = rejected_ = false;
  if (link_ != nullptr) link_->unwatch(id_);
}

bool JobWatch::on_event(const rendezvous::KeyValueEvent& event) {
  if (const auto* snapshot = std::get_if<rendezvous::WatchSnapshot>(&event)) {
    if (snapshot->watch != id_) return false;
    if (!wanted_ || over_) return true;
    documents_.clear();
    known_ = came_ = true;
    for (const auto& entry : snapshot->entries)
      if (entry.value) documents_.insert_or_assign(entry.key, *entry.value);
    return true;
  }
  if (const auto* changes = std::get_if<rendezvous::WatchChanges>(&event)) {
    if (changes->watch != id_) return false;
    over_ |= at_end_ == AtEnd::KeepWhatWas && ends_job(*changes);
    if (!came_ || over_) return true;
    for (const auto& change : changes->changes) {
      if (change.value)
        documents_.insert_or_assign(change.key, *change.value);
      else
        documents_.erase(change.key);
    }
    return true;
  }
  if (const auto* rejected = std::get_if<rendezvous::WatchRejected>(&event)) {
    if (rejected->watch != id_) return false;
    rejected_ = true;
    return true;
  }
  if (const auto* link = std::get_if<rendezvous::LinkEvent>(&event);
      link != nullptr &&
      (link->link == rendezvous::Link::Closed || link->link == rendezvous::Link::Failed))
    link_ = nullptr;
  return false;
}

std::optional<jobs::JobView> job_of(const jobs::Documents& documents,
                                    const status::AgentStatus& own) {
  auto found = jobs::jobs_in(documents);
  if (!found.empty()) return std::move(found.front());
  if (own.round > 0) return std::nullopt;
  jobs::JobView job;
  job.id = own.job;
  job.round.number = own.round;
  job.round.waiting = own.waiting;
  return job;
}

jobs::AgentMetrics metrics_of(const status::AgentStatus& own) {
  return {own.job, own.host, std::string(name_of(own.phase)), own.phase == status::Phase::Running,
          own.workers};
}

}  // namespace drun::launcher
