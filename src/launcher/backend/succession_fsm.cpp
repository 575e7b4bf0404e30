#include "launcher/backend/succession_fsm.hpp"

#include <algorithm>
#include <utility>

#include "rendezvous/messages.hpp"

namespace drun::launcher {
namespace {

constexpr int kMostHops = 4;

}  // namespace

// Who is named anew is there again, whatever this agent has seen before: a newcomer has not, and
// must ask the same ones first.
void SuccessionFsm::set_plan(SuccessionPlan plan) {
  if (plan.successors != plan_.successors) been_at_.clear();
  plan_ = std::move(plan);
}

void SuccessionFsm::on_link_up() {
  if (state_ == Visiting || state_ == Standing) {
    if (!is_glance_) store_ = found_ ? *found_ : asked_.successors[at_];
    was_glance_ = is_glance_;
    if (!has_been_at(store_)) been_at_.push_back(store_);
  }
  found_.reset();
  is_glance_ = false;
  if (state_ != Over) state_ = Settled;
}

SuccessionStep SuccessionFsm::on_link_down(const Break& how, Time now) {
  switch (state_) {
    case Settled: {
      state_ = Retrying;
      // Without a successor the others wait as long for a link that mends, however it broke. Who
      // notices so late was suspended, and the store may be where it was.
      due_ = has_successors() ? std::max(now - how.silent + limits_.silence, now + limits_.glance)
                              : now + limits_.keep_alive;
      return wait_or_search(how, now);
    }
    case Retrying:
      return wait_or_search(how, now);
    case Visiting:
    case Standing:
      if (how.moved && hops_ < kMostHops) {
        ++hops_;
        return visit(*how.moved, now);
      }
      if (is_glance_) return resume(now);
      return how.early && !found_ ? ask_again(now) : next(now);
    case Pausing:
    case Over:
      return {};
  }
  return {};
}

SuccessionStep SuccessionFsm::on_found(const Endpoint& store, Time now) {
  if (!is_searching() || found_ == store) return {};
  return visit(store, now);
}

// If it is not there any more, the search goes on where it was.
SuccessionStep SuccessionFsm::visit(const Endpoint& store, Time now) {
  found_ = store;
  asked_at_ = now;
  turn_end_ = std::min(search_end_, now + turn_);
  due_ = std::max(turn_end_, now + limits_.glance);
  is_early_ = is_glance_ = false;
  state_ = Visiting;
  return Visit{store};
}

// A store that is gone for good is waited for no longer, unless there is no other. If one was found
// that has had no majority since then, the search goes on.
SuccessionStep SuccessionFsm::wait_or_search(const Break& how, Time now) {
  is_dead_ = how.refused && !plan_.store_may_return;
  if (how.moved) {
    (void)search(now);
    return visit(*how.moved, now);
  }
  if (how.over && now - how.silent < asked_at_) return was_glance_ ? resume(now) : next(now);
  const bool gone = how.over || is_dead_;
  if (gone && has_successors()) return search(now);
  if (how.over) return give_up_waiting(how.cause);
  return {};
}

SuccessionStep SuccessionFsm::on_stand_failed(Time now) {
  if (state_ != Standing) return {};
  asked_.own.reset();
  asked_.successors.erase(asked_.successors.begin() + static_cast<std::ptrdiff_t>(at_));
  if (asked_.successors.empty()) return give_up_search();
  return ask(now);
}

SuccessionStep SuccessionFsm::on_time(const std::string& cause, Time now) {
  const auto due = next_deadline();
  if (!due || now < *due) return {};
  switch (state_) {
    case Retrying:
      return has_successors() ? search(now) : give_up_waiting(cause);
    case Visiting:
    case Standing:
      any_waited_ = true;
      if (is_glance_ || now < turn_end_) return is_glance_ ? resume(now) : glance(now);
      return next(now);
    case Pausing:
      if (!std::exchange(is_early_, false)) return ask(now);
      return may_glance() && now < turn_end_ ? glance(now) : resume(now);
    default:
      return {};
  }
}

bool SuccessionFsm::has_been_at(const Endpoint& store) const {
  return std::find(been_at_.begin(), been_at_.end(), store) != been_at_.end();
}

// Successors whose store this agent has lost come last, and after them the lost store itself, which
// may be in touch again with the others. While a successor serves, another node takes its place in
// the list, and not every agent may hear of that before this store is lost, too. All agents must
// begin with the same successor nevertheless: otherwise one would be a step ahead of the others at
// every turn.
SuccessionPlan SuccessionFsm::to_be_asked() const {
  SuccessionPlan plan{{}, std::nullopt, plan_.nodes};
  for (const bool lost : {false, true}) {
    for (std::size_t i = 0; i < plan_.successors.size(); ++i) {
      if (has_been_at(plan_.successors[i]) != lost) continue;
      if (plan_.own == i) plan.own = plan.successors.size();
      plan.successors.push_back(plan_.successors[i]);
    }
  }
  const auto lost = std::find(plan.successors.begin(), plan.successors.end(), store_);
  if (lost == plan.successors.end()) plan.successors.push_back(store_);
  return plan;
}

SuccessionStep SuccessionFsm::search(Time now) {
  asked_ = to_be_asked();
  search_end_ = now + limits_.search;
  pass_began_ = now;
  turn_ = limits_.turn;
  at_ = 0;
  any_waited_ = false;
  found_.reset();
  hops_ = 0;
  is_last_ = false;
  return ask(now);
}

SuccessionStep SuccessionFsm::next(Time now) {
  any_waited_ = any_waited_ || now - asked_at_ >= limits_.pause;
  if (!std::exchange(found_, std::nullopt)) ++at_;
  return ask(now);
}

SuccessionStep SuccessionFsm::ask(Time now) {
  if (now >= search_end_) return end_search(now);
  if (at_ >= asked_.successors.size()) {
    at_ = 0;
    const auto pass = std::chrono::ceil<Duration>(now - std::exchange(pass_began_, now));
    turn_ = std::min(limits_.longest_turn, std::max(2 * turn_, pass));
    // All of them refused at once: without a pause this would spin.
    if (!std::exchange(any_waited_, false)) return pause(now);
  }
  if (asked_.successors.empty()) return pause(now);
  asked_at_ = now;
  is_glance_ = false;
  turn_end_ = std::min(search_end_, now + turn_);
  return wait_there(now);
}

SuccessionStep SuccessionFsm::wait_there(Time now) {
  const bool first_pass = turn_ == limits_.turn;
  const Time glance = are_two() ? now + limits_.turn : turn_end_ - limits_.glance;
  due_ = !first_pass && may_glance() && now < glance ? std::min(glance, turn_end_) : turn_end_;
  state_ = asked_.own == at_ ? Standing : Visiting;
  if (state_ == Standing) return Stand{};
  return Visit{asked_.successors[at_]};
}

// Of two nodes nobody waits here without being enough.
bool SuccessionFsm::may_glance() const {
  return !is_dead_ && (asked_.own != at_ || are_two()) && asked_.successors[at_] != store_;
}

// Agents notice a loss at different times. Who went on at once would be ahead of the others at
// every turn, and might never meet them.
SuccessionStep SuccessionFsm::ask_again(Time now) {
  is_early_ = true;
  state_ = Pausing;
  due_ = std::min(turn_end_, now + limits_.pause);
  return {};
}

SuccessionStep SuccessionFsm::glance(Time now) {
  is_glance_ = true;
  asked_at_ = now;
  due_ = std::min(turn_end_, now + limits_.glance);
  state_ = Visiting;
  return Visit{store_};
}

SuccessionStep SuccessionFsm::resume(Time now) {
  is_glance_ = false;
  if (is_last_) return give_up_search();
  if (now >= turn_end_) return next(now);
  return wait_there(now);
}

SuccessionStep SuccessionFsm::pause(Time now) {
  state_ = Pausing;
  due_ = std::min(search_end_, now + limits_.pause);
  return {};
}

SuccessionStep SuccessionFsm::give_up_waiting(const std::string& cause) {
  state_ = Over;
  return GiveUpSearch{
      "lost the store at " + to_string(store_) + " and could not reach it again within " +
      rendezvous::duration_text(limits_.keep_alive) + (cause.empty() ? "" : ": " + cause)};
}

// The way to the store may be open again since it was asked last.
SuccessionStep SuccessionFsm::end_search(Time now) {
  if (std::exchange(is_last_, true)) return give_up_search();
  is_glance_ = true;
  asked_at_ = now;
  due_ = now + limits_.glance;
  state_ = Visiting;
  return Visit{store_};
}

SuccessionStep SuccessionFsm::give_up_search() {
  state_ = Over;
  std::string places;
  for (const auto& each : plan_.successors)
    places += (places.empty() ? "" : ", ") + to_string(each);
  if (places.empty())
    return GiveUpSearch{"the job's store is not at " + to_string(store_) +
                        " any more, and within " + rendezvous::duration_text(limits_.search) +
                        " it was found nowhere else"};
  return GiveUpSearch{
      "lost the store at " + to_string(store_) + ", and within " +
      rendezvous::duration_text(limits_.search) + " no majority of the round's " +
      std::to_string(asked_.nodes) + " nodes met at a successor (" + places +
      "); a job of more nodes or at an etcd cluster goes on without it, and --rdzv-conf quorum=1 "
      "lets any node that is left go on, even if the others run, too; successors=N names more "
      "places to meet at"};
}

bool SuccessionFsm::is_searching() const {
  return state_ == Visiting || state_ == Standing || state_ == Pausing;
}

std::optional<SuccessionFsm::Time> SuccessionFsm::next_deadline() const {
  if (state_ == Settled || state_ == Over) return std::nullopt;
  return due_;
}

}  // namespace drun::launcher
