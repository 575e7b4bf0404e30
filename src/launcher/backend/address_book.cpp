#include "launcher/backend/address_book.hpp"

#include <algorithm>
#include <utility>

#include "base/deadline.hpp"

namespace drun::launcher {
namespace {

using Clock = DeadlineTimer::Time::clock;

constexpr std::chrono::milliseconds kShortestPause{2'000};
// All agents of a job ask the same servers.
constexpr std::size_t kMostDoublings = 7;  // some four minutes

}  // namespace

AddressBook::AddressBook(asio::io_context& io, StartLookUp start, std::function<void()> changed)
    : io_(io),
      start_(std::move(start)),
      changed_(std::move(changed)),
      timer_(io, [this] { ask_again(Clock::now()); }) {}

std::chrono::milliseconds AddressBook::pause_after(std::size_t failures) {
  if (failures == 0) return {};
  return kShortestPause * (1U << std::min(failures - 1, kMostDoublings));
}

void AddressBook::look_up(const std::vector<Endpoint>& places) {
  for (const Endpoint& place : places) {
    if (!store::literal_addresses(place).empty()) continue;
    Entry& entry = entries_.try_emplace(place.host, io_, start_).first->second;
    if (!entry.asked) ask(place.host, entry);
  }
}

void AddressBook::ask(const std::string& host, Entry& entry) {
  entry.asked = true;
  entry.due = std::nullopt;
  entry.question.ask({host, 0}, [this, &entry](const Result<store::Addresses>& answer) {
    on_answer(entry, answer);
  });
}

void AddressBook::on_answer(Entry& entry, const Result<store::Addresses>& answer) {
  entry.asked = false;
  entry.failures = answer ? 0 : entry.failures + 1;
  if (!answer) {
    entry.due = Clock::now() + pause_after(entry.failures);
    return arm();
  }
  std::vector<std::string> numeric;
  for (const auto& each : *answer)
    if (numeric.size() < kMostAddresses) numeric.push_back(to_endpoint(each).host);
  if (numeric == entry.numeric) return;
  entry.numeric = std::move(numeric);
  changed_();
}

void AddressBook::ask_again(DeadlineTimer::Time now) {
  for (auto& [host, entry] : entries_)
    if (entry.due && *entry.due <= now) ask(host, entry);
  arm();
}

void AddressBook::arm() {
  EarliestDeadline due;
  for (const auto& each : entries_)
    due.include(each.second.due);
  timer_.set(due.time());
}

store::Addresses AddressBook::addresses(const Endpoint& place) const {
  store::Addresses result = store::literal_addresses(place);
  const auto known = entries_.find(place.host);
  if (!result.empty() || known == entries_.end()) return result;
  for (const std::string& numeric : known->second.numeric) {
    const auto literal = store::literal_addresses({numeric, place.port});
    result.insert(result.end(), literal.begin(), literal.end());
  }
  return result;
}

void AddressBook::abandon() {
  timer_.set(std::nullopt);
  for (auto& entry : entries_)
    entry.second.question.abandon();
}

}  // namespace drun::launcher
