// What a peer may reach of a store that several jobs share, if the token that it has proved is one
// job's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/protocol/control_protocol.hpp"
#include "store/protocol/tcpstore_codec.hpp"

namespace drun::store {

// Why a TCPStore peer is closed that asks for more.
inline constexpr const char* kOtherJobsKeys = "its token is one job's, and it asks for other keys";

class JobScope {
 public:
  // `job` is the job's name in keys.
  explicit JobScope(std::string_view job);

  [[nodiscard]] const std::string& job() const { return job_; }
  // The beginnings of its keys; the first one is its name in votes.
  [[nodiscard]] const std::string& keys() const { return keys_; }
  [[nodiscard]] const std::string& stacks() const { return stacks_; }
  [[nodiscard]] bool holds(std::string_view key) const {
    return key.starts_with(keys_) || key.starts_with(stacks_);
  }

  // Whether all that the request names is the job's.
  [[nodiscard]] bool holds(const tcpstore::Request& request) const;
  // Likewise; what asks for all keys with a shorter beginning, or for any job's store, is made to
  // ask for this job's: for those of keys(), if both would do, as a watch has one beginning. Its
  // views may point into this scope then.
  [[nodiscard]] bool narrow(control::Request& request) const;
  // What is said to whoever asks for more.
  [[nodiscard]] std::string refusal() const;

 private:
  [[nodiscard]] bool narrow_prefix(std::string_view& prefix) const;

  std::string job_;
  std::string keys_;
  std::string stacks_;
};

}  // namespace drun::store
