#include "launcher/backend/address_book.hpp"

#include <utility>

namespace drun::launcher {

AddressBook::AddressBook(asio::io_context& io, StartLookUp start, std::function<void()> changed)
    : io_(io),
      start_(std::move(start)),
      changed_(std::move(changed)),
      timer_(io, [this] { ask_again(); }) {}

void AddressBook::look_up(const std::vector<Endpoint>& places) {
  for (const Endpoint& place : places) {
    if (!store::literal_addresses(place).empty()) continue;
    Entry& entry = entries_.try_emplace(place.host, io_, start_).first->second;
    if (!entry.asked) ask(place.host, entry);
  }
}

void AddressBook::ask(const std::string& host, Entry& entry) {
  entry.asked = true;
  entry.failed = false;
  entry.question.ask({host, 0}, [this, &entry](const Result<store::Addresses>& answer) {
    on_answer(entry, answer);
  });
}

void AddressBook::on_answer(Entry& entry, const Result<store::Addresses>& answer) {
  entry.asked = false;
  entry.failed = !answer;
  if (!answer) return timer_.set(DeadlineTimer::Time::clock::now() + kAgain);
  std::vector<std::string> numeric;
  for (const auto& each : *answer)
    if (numeric.size() < kMostAddresses) numeric.push_back(store::to_endpoint(each).host);
  if (numeric == entry.numeric) return;
  entry.numeric = std::move(numeric);
  changed_();
}

void AddressBook::ask_again() {
  for (auto& [host, entry] : entries_)
    if (entry.failed) ask(host, entry);
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
