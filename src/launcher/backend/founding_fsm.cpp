#include "launcher/backend/founding_fsm.hpp"

#include <algorithm>

#include "base/deadline.hpp"

namespace drun::launcher {
namespace {

using Kind = store::Whereabouts::Kind;

}  // namespace

FoundingFsm::FoundingFsm(std::vector<Endpoint> endpoints, const Limits& limits)
    : endpoints_(std::move(endpoints)), limits_(limits), answers_(endpoints_.size()) {}

void FoundingFsm::start(Time now) {
  first_step_ = now + limits_.turn;
  listens_until_ = now + limits_.listening;
  state_ = Listening;
  hops_ = 0;
  stays_until_.reset();
}

FoundingFsm::State FoundingFsm::at_time(State state, Time now) const {
  switch (state) {
    case Listening:
    case Asking:
    case Waiting:
      if (now < listens_until_) return Listening;
      return now < first_step_ ? Asking : Waiting;
    case ToldEarly:
    case Told:
      return now < listens_until_ ? ToldEarly : Told;
    case Idle:
    case Founding:
      break;
  }
  return state;
}

FoundingFsm::Step FoundingFsm::on_answer(std::size_t endpoint, const store::Whereabouts& answer,
                                         Time now) {
  answers_[endpoint] = answer;
  return decide(now);
}

FoundingFsm::Step FoundingFsm::on_turned_away(const std::optional<Endpoint>& moved, Time now) {
  if (!is_somewhere()) return {};
  barred_[to_string(at_)] = now + limits_.pause;
  if (moved && hops_ < limits_.hops && !is_barred(*moved, now)) {
    ++hops_;
    stays_until_ = now + limits_.stay;
    return go(Told, *moved, now);
  }
  hops_ = 0;
  stays_until_.reset();
  state_ = at_time(Waiting, now);
  return decide(now);
}

FoundingFsm::Step FoundingFsm::on_time(Time now) {
  std::erase_if(barred_, [now](const auto& place) { return place.second <= now; });
  if (stays_until_ && *stays_until_ <= now) stays_until_.reset();
  return decide(now);
}

FoundingFsm::Step FoundingFsm::decide(Time now) {
  if (state_ == Idle) return {};
  state_ = at_time(state_, now);
  auto place = job_store(now);
  const bool founds = !place;
  if (founds && stays_until_ && now < *stays_until_) return {};
  if (founds) place = place_to_found(now);
  if (!place || (is_somewhere() && *place == at_ && founds == this->founds())) return {};
  hops_ = 0;
  return go(founds ? Founding : Told, *place, now);
}

FoundingFsm::Step FoundingFsm::go(State state, const Endpoint& place, Time now) {
  state_ = at_time(state, now);
  at_ = place;
  return at_;
}

// A store that serves is looked for at all endpoints before anybody waits for another to begin.
std::optional<Endpoint> FoundingFsm::job_store(Time now) const {
  std::optional<Endpoint> store;
  std::uint64_t generation = 0;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    const store::Whereabouts& answer = answers_[i];
    if (answer.kind != Kind::Here && answer.kind != Kind::There) continue;
    const Endpoint& place = answer.kind == Kind::Here ? endpoints_[i] : answer.place;
    if (answer.generation <= generation || is_barred(place, now)) continue;
    generation = answer.generation;
    store = place;
  }
  return store;
}

// Agents that get the same answers go to the same place. As long as anybody knows of the job, no
// store is founded, even if the job's store is not where it is said to be: it may be on its way to
// another node.
std::optional<Endpoint> FoundingFsm::place_to_found(Time now) const {
  std::optional<Endpoint> waiting;
  bool all_asked = true;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    const Kind kind = answers_[i].kind;
    if (kind == Kind::Here || kind == Kind::There || kind == Kind::Sought) return std::nullopt;
    if (kind == Kind::Unknown) all_asked = false;
    if (kind == Kind::Waits && !waiting && !is_barred(endpoints_[i], now)) waiting = endpoints_[i];
  }
  if (now < listens_until_) return std::nullopt;
  return all_asked || now >= first_step_ ? waiting : std::nullopt;
}

bool FoundingFsm::is_barred(const Endpoint& place, Time now) const {
  const auto found = barred_.find(to_string(place));
  return found != barred_.end() && now < found->second;
}

std::optional<FoundingFsm::Time> FoundingFsm::next_deadline() const {
  EarliestDeadline due;
  const bool some_unknown = std::any_of(answers_.begin(), answers_.end(), [](const auto& answer) {
    return answer.kind == Kind::Unknown;
  });
  if (state_ == Listening || state_ == ToldEarly) due.include(listens_until_);
  if (state_ == Asking && some_unknown) due.include(first_step_);
  if (stays_until_) due.include(*stays_until_);
  for (const auto& [place, until] : barred_)
    due.include(until);
  return due.time();
}

std::string FoundingFsm::text() const {
  std::string result;
  bool differs = false;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    const store::Whereabouts& answer = answers_[i];
    differs |= answer.kind == Kind::NoAnswer && answer.cause == store::control::kOtherEndpoints;
    result += (i == 0 ? "" : "; ") + to_string(endpoints_[i]) + ": ";
    switch (answer.kind) {
      case Kind::Unknown:
        result += "no answer yet";
        break;
      case Kind::NoAnswer:
        result += answer.cause;
        break;
      case Kind::Waits:
        result += "is there";
        break;
      case Kind::Here:
        result += "has the store";
        break;
      case Kind::Sought:
        result += "says that the job looks for a new store";
        break;
      case Kind::There:
        result += "says that the store is at " + to_string(answer.place);
        break;
    }
  }
  if (differs) result += kSameList;
  return result;
}

}  // namespace drun::launcher
