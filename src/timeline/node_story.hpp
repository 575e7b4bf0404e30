// What one agent and its workers did, from its events. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "timeline/timeline.hpp"

namespace drun::timeline {

// Follows an agent's entries, which come in order, all with times since the timeline's beginning.
class NodeStory {
 public:
  explicit NodeStory(NodeRow& node) : node_(node) {}
  void take(const LogEntry& entry, std::int64_t time);
  // That it is in; 0: it waits.
  [[nodiscard]] std::int64_t open_round() const { return waits_ ? 0 : round_; }
  // The end of what is known: the node is drawn until then if it has not told its own.
  void finish(std::int64_t known_until);

 private:
  struct Open {
    SpanState state = SpanState::Waiting;
    std::int64_t since = 0;
    std::string text;
  };
  void begin_round(const LogEntry& entry, std::int64_t at);
  void enter(std::int64_t rank, SpanState state, std::int64_t at, std::string text = "");
  void close(std::int64_t rank, std::int64_t at, bool cut = false);
  void enter_node(SpanState state, std::int64_t at);
  void close_node(std::int64_t at, bool cut = false);
  void end_round(std::int64_t at);

  NodeRow& node_;
  bool waits_ = true;  // or takes part in a round
  bool over_ = false;  // it has told its outcome
  std::int64_t round_ = 0;
  std::int64_t last_ = 0;
  bool any_ = false;
  Open own_;
  std::map<std::int64_t, Open> ranks_;               // of the round
  std::map<std::int64_t, std::vector<Span>> spans_;  // of all rounds
};

}  // namespace drun::timeline
