#include "launcher/backend/founding_fsm.hpp"

#include <algorithm>

namespace drun::launcher {
namespace {

using Kind = store::Whereabouts::Kind;

}  // namespace

FoundingFsm::FoundingFsm(std::vector<Endpoint> endpoints, const Limits& limits)
    : endpoints_(std::move(endpoints)), limits_(limits), answers_(endpoints_.size()) {}

void FoundingFsm::start(Time now) {
  is_started_ = true;
  first_step_ = now + limits_.turn;
  listens_until_ = now + limits_.listening;
  is_listening_ = is_patient_ = true;
  at_.reset();
  hops_ = 0;
}

FoundingFsm::Step FoundingFsm::on_answer(std::size_t endpoint, const store::Whereabouts& answer,
                                         Time now) {
  answers_[endpoint] = answer;
  return decide(now);
}

FoundingFsm::Step FoundingFsm::on_turned_away(const std::optional<Endpoint>& moved, Time now) {
  if (!at_) return {};
  barred_[to_string(*at_)] = now + limits_.pause;
  at_.reset();
  if (moved && hops_ < limits_.hops && !is_barred(*moved, now)) {
    ++hops_;
    at_ = moved;
    return at_;
  }
  hops_ = 0;
  return decide(now);
}

FoundingFsm::Step FoundingFsm::on_time(Time now) {
  std::erase_if(barred_, [now](const auto& place) { return place.second <= now; });
  if (now >= listens_until_) is_listening_ = false;
  if (now >= first_step_) is_patient_ = false;
  return decide(now);
}

FoundingFsm::Step FoundingFsm::decide(Time now) {
  if (!is_started_) return {};
  const auto place = choose(now);
  if (!place || place == at_) return {};
  hops_ = 0;
  at_ = place;
  return at_;
}

// All who see the same go to the same place. A store that serves is looked for at all endpoints
// before anybody waits for another to begin.
std::optional<Endpoint> FoundingFsm::choose(Time now) const {
  std::optional<Endpoint> store;
  std::uint64_t generation = 0;
  std::optional<Endpoint> waiting;
  bool all_asked = true;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    const store::Whereabouts& answer = answers_[i];
    if (answer.kind == Kind::Unknown) all_asked = false;
    if (answer.kind == Kind::Waits && !waiting && !is_barred(endpoints_[i], now))
      waiting = endpoints_[i];
    if (answer.kind != Kind::Here && answer.kind != Kind::There) continue;
    const Endpoint& place = answer.kind == Kind::Here ? endpoints_[i] : answer.place;
    if (answer.generation <= generation || is_barred(place, now)) continue;
    generation = answer.generation;
    store = place;
  }
  if (store) return store;
  if (is_listening_ && now < listens_until_) return std::nullopt;
  return all_asked || now >= first_step_ ? waiting : std::nullopt;
}

bool FoundingFsm::is_barred(const Endpoint& place, Time now) const {
  const auto found = barred_.find(to_string(place));
  return found != barred_.end() && now < found->second;
}

std::optional<FoundingFsm::Time> FoundingFsm::next_deadline() const {
  if (!is_started_) return std::nullopt;
  std::optional<Time> next;
  const bool some_unknown = std::any_of(answers_.begin(), answers_.end(), [](const auto& answer) {
    return answer.kind == Kind::Unknown;
  });
  if (!at_ && some_unknown && is_patient_) next = first_step_;
  if (is_listening_) next = next ? std::min(*next, listens_until_) : listens_until_;
  for (const auto& [place, until] : barred_)
    next = next ? std::min(*next, until) : until;
  return next;
}

std::string FoundingFsm::text() const {
  std::string result;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    const store::Whereabouts& answer = answers_[i];
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
      case Kind::There:
        result += "says that the store is at " + to_string(answer.place);
        break;
    }
  }
  return result;
}

}  // namespace drun::launcher
