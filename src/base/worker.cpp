#include "drun/worker.hpp"

#include <optional>
#include <string_view>
#include <system_error>

#include "base/environment_variable.hpp"
#include "base/printable.hpp"
#include "base/whole_number.hpp"

namespace drun {
namespace {

using Environment = std::vector<std::string>;

Error wrong(const std::string& what) {
  return Error(std::make_error_code(std::errc::invalid_argument), what);
}

// RANK is 'one', the beginning if it is long.
std::string shown(const char* name, const std::string& value) {
  constexpr std::size_t kLongest = 40;
  return std::string(name) + " is '" + printable(value.substr(0, kLongest)) +
         (value.size() > kLongest ? "...'" : "'");
}

Result<std::string> text(const Environment& environment, const char* name) {
  auto value = environment_variable(environment, name);
  if (!value) return wrong(std::string(name) + " is not set: start this program with drun");
  if (value->empty()) return wrong(std::string(name) + " is empty");
  return *std::move(value);
}

Result<int> number(const Environment& environment, const char* name, int lowest) {
  const auto value = text(environment, name);
  if (!value) return value.error();
  const std::optional<int> number = whole_number<int>(*value);
  if (!number || *number < lowest)
    return wrong(shown(name, *value) + ", not a whole number from " + std::to_string(lowest) +
                 " up");
  return *number;
}

// Fills in `size` from one variable and `rank` from another, which must be below it.
Status place(const Environment& environment, const char* rank_name, int& rank,
             const char* size_name, int& size) {
  const Result<int> found_rank = number(environment, rank_name, 0);
  if (!found_rank) return found_rank.error();
  const Result<int> found_size = number(environment, size_name, 1);
  if (!found_size) return found_size.error();
  rank = *found_rank;
  size = *found_size;
  if (rank < size) return Done{};
  return wrong(shown(rank_name, std::to_string(rank)) + ", not below " + size_name + ", which is " +
               std::to_string(size));
}

}  // namespace

Result<Worker> worker(const Environment& environment) {
  Worker result;
  const Status placed = place(environment, "RANK", result.rank, "WORLD_SIZE", result.world_size)
                            .and_then([&](Done) {
                              return place(environment, "LOCAL_RANK", result.local_rank,
                                           "LOCAL_WORLD_SIZE", result.local_world_size);
                            })
                            .and_then([&](Done) {
                              return place(environment, "GROUP_RANK", result.group_rank,
                                           "GROUP_WORLD_SIZE", result.group_world_size);
                            });
  if (!placed) return placed.error();
  auto store = worker_store(environment);
  if (!store) return store.error();
  result.store = *std::move(store);
  constexpr const char* kRestarts = "TORCHELASTIC_RESTART_COUNT";
  if (environment_variable(environment, kRestarts)) {
    const Result<int> restarts = number(environment, kRestarts, 0);
    if (!restarts) return restarts.error();
    result.restart_count = *restarts;
  }
  result.job_id = environment_variable(environment, "TORCHELASTIC_RUN_ID").value_or("");
  return result;
}

Result<Worker> worker() {
  return worker(own_environment());
}

Result<Endpoint> worker_store(const Environment& environment) {
  const auto host = text(environment, "MASTER_ADDR");
  if (!host) return host.error();
  const auto value = text(environment, "MASTER_PORT");
  if (!value) return value.error();
  const auto port = parse_port(*value);
  if (!port || *port == 0) return wrong(shown("MASTER_PORT", *value) + ", not a port");
  return Endpoint{*host, *port};
}

Result<Endpoint> worker_store() {
  return worker_store(own_environment());
}

}  // namespace drun
