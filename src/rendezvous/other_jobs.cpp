#include "rendezvous/other_jobs.hpp"

#include <cstddef>

namespace drun::rendezvous {
namespace {

constexpr std::size_t kMaxNames = 8;
constexpr std::size_t kMaxName = 64;
constexpr std::string_view kMember = "/member/";

}  // namespace

void OtherJobs::on_snapshot(const std::vector<Change>& entries) {
  members_.clear();
  on_changes(entries);
}

void OtherJobs::on_changes(const std::vector<Change>& changes) {
  for (const auto& change : changes)
    apply(change);
}

void OtherJobs::apply(const Change& change) {
  const std::string_view key = change.key;
  if (key.substr(0, kAllJobs.size()) != kAllJobs || key.substr(0, own_.size()) == own_) return;
  const auto rest = key.substr(kAllJobs.size());
  const auto end = rest.find('/');
  if (end == rest.npos || rest.substr(end, kMember.size()) != kMember) return;
  const std::string id(rest.substr(0, end));
  const std::string ticket(rest.substr(end + kMember.size()));
  if (change.value) {
    members_[id].insert(ticket);
    return;
  }
  const auto job = members_.find(id);
  if (job == members_.end()) return;
  job->second.erase(ticket);
  if (job->second.empty()) members_.erase(job);
}

std::string OtherJobs::text() const {
  std::string text;
  std::size_t shown = 0;
  for (const auto& [id, tickets] : members_) {
    if (!text.empty()) text += ", ";
    if (shown++ == kMaxNames) return text + "...";
    text += "'" + unescape_id(id).substr(0, kMaxName) + "' (" + std::to_string(tickets.size()) +
            (tickets.size() == 1 ? " node)" : " nodes)");
  }
  return text;
}

}  // namespace drun::rendezvous
