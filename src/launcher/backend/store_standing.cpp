#include "launcher/backend/store_standing.hpp"

#include <chrono>

#include "launcher/backend/backend_settings.hpp"
#include "rendezvous/keys.hpp"

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAskWhileFounding{500};
constexpr milliseconds kTellAgain{50};
// When a machine comes back, the first attempt that reaches it must come in time: a store that
// begins at a single endpoint listens for 75 ms (backend_settings.cpp), founders listen for 300 ms.
constexpr milliseconds kQuickPause{20};
constexpr milliseconds kQuickAttempt{25};
constexpr milliseconds kQuickAttemptOfMany{100};

}  // namespace

// A round and successors that it knows of stay: they are the job's.
void StoreStanding::start_over(bool serves_on) {
  hosting_ = has_moved_ = false;
  has_founded_ = has_founded_ && serves_on;
  is_jobs_own_ = false;
  generation_ = 0;
}

void StoreStanding::on_link_up(BackendState state, bool at_own_port, rendezvous::LinkEvent& event) {
  const bool first =
      !has_moved_ && (state == BackendState::Opening || state == BackendState::Hosting);
  event.hosting = hosting_ = first || at_own_port;
  // A newcomer, too, may lead at a store that has only just succeeded another.
  if (event.generation > 1 && event.generation != generation_)
    event.old_leases = control_options(options_, false, options_.endpoint, {}).time_to_live;
  generation_ = event.generation;
}

SuccessionPlan StoreStanding::on_vote(const rendezvous::Vote& vote,
                                      const std::vector<rendezvous::Successor>& successors) {
  has_round_ = has_round_ || vote.latest.exists();
  SuccessionPlan plan;
  plan.nodes = vote.latest.nodes;
  // The first store was never a node's of a round: it is a drun-store, or that of another job's
  // node. One whose node has left the job ends with it.
  is_jobs_own_ = is_jobs_own_ || vote.latest.casting >= 0;
  plan.store_may_return = options_.endpoints.empty() && generation_ <= 1 && !is_jobs_own_;
  others_.clear();
  is_successor_ = false;
  for (const auto& each : successors) {
    is_successor_ = is_successor_ || each.self;
    if (each.self) plan.own = plan.successors.size();
    plan.successors.push_back({each.address, each.port});
    if (!each.self) others_.push_back(plan.successors.back());
  }
  return plan;
}

// Two reasons to talk to the servers at the endpoints. An agent without a store asks them where it
// is. An agent with the store tells them, because newcomers go there first and would not look
// elsewhere; its successors tell them as well, so that newcomers hear of the job even if the agent
// with the store was just lost, and while the job looks for its store.
LookoutTask StoreStanding::lookout(BackendState state, bool founding,
                                   const SuccessionFsm* succession) const {
  if (succession == nullptr || is_lost_) return LookoutTask::None;
  const bool up = state == BackendState::Joined || state == BackendState::Hosting;
  // The first store of a single endpoint is where everybody looks for it.
  const bool elsewhere = generation_ > 1 || !options_.endpoints.empty();
  const bool hosts = hosting_ && elsewhere && !succession->is_searching();
  const bool may_host = is_successor_ && (elsewhere || succession->is_broken());
  if (up && (hosts || may_host))
    return succession->is_broken() ? LookoutTask::TellOfLoss : LookoutTask::TellPlace;
  if (founding) return LookoutTask::AskOften;
  // Whoever may be left alone with workers says early that there is a job.
  const bool lost =
      options_.endpoints.empty() ? succession->is_searching() : succession->is_broken();
  return lost ? LookoutTask::Ask : LookoutTask::None;
}

store::InquiryFsm::Options StoreStanding::inquiry(LookoutTask task) const {
  store::InquiryFsm::Options result;
  result.job = rendezvous::Keys(options_.run_id).prefix;
  result.founders = founders(options_).electorate.round;
  result.tls = options_.tls;
  if (task == LookoutTask::AskOften) result.period = kAskWhileFounding;
  if (tells(task)) result.retry = kTellAgain;
  return result;
}

store::InquiryFsm::Options StoreStanding::quick_inquiry() const {
  auto result = inquiry(LookoutTask::TellPlace);
  result.retry = kQuickPause;
  result.connecting = options_.endpoints.empty() ? kQuickAttempt : kQuickAttemptOfMany;
  return result;
}

store::StoreNews StoreStanding::news(LookoutTask task, const Endpoint& own,
                                     const Endpoint& store) const {
  store::StoreNews news;
  const bool place = task == LookoutTask::TellPlace;
  if (place || has_round_) news.generation = static_cast<std::uint64_t>(generation_);
  if (!place) return news;  // a job whose store is being looked for has no place
  news.port = hosting_ ? own.port : store.port;
  news.address = hosting_ ? own.host : store.host;
  return news;
}

std::string StoreStanding::key() const {
  return options_.tls == nullptr || options_.backend == Backend::Etcd ? "" : options_.tls->secret();
}

std::optional<Endpoint> StoreStanding::later_store(const store::Whereabouts& answer,
                                                   const Endpoint& endpoint) const {
  using Kind = store::Whereabouts::Kind;
  const bool known = answer.kind == Kind::Here || answer.kind == Kind::There;
  if (!known || answer.generation <= static_cast<std::uint64_t>(generation_)) return std::nullopt;
  return answer.place.host.empty() ? endpoint : answer.place;
}

}  // namespace drun::launcher
