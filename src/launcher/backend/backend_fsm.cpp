#include "launcher/backend/backend_fsm.hpp"

#include <algorithm>
#include <utility>

#include "base/exit_codes.hpp"
#include "launcher/backend/backend_settings.hpp"
#include "launcher/backend/founding_fsm.hpp"
#include "rendezvous/messages.hpp"

namespace drun::launcher {
namespace {

using enum BackendState;
using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{250};
constexpr milliseconds kLongestPause{5'000};
constexpr milliseconds kOwnStoreLimit{5'000};  // a store that this very process serves
// How long an agent that this one replaces may still have the port, once its workers' lease is
// over.
constexpr milliseconds kPortLimit{2'000};
constexpr milliseconds kConnectingInterval{500};  // between two looks at a link that is not up yet
constexpr milliseconds kFollowLimit{2'000};       // of an agent that was sent to another place
constexpr int kMostPlaces = 4;
constexpr const char* kWaitLonger =
    "; start drun on the node that has this address, or wait longer with --rdzv-conf "
    "join_timeout=SECONDS";
constexpr const char* kWaitLongerForMore =
    "; start drun on the nodes that have these addresses, or wait longer with --rdzv-conf "
    "join_timeout=SECONDS";
constexpr const char* kWaitLongerForEtcd =
    "; check --rdzv-endpoint and that most members of the cluster run, or wait longer with "
    "--rdzv-conf join_timeout=SECONDS";

}  // namespace

BackendFsm::BackendFsm(const Options& options, Time now, PortHolder port_holder)
    : options_(options),
      deadline_(now + options.conf.join_timeout),
      port_holder_(std::move(port_holder)),
      next_pause_(kFirstPause) {}

BackendStep BackendFsm::start(Time now) {
  if (state_ != Idle) return {};
  return find(now);
}

// Whether this machine is to host is a question of addresses, so a name must be resolved first.
BackendStep BackendFsm::find(Time now) {
  if (options_.backend == Backend::Standalone) {
    state_ = Alone;
    return GoAlone{};
  }
  if (!options_.endpoints.empty()) {
    state_ = Founding;
    wake_ = now + kConnectingInterval;
    return Found{};
  }
  const bool may_host = options_.backend != Backend::Etcd && options_.conf.is_host.value_or(true);
  if (!may_host) return connect(Connecting, now);
  if (!unresolved_.empty() && now >= deadline_) return give_up_resolving(now);
  state_ = Resolving;
  return LookUp{};
}

BackendStep BackendFsm::on_resolved(bool own, Time now) {
  if (state_ != Resolving) return {};
  unresolved_.clear();
  if (!is_to_host(own)) return connect(Connecting, now);
  state_ = Binding;
  return BindRendezvous{hosting_note(own)};
}

// The first node of a static job hosts even if the address is not its own, as under torchrun: it
// may be one that is translated on the way, a service's or a cloud's.
bool BackendFsm::is_to_host(bool own) const {
  if (options_.conf.is_host) return *options_.conf.is_host;
  if (options_.backend != Backend::Static) return own;
  const bool first = options_.node_rank == 0 || options_.max_nodes == 1;
  const bool later = options_.node_rank.value_or(0) != 0;
  return first || (own && !later);
}

std::string BackendFsm::hosting_note(bool own) const {
  if (own || options_.conf.is_host) return "";
  return options_.endpoint.host +
         " is no address of this machine: node rank 0 carries the store on all of its own" +
         (options_.max_nodes > 1 ? "; a node that has it must be node rank 0 itself" : "");
}

// A name that is not there yet, as that of a pod that is still to start, is asked for again.
BackendStep BackendFsm::on_unresolved(const std::string& why, Time now) {
  if (state_ != Resolving) return {};
  unresolved_ = why;
  if (now >= deadline_) return give_up_resolving(now);
  pause(now);
  return Wait{waiting_text(unresolved_text() + "; trying again", now)};
}

std::string BackendFsm::unresolved_text() const {
  return "cannot resolve '" + options_.endpoint.host +
         "': " + (unresolved_.empty() ? "no answer" : unresolved_);
}

BackendStep BackendFsm::give_up_resolving(Time now) {
  return give_up(unresolved_text() + "; check " + options_.endpoint_flag, now);
}

BackendStep BackendFsm::on_bound(const Endpoint& own, Time now) {
  if (state_ != Binding && state_ != Contending) return {};
  own_ = own;
  port_limit_.reset();
  return open(now);
}

BackendStep BackendFsm::open(Time now) {
  state_ = Opening;
  wake_ = now + kConnectingInterval;
  link_cause_.clear();
  // It may have to wait for a job that looks for its store.
  const bool listens = listening(options_) > milliseconds(0);
  return Connect{*own_, listens ? std::max(kOwnStoreLimit, time_left(now)) : kOwnStoreLimit};
}

BackendStep BackendFsm::on_bind_failed(bool in_use, const std::string& why, Time now) {
  if (state_ == Contending) return wait_for_link(now);
  if (state_ != Binding) return {};
  // Another agent of this machine was first; or something that is no store, which the handshake
  // will tell.
  if (in_use && !options_.conf.is_host.value_or(false)) return connect(Contending, now);
  const std::string what = why + (in_use ? port_holder_() : "");
  if (!in_use) return give_up(what, now);
  // Who is told to host joins nobody else's store.
  if (!port_limit_)
    port_limit_ =
        std::min(deadline_, now + lease(options_, false).value_or(milliseconds(0)) + kPortLimit);
  if (now >= *port_limit_) return give_up(what, now);
  port_holder_text_ = what;
  pause(now);
  return Wait{waiting_text(what + "; trying again", now)};
}

BackendStep BackendFsm::on_unusable(const std::string& why, Time now) {
  switch (state_) {
    case Binding:
    case Contending:
    case Alone:
    case Joined:
      return give_up(why, now);
    default:
      return {};
  }
}

BackendStep BackendFsm::connect(BackendState state, Time now) {
  state_ = state;
  wake_ = now + kConnectingInterval;
  return Connect{options_.endpoint, std::max(milliseconds(0), time_left(now))};
}

BackendStep BackendFsm::on_link_up() {
  switch (state_) {
    case Founding:
    case Connecting:
    case Contending:
    case Following:
      state_ = Joined;
      return Join{};
    case Opening:
    case Alone:
      state_ = Hosting;
      return Join{};
    default:
      return {};
  }
}

// A broken link mends itself, unless the store went away for good before it knew this agent, with
// another job's agent perhaps. Nobody counts on this one then, so it looks for the store as if it
// had not found it.
BackendStep BackendFsm::on_link_down(const std::string& cause, bool dispensable, Time now) {
  if (state_ == Following) return look_again(cause, now);
  // A cluster of etcd does not go away with an agent. Its link knows which of its requests have no
  // answer yet, and goes on with them; a new link would leave them behind.
  if (state_ != Joined || !dispensable || options_.backend == Backend::Etcd) return {};
  return start_over(store_text() + " went away before it knew this node: " + cause,
                    "; looking for it again", now);
}

BackendStep BackendFsm::on_moved(const Endpoint& place, Time now) {
  switch (state_) {
    case Connecting:
    case Contending:
    case Opening:
      if (own_ && !sent_away_) sent_away_ = now;
      hops_ = 0;
      break;
    case Following:
      if (++hops_ >= kMostPlaces) return look_again("it is not there, either", now);
      break;
    default:
      return {};
  }
  state_ = Following;
  followed_ = place;
  wake_ = now + kFollowLimit;
  return Follow{place};
}

// The store may have moved on meanwhile, or the job may have ended.
BackendStep BackendFsm::look_again(const std::string& cause, Time now) {
  return start_over("the job's store is said to be at " + to_string(followed_) + ": " + cause,
                    "; looking for it again", now);
}

// Who serves at the endpoint, and was sent elsewhere from there, goes on telling others the same: a
// fresh store would begin the job once more, and the other one may only be out of touch.
BackendStep BackendFsm::start_over(const std::string& what, const std::string& next, Time now) {
  if (now >= deadline_) return give_up(what, now);
  pause(now);
  if (!may_be_looked_for(now)) {
    own_.reset();
    sent_away_.reset();
  }
  return StartOver{waiting_text(what + next, now), own_.has_value()};
}

// For so long the agents of a job that lives look for its store, and tell where it is then.
bool BackendFsm::may_be_looked_for(Time now) const {
  const auto limits = succession_limits(options_);
  return sent_away_ && now < *sent_away_ + limits.silence + limits.search;
}

BackendStep BackendFsm::on_link_failed(const std::string& detail, bool dispensable, Time now) {
  switch (state_) {
    case Connecting:
    case Contending:
    case Opening: {
      const std::string holder = state_ == Contending ? port_holder_() : "";
      const bool advise = holder.empty() && at_the_deadline(now);
      const char* advice = options_.backend == Backend::Etcd ? kWaitLongerForEtcd : kWaitLonger;
      return give_up(detail + holder + (advise ? advice : ""), now);
    }
    case Joined:
    case Hosting:
      if (dispensable && options_.backend == Backend::Etcd)
        return start_over(detail, "; trying again", now);
      state_ = Lost;  // how the job ends then is the participant's to say
      return {};
    default:
      return {};
  }
}

void BackendFsm::on_link_closed() {
  if (state_ == Joined || state_ == Hosting) state_ = Closed;
}

BackendStep BackendFsm::on_time(const std::string& cause, Time now) {
  const auto due = next_deadline();
  if (!due || now < *due) return {};
  switch (state_) {
    case Resolving:
      return give_up_resolving(now);
    case Pausing:
      // Not before the name is looked up again, which would be the reason then.
      if (port_limit_ && now >= *port_limit_) return give_up(port_holder_text_, now);
      return own_ ? open(now) : find(now);
    case Founding:
      wake_ = std::min(std::max(deadline_, now), now + kConnectingInterval);
      if (now >= deadline_) {
        const bool said = cause.ends_with(kSameList);
        return give_up(founding_text(cause) + (said ? "" : kWaitLongerForMore), now);
      }
      return Wait{waiting_text(founding_text(cause), now)};
    case Contending:
      link_cause_ = cause;
      wake_ = now + kConnectingInterval;
      return BindRendezvous{};
    case Following:
      return look_again(cause.empty() ? "no answer" : cause, now);
    default:  // Connecting, Opening
      link_cause_ = cause;
      wake_ = now + kConnectingInterval;
      return wait_for_link(now);
  }
}

BackendStep BackendFsm::wait_for_link(Time now) const {
  const std::string cause = link_cause_.empty() ? "no answer yet" : link_cause_;
  const std::string holder = state_ == Contending ? port_holder_() : "";
  return Wait{waiting_text(store_text() + ": " + cause + holder, now)};
}

std::string BackendFsm::founding_text(const std::string& cause) const {
  const std::size_t all = options_.endpoints.size();
  return "the store begins when the agents of " + std::to_string(all / 2 + 1) + " of " +
         std::to_string(all) + " endpoints have met: " + cause;
}

std::string BackendFsm::store_text() const {
  const std::string place = meeting_place(options_);
  return options_.backend == Backend::Etcd ? place : "the store at " + place;
}

void BackendFsm::leave() {
  if (!has_joined()) state_ = Over;
}

bool BackendFsm::has_joined() const {
  return state_ == Joined || state_ == Hosting || state_ == Lost || state_ == Closed;
}

std::optional<BackendFsm::Time> BackendFsm::next_deadline() const {
  switch (state_) {
    case Resolving:
      return deadline_;
    case Pausing:
    case Founding:
    case Connecting:
    case Contending:
    case Opening:
    case Following:
      return wake_;
    default:
      return std::nullopt;
  }
}

void BackendFsm::pause(Time now) {
  state_ = Pausing;
  wake_ = std::min(deadline_, now + next_pause_);
  next_pause_ = std::min(kLongestPause, next_pause_ * 3 / 2);
}

milliseconds BackendFsm::time_left(Time now) const {
  return std::chrono::duration_cast<milliseconds>(deadline_ - now);
}

std::string BackendFsm::waiting_text(const std::string& what, Time now) const {
  const milliseconds limit = options_.conf.join_timeout;
  const milliseconds elapsed = limit - time_left(now);
  return "waiting " + rendezvous::clock_text(elapsed) + rendezvous::left_text(elapsed, limit) +
         ": " + what;
}

bool BackendFsm::at_the_deadline(Time now) const {
  return now + kConnectingInterval >= deadline_;
}

rendezvous::Outcome BackendFsm::failure(std::string text, Time now) const {
  rendezvous::Outcome outcome;
  outcome.end = at_the_deadline(now) ? rendezvous::End::Timeout : rendezvous::End::StoreLost;
  outcome.exit_code = at_the_deadline(now) ? kTimeLimit : kDrunFailed;
  outcome.text = std::move(text);
  return outcome;
}

BackendStep BackendFsm::give_up(std::string text, Time now) {
  state_ = Over;
  return GiveUp{failure(std::move(text), now)};
}

}  // namespace drun::launcher
