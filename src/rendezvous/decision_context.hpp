// What decide() has in hand while it decides, for the sources that share that.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "rendezvous/membership.hpp"

namespace drun::rendezvous {

inline constexpr std::size_t kMaxShownId = 64;
inline constexpr std::size_t kMostHosts = 8;  // in one line

struct DecisionContext {
  const State& state;
  const Config& config;
  Time now;
  Decision decision;
  std::optional<Failure>
      chosen{};  // the root cause, if it is not yet the first of `state.failures`

  // Precondition: there is a failure.
  [[nodiscard]] const Failure& root() const { return chosen ? *chosen : state.failures.front(); }
  RoundDocument& round() { return decision.round; }
  void write(std::string key, std::string value) {
    decision.writes.push_back({std::move(key), std::move(value), false});
  }
  void drop(std::string key) { decision.writes.push_back({std::move(key), std::nullopt, false}); }
  void log(std::string text) { decision.log.push_back(std::move(text)); }
  History& history() {
    if (!decision.history) decision.history = state.history;
    decision.history->max_restarts = config.max_restarts;
    if (const auto nodes = state.agreement.find("nnodes"); nodes != state.agreement.end())
      decision.history->nnodes = nodes->second;
    return *decision.history;
  }
  [[nodiscard]] std::int64_t unix_ms(Time time) const {
    return std::chrono::duration_cast<Milliseconds>(time.time_since_epoch()).count() +
           config.unix_offset_ms;
  }
  [[nodiscard]] bool past(std::optional<Time> time, Milliseconds after = {}) const {
    return !time || now >= *time + after;
  }
};

[[nodiscard]] inline std::string round_name(const RoundDocument& round) {
  return "round " + std::to_string(round.number);
}

}  // namespace drun::rendezvous
