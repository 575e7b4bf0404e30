// Addresses of names that are to be known when nobody can look them up any more: what is said for a
// killed agent is said by helpers that do nothing but that. Look-ups do not hold up the loop, and
// what was found last counts until another answer comes.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "drun/base/endpoint.hpp"
#include "store/client/async_look_up.hpp"

namespace drun::launcher {

class AddressBook {
 public:
  using StartLookUp = store::AsyncLookUp::Start;

  // Of one name; the rest is not used.
  static constexpr std::size_t kMostAddresses = 4;
  // Until a name that was not found is looked up again; after the n-th time it was not, in a row.
  [[nodiscard]] static std::chrono::milliseconds pause_after(std::size_t failures);

  // `io` must outlive this. `changed`: addresses() may say something else now; from the loop.
  AddressBook(asio::io_context& io, StartLookUp start, std::function<void()> changed);

  // Looks the hosts of all of them up, those that are known as well.
  void look_up(const std::vector<Endpoint>& places);
  // Numeric ones at once; empty: not known.
  [[nodiscard]] store::Addresses addresses(const Endpoint& place) const;
  // No look-up and no call any more; what is known stays so.
  void abandon();

 private:
  struct Entry {
    Entry(asio::io_context& io, StartLookUp start) : question(io, std::move(start)) {}
    store::AsyncLookUp question;
    bool asked = false;
    std::size_t failures = 0;                // since it was found last
    std::optional<DeadlineTimer::Time> due;  // to be asked again
    std::vector<std::string> numeric;
  };
  void ask(const std::string& host, Entry& entry);
  void on_answer(Entry& entry, const Result<store::Addresses>& answer);
  void ask_again(DeadlineTimer::Time now);
  void arm();

  asio::io_context& io_;
  const StartLookUp start_;
  const std::function<void()> changed_;
  std::map<std::string, Entry> entries_;  // by host name
  DeadlineTimer timer_;
};

}  // namespace drun::launcher
