// Where the stores of jobs are, as others say, or as this process knows. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "drun/base/endpoint.hpp"
#include "store/protocol/control_protocol.hpp"
#include "store/table/sessions.hpp"

namespace drun::store {

class JobPlaces {
 public:
  // What others have said counts for so long,
  static constexpr Milliseconds kHearsay{5'000};
  // and of no more jobs.
  static constexpr std::size_t kMost = 1024;

  // Others say that a store of this generation is there. False: it is no news.
  bool hear(std::string_view job, std::uint64_t generation, const Endpoint& place, Time now);
  // This process is in touch with it.
  void know(std::string_view job, std::uint64_t generation, const Endpoint& place);
  void forget(std::string_view job);
  // Somebody has lost a store of this generation: what was only heard of it counts no more.
  void doubt(std::string_view job, std::uint64_t generation);

  // One of a higher generation than `above`; generation 0: none. The views are valid until the next
  // change.
  [[nodiscard]] control::Moved find(std::string_view job, std::uint64_t above, Time now) const;
  // The same of any job.
  [[nodiscard]] control::Moved any(std::uint64_t above, Time now) const;

 private:
  struct Place {
    std::uint64_t generation = 0;
    Endpoint endpoint;
    std::optional<Time> until;  // nullopt: this process is in touch with it
    [[nodiscard]] bool is_old(Time now) const { return until && now >= *until; }
  };
  std::map<std::string, Place, std::less<>> places_;  // by job
};

}  // namespace drun::store
