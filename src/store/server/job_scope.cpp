#include "store/server/job_scope.hpp"

#include <algorithm>
#include <variant>

#include "store/table/job_shares.hpp"

namespace drun::store {
namespace {

std::string below(std::string_view root, std::string_view job) {
  return std::string(root).append(job) + "/";
}

}  // namespace

JobScope::JobScope(std::string_view job)
    : job_(job), keys_(below(kJobsRoot, job)), stacks_(below(kStacksRoot, job)) {}

bool JobScope::holds(const tcpstore::Request& request) const {
  using tcpstore::Op;
  switch (request.op) {
    case Op::Validate:
    case Op::Ping:
    case Op::CancelWait:
    case Op::GetNumKeys:  // are answered of the job's alone
    case Op::ListKeys:
      return true;
    case Op::Check:
    case Op::Wait:
    case Op::MultiGet:
    case Op::MultiSet:
      return std::ranges::all_of(request.keys, [this](std::string_view key) { return holds(key); });
    default:
      return holds(request.key);
  }
}

bool JobScope::narrow_prefix(std::string_view& prefix) const {
  if (holds(prefix)) return true;
  for (const std::string* own : {&keys_, &stacks_}) {
    if (!own->starts_with(prefix)) continue;
    prefix = *own;
    return true;
  }
  return false;
}

bool JobScope::narrow(control::Request& request) const {
  if (auto* watch = std::get_if<control::Watch>(&request))
    return watch->prefix ? narrow_prefix(watch->key) : holds(watch->key);
  if (auto* words = std::get_if<control::LastWords>(&request)) return narrow_prefix(words->prefix);
  if (auto* find = std::get_if<control::Find>(&request)) {
    if (find->job.empty()) find->job = keys_;
    return find->job == keys_;
  }
  if (const auto* transaction = std::get_if<control::Transaction>(&request)) {
    const auto is_own = [this](const auto& each) { return holds(each.key); };
    return std::ranges::all_of(transaction->guards, is_own) &&
           std::ranges::all_of(transaction->writes, is_own);
  }
  if (const auto* open = std::get_if<control::OpenSuccessor>(&request)) return open->job == keys_;
  if (const auto* pulse = std::get_if<control::Pulse>(&request)) return pulse->job == keys_;
  if (const auto* gone = std::get_if<control::Gone>(&request)) return gone->job == keys_;
  // Of all jobs together.
  return !std::holds_alternative<control::Stats>(request);
}

std::string JobScope::refusal() const {
  return "knows this token as that of the job " + job_ + " alone";
}

}  // namespace drun::store
