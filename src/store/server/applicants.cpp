#include "store/server/applicants.hpp"

#include <algorithm>

namespace drun::store {

bool Applicants::was_called(VoterId number, std::uint64_t stamp) const {
  const auto found = waiting_.find(number);
  return found != waiting_.end() && stamp != 0 && found->second.call == stamp;
}

void Applicants::uncall() {
  for (auto& [number, waiting] : waiting_)
    waiting.call = 0;
}

void Applicants::call(const control::Pulsed& call) {
  for (auto& [number, waiting] : waiting_) {
    if (!waiting.votes || waiting.call != 0) continue;
    waiting.call = call.stamp;
    waiting.applicant->on_call(call);
  }
}

Time Applicants::heard(Time latest) const {
  Time heard = latest;
  for (const auto& [number, waiting] : waiting_)
    if (waiting.votes) heard = std::max(heard, waiting.heard);
  return heard;
}

std::optional<Applicants::Waiting> Applicants::take(VoterId number) {
  auto node = waiting_.extract(number);
  return node ? std::optional(std::move(node.mapped())) : std::nullopt;
}

Applicants::Taken Applicants::take_if(const std::function<bool(VoterId, const Waiting&)>& whom) {
  Taken taken;
  std::erase_if(waiting_, [&](auto& each) {
    if (!whom(each.first, each.second)) return false;
    taken.emplace_back(each.first, std::move(each.second));
    return true;
  });
  return taken;
}

Applicants::Taken Applicants::take_all() {
  return take_if([](VoterId, const Waiting&) { return true; });
}

}  // namespace drun::store
