// A command of drunctl under way: what was asked for, how to reach the store, when its time is
// over.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "ctl/drunctl.hpp"
#include "ctl/drunctl_jobs.hpp"
#include "drun/base/result.hpp"
#include "drun/store/client.hpp"
#include "store/client/control_query.hpp"

namespace drun::ctl {

class RunningCommand {
 public:
  static constexpr std::chrono::milliseconds kDefaultTimeout{30'000};

  // `options` must outlive this. Its time begins now.
  explicit RunningCommand(const CtlOptions& options)
      : options_(options),
        start_(Clock::now()),
        limit_(options.timeout.value_or(kDefaultTimeout)) {}

  [[nodiscard]] const CtlOptions& options() const { return options_; }
  [[nodiscard]] const std::string& word(std::size_t index) const { return options_.words[index]; }
  [[nodiscard]] const std::vector<std::string>& words() const { return options_.words; }
  // The word that is a number. Throws cli::UsageError.
  [[nodiscard]] long long number(std::size_t index) const;

  [[nodiscard]] Clock::time_point start() const { return start_; }
  [[nodiscard]] Deadline deadline() const { return start_ + limit_; }
  [[nodiscard]] std::chrono::milliseconds left() const { return time_left(deadline()); }

  // To the store of the job, wherever it is now.
  [[nodiscard]] Result<store::Client> connect() const;
  // Sees all keys, as they are.
  [[nodiscard]] Result<store::Client> connect_raw() const;
  [[nodiscard]] Result<store::ControlQuery> connect_control() const;
  // To whatever is at the endpoint itself.
  [[nodiscard]] Result<store::Client> connect_there() const;
  [[nodiscard]] Result<store::ControlQuery> connect_control_there() const;

  // What stands before this user's keys in the store.
  [[nodiscard]] std::string key_prefix() const;

 private:
  [[nodiscard]] Endpoint store() const;
  [[nodiscard]] Result<store::Client> connect(const Endpoint& place, const std::string& prefix,
                                              bool raw) const;

  const CtlOptions& options_;
  Clock::time_point start_;
  std::chrono::milliseconds limit_;
};

}  // namespace drun::ctl
