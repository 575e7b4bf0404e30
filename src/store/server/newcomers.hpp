// Connections that have not said yet what they came for, and which of them goes when there is no
// room for another. Pure: Client is a connection, or a test's.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

#include "store/table/sessions.hpp"

namespace drun::store {

template <typename Client>
class Newcomers {
 public:
  // Of a client, in the order in which they came.
  using Number = std::uint64_t;

  // Whoever has something to say does so within this time.
  static constexpr Milliseconds kTimeToSpeak{1'000};
  // That are passed over in search of strangers, at each connection.
  static constexpr int kMostSilentClients = 64;

  // `owes_token`: it is to show that it has the store's.
  Number came(Client& client, Time now, bool owes_token) {
    last_came_at_ = now;
    silent_.emplace(++last_, &client);
    if (owes_token) unproven_.emplace(last_, Owing{&client, now});
    return last_;
  }
  void has_spoken(Number number) { silent_.erase(number); }
  void left(Number number) {
    silent_.erase(number);
    unproven_.erase(number);
  }

  // Whoever has the token shows it at once: however many strangers come, one that is new stays
  // until as many have come after it as there is room for, which is long enough. Silent clients of
  // the workers' store owe nothing; of a few of them in front nobody is looked for behind them.
  // Null: there is none but `asking`.
  [[nodiscard]] Client* oldest_stranger(const Client* asking) {
    int left = kMostSilentClients;
    for (auto next = unproven_.begin(); next != unproven_.end() && left > 0;) {
      Client& client = *next->second.client;
      if (client.is_proven()) {
        next = unproven_.erase(next);
        continue;
      }
      ++next;
      --left;
      if (&client != asking && !client.is_welcome()) return &client;
    }
    return nullptr;
  }

  // Of those that have said nothing in their time the newest: some clients keep a silent
  // connection, and were there first. Null: there is none.
  [[nodiscard]] Client* newest_silent(Time now) {
    if (now - last_came_at_ >= kTimeToSpeak) {
      settled_ = last_;
    } else if (now - counted_at_ >= kTimeToSpeak) {
      settled_ = came_first_;
      came_first_ = last_;
      counted_at_ = now;
    }
    const auto next = silent_.upper_bound(settled_);
    return next == silent_.begin() ? nullptr : std::prev(next)->second;
  }

  // One that has had `limit` to show the token, the oldest first, each once; null: none.
  [[nodiscard]] Client* take_overdue(Time now, Milliseconds limit) {
    if (unproven_.empty() || now - unproven_.begin()->second.since < limit) return nullptr;
    Client* const client = unproven_.begin()->second.client;
    unproven_.erase(unproven_.begin());
    return client;
  }
  [[nodiscard]] std::optional<Time> next_overdue(Milliseconds limit) const {
    if (unproven_.empty()) return std::nullopt;
    return unproven_.begin()->second.since + limit;
  }

 private:
  struct Owing {
    Client* client = nullptr;
    Time since{};
  };

  std::map<Number, Client*> silent_;  // have said nothing
  std::map<Number, Owing> unproven_;  // came lately to a store with a token
  Number last_ = 0;
  Time last_came_at_{};
  Number settled_ = 0;     // the last that came a second ago or earlier
  Number came_first_ = 0;  // the last one at
  Time counted_at_{};      // this time
};

}  // namespace drun::store
