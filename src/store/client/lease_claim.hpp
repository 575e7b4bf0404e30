// The keys of a lease and the taking of it; the holding is LeaseKeeper's.
//
//   lease/NAME/holder      TERM TIME-TO-LIVE ID TEXT: who took it last (the time in milliseconds)
//   lease/NAME/beat/TERM   counted up by the holder of this term while it holds
//   lease/NAME/over/TERM   is there once that holder has given it back
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"
#include "drun/store/client.hpp"

namespace drun::store {

struct LeaseKeys {
  explicit LeaseKeys(std::string_view lease_name);
  [[nodiscard]] std::string holder() const { return root + "holder"; }
  [[nodiscard]] std::string beat(std::int64_t term) const;
  [[nodiscard]] std::string over(std::int64_t term) const;

  std::string name;
  std::string root;
};

struct LeaseRecord {
  std::int64_t term = 0;
  std::chrono::milliseconds time_to_live{};
  std::string id;    // of this taking alone
  std::string text;  // whatever the holder likes

  bool operator==(const LeaseRecord&) const = default;
};
[[nodiscard]] std::string to_bytes(const LeaseRecord& record);
// Nullopt: no lease's.
[[nodiscard]] std::optional<LeaseRecord> parse_lease_record(std::string_view bytes);

// What one who waits has seen of the holder. Pure.
class LeaseWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // What there was at `now` or earlier; true: the holder has been silent for its whole time to
  // live.
  bool is_silent(const LeaseRecord& holder, std::string_view beat, Time now);

 private:
  std::optional<LeaseRecord> holder_;
  std::string beat_;
  Time since_;
};

struct TakenLease {
  std::int64_t term = 0;
  std::chrono::steady_clock::time_point asked;  // when the request that took it was sent
};

// Until `deadline`, but at least once.
[[nodiscard]] Result<TakenLease> take_lease(Client& client, const LeaseKeys& keys,
                                            std::chrono::milliseconds time_to_live,
                                            const std::string& text, Client::Deadline deadline);

// The text of who holds it and has not given it back; waits for one until `deadline`.
[[nodiscard]] Result<std::string> lease_holder(Client& client, const LeaseKeys& keys,
                                               Client::Deadline deadline);

}  // namespace drun::store
