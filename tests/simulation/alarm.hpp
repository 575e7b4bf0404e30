// Calls an agent when what it waits for is due.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "rendezvous/participant.hpp"
#include "simulation/scheduler.hpp"

namespace drun::simulation {

class Alarm {
 public:
  // `participant`: null when it has ended. This and the arguments must outlive what is scheduled.
  Alarm(Scheduler& scheduler, const std::unique_ptr<rendezvous::Participant>& participant,
        std::function<void()> due)
      : scheduler_(scheduler), participant_(participant), due_(std::move(due)) {}
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // After each input: what it waits for may have changed. If that is later than what is scheduled,
  // it is found out then.
  void arm() {
    const auto time = next();
    if (!time || (scheduled_ && *scheduled_ <= *time)) return;
    scheduled_ = *time;
    scheduler_.at(*time, [this, number = ++number_] {
      if (number == number_) ring();
    });
  }

 private:
  [[nodiscard]] std::optional<Time> next() const {
    return participant_ ? participant_->next_deadline() : std::nullopt;
  }
  void ring() {
    scheduled_.reset();
    const auto time = next();
    if (time && *time <= scheduler_.now()) return due_();
    arm();
  }

  Scheduler& scheduler_;
  const std::unique_ptr<rendezvous::Participant>& participant_;
  const std::function<void()> due_;
  std::optional<Time> scheduled_;
  std::uint64_t number_ = 0;  // of what was scheduled last
};

}  // namespace drun::simulation
