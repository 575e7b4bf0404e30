#include "store/client/exchange.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/deadline.hpp"
#include "base/number_ranges.hpp"
#include "drun/store/errors.hpp"

namespace drun::store {
namespace {

std::string key_of(std::int64_t exchange, int rank) {
  return "exchange/" + std::to_string(exchange) + "/" + std::to_string(rank);
}

// The requests that tell who is missing are over at once: their answers need some time all the
// same.
constexpr std::chrono::seconds kLookLimit{5};

// The time-out, with the ranks that have not come if the store can still be asked.
Error late(Client& client, const std::vector<std::string>& keys, const Error& error) {
  std::vector<int> missing;
  for (int rank = 0; rank < static_cast<int>(keys.size()); ++rank) {
    const auto there = client.check({keys[static_cast<std::size_t>(rank)]}, kLookLimit);
    if (!there) return error;
    if (!*there) missing.push_back(rank);
  }
  if (missing.empty()) return error;
  return Error(error.code(), "exchange of " + std::to_string(keys.size()) + " ranks at " +
                                 to_string(client.endpoint()) +
                                 ": timed out: " + ranks_text(missing) + " did not come");
}

// One value after the other, for a server that cannot give them together.
Result<std::vector<std::string>> get_each(Client& client, const std::vector<std::string>& keys,
                                          Client::Deadline deadline) {
  const Status all = client.wait(keys, time_left(deadline));
  if (!all) return all.error();
  std::vector<std::string> values;
  values.reserve(keys.size());
  for (const std::string& key : keys) {
    auto value =
        client.get(key, std::max<std::chrono::milliseconds>(time_left(deadline), kLookLimit));
    if (!value) return value.error();
    values.push_back(*std::move(value));
  }
  return values;
}

}  // namespace

Result<std::vector<std::string>> ExchangeSeries::next(Client& client, int rank, int size,
                                                      std::string_view value,
                                                      Client::Deadline deadline) {
  if (size < 1 || rank < 0 || rank >= size)
    return Error(
        std::make_error_code(std::errc::invalid_argument),
        "exchange: there is no rank " + std::to_string(rank) + " of " + std::to_string(size));
  std::vector<std::string> keys;
  keys.reserve(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i)
    keys.push_back(key_of(finished_, i));
  const Status told = client.set(keys[static_cast<std::size_t>(rank)], value, time_left(deadline));
  if (!told) return told.error();
  auto values = client.version() == TcpStoreVersion::Torch1_13
                    ? get_each(client, keys, deadline)
                    : client.multi_get(keys, time_left(deadline));
  if (!values) {
    if (values.error().code() == Errc::Timeout) return late(client, keys, values.error());
    return values;
  }
  // All have come to this one, so all have read the one before.
  if (finished_ > 0) {
    const auto deleted = client.delete_key(key_of(finished_ - 1, rank), kLookLimit);
    if (!deleted) return deleted.error();
  }
  ++finished_;
  return values;
}

}  // namespace drun::store
