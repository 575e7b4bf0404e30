#include "rendezvous/other_jobs.hpp"

#include <cstddef>

#include "base/counted.hpp"
#include "rendezvous/messages.hpp"

namespace drun::rendezvous {
namespace {

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

std::optional<OtherJobs::Member> OtherJobs::member(std::string_view key) const {
  if (!key.starts_with(kAllJobs) || key.starts_with(own_)) return std::nullopt;
  const auto rest = key.substr(kAllJobs.size());
  const auto end = rest.find('/');
  if (end == rest.npos || !rest.substr(end).starts_with(kMember)) return std::nullopt;
  return Member{rest.substr(0, end), rest.substr(end + kMember.size())};
}

void OtherJobs::apply(const Change& change) {
  const auto found = member(change.key);
  if (!found) return;
  const std::string id(found->job);
  const std::string ticket(found->ticket);
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
    text +=
        "'" + unescape_id(id).substr(0, kMaxName) + "' (" + counted(tickets.size(), "node") + ")";
  }
  return text;
}

}  // namespace drun::rendezvous
