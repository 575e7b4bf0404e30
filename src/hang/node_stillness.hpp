// How long the ranks of a node have waited, from one look to the next. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hang/process_reader.hpp"
#include "hang/stillness.hpp"

namespace drun::hang {

// Why a rank of which nothing has come for long is not taken for one that hangs.
struct Doubt {
  std::uint32_t worker = 0;
  std::string why;
  bool operator==(const Doubt&) const = default;
};

class NodeStillness {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `timeout`: so long all ranks must have waited.
  explicit NodeStillness(std::chrono::milliseconds timeout);

  // How often to look.
  [[nodiscard]] std::chrono::milliseconds interval() const { return interval_; }
  // The next look, with all ranks that run. Time in which nobody looked, because this process was
  // stopped or the kernel gave no answer, is not counted; after a long pause, and when a rank has
  // ended, all begins anew.
  void on_look(NodeLook look);
  // What happens between these two is not of the ranks' own doing: they are asked for something.
  // Looks meanwhile tell nothing, and their time is not counted; nor do `more` looks after that.
  // May be nested.
  void begin_to_overlook() { ++overlookers_; }
  void end_to_overlook(int more);
  // So much of the time since the last look is not counted: nobody could look.
  void leave_out(Time::duration pause) { left_out_ += pause; }
  // The last one.
  [[nodiscard]] const NodeLook& last() const { return last_; }

  // All ranks have waited for the whole time.
  [[nodiscard]] bool stalled() const { return stalled_; }

  // Nothing has come of any rank for half of the time at least, but some were busy: whether they
  // wait for a collective is worth a question.
  [[nodiscard]] bool busy_in_vain() const;
  // The answer: they do. Until the next look it counts for those of which nothing has come for the
  // whole time, as if they slept.
  void on_stuck_collective();
  // Nothing has come of any rank for the whole time, but some were busy: perhaps they hang, but
  // that cannot be known. These, and why; true once.
  [[nodiscard]] std::optional<Doubt> take_doubt();

 private:
  struct Record {
    Time fruitless_since;  // nothing has come of it
    std::optional<Time> waits_since{};
    std::string doubt{};    // why it was not found to wait, the first time since then
    bool compared = false;  // with a look before, since then
  };

  [[nodiscard]] bool all_fruitless(std::chrono::milliseconds time) const;
  void shift(Time::duration pause);
  // `counted_from`: the last look, less what is left out.
  void judge(std::uint32_t worker, const RankLook& now, Time at, Time counted_from);

  const std::chrono::milliseconds timeout_;
  const std::chrono::milliseconds interval_;
  NodeLook last_;
  Time::duration left_out_{0};
  std::map<std::uint32_t, Record> records_;  // by worker
  bool stalled_ = false;
  bool doubted_ = false;
  int overlookers_ = 0;
  int overlooked_ = 0;  // so many looks to come
};

}  // namespace drun::hang
