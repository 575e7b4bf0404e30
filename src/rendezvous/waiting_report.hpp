// What an agent shows while it waits: one line, updated once a second. Pure.
#pragma once

#include <optional>
#include <string>

#include "rendezvous/documents.hpp"
#include "rendezvous/membership.hpp"
#include "rendezvous/outbox.hpp"

namespace drun::rendezvous {

class WaitingReport {
 public:
  enum class State {
    Nothing,   // it takes part in a round, or leaves
    Waiting,   // no round runs
    Spare,     // one runs without this agent
    Withdrawn  // nothing any more, but the last line is still shown
  };
  // How it stands with this agent. The pointers may be null, but for `trouble`.
  struct View {
    bool ending = false;                // leaves, or will
    std::optional<Time> waiting_since;  // no round runs
    bool spare = false;
    bool up = false;                       // the store can be reached
    const std::string* trouble = nullptr;  // why not
    const RoundDocument* round = nullptr;
    // This agent leads: what it knows of all.
    const rendezvous::State* state = nullptr;
  };
  static constexpr Milliseconds kPeriod{1'000};

  // The references must outlive this.
  WaitingReport(const Config& config, Outbox& outbox, Time now)
      : config_(config), outbox_(outbox), next_(now + kPeriod) {}

  // Shows what is due: a ProgressAction, with an empty text when there is no more to wait for.
  void look(const View& view, Time now);
  [[nodiscard]] std::optional<Time> next_deadline(const View& view) const;
  [[nodiscard]] State state(const View& view) const;

 private:
  [[nodiscard]] std::string waiting_line(const View& view, Time now) const;
  [[nodiscard]] std::string spare_line(const View& view) const;
  void show(std::string text, bool spare = false);

  const Config& config_;
  Outbox& outbox_;
  Time next_;
  std::string shown_;  // last
};

}  // namespace drun::rendezvous
