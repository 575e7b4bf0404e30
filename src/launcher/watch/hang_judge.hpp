// --hang-timeout: whether this node's workers have stopped making progress, by looks at them and by
// what NCCL says of their collectives; and when NCCL is asked. Pure: looks, answers and times go
// in, verdicts come out.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "hang/nccl_ras.hpp"
#include "hang/node_stillness.hpp"

namespace drun::launcher {

class HangJudge {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A look or a question that hangs holds a thread, and much memory: it is not begun again soon.
  static constexpr std::chrono::minutes kAgainAfterHanging{5};
  // However short the timeout is, the service waits a while for processes that do not answer it.
  static constexpr std::chrono::milliseconds kShortestAnswer{1'000};
  static constexpr std::chrono::milliseconds kLongestAnswer{10'000};

  struct Verdict {
    // NCCL is to be asked about these workers; on_answer() follows.
    bool asks_nccl = false;
    // None of the workers has made progress for the whole time; or one has again. Nullopt: no
    // change.
    std::optional<bool> stalled;
    // Why workers of which nothing has come for so long are not taken for such; once.
    std::optional<hang::Doubt> doubt;
  };

  explicit HangJudge(std::chrono::milliseconds timeout) : stillness_(timeout) {}

  // How often to look; how long NCCL may take for an answer.
  [[nodiscard]] std::chrono::milliseconds interval() const { return stillness_.interval(); }
  [[nodiscard]] std::chrono::milliseconds answer_limit() const;

  // `running`: the round runs, and is not being stopped.
  [[nodiscard]] Verdict on_look(hang::NodeLook look, bool running, Time now);
  // The kernel gave no answer: what is known of the workers is too old by the next look.
  [[nodiscard]] Verdict on_blind_look();

  struct Answer {
    bool in_time = true;
    std::optional<hang::RasAnswer> said{};  // nothing: it is not there, or another job's
  };
  [[nodiscard]] Verdict on_answer(Answer answer, bool running, Time now);

  // As NodeStillness's.
  void leave_out(Time::duration pause) { stillness_.leave_out(pause); }
  void begin_to_overlook() { stillness_.begin_to_overlook(); }
  void end_to_overlook(int more) { stillness_.end_to_overlook(more); }
  [[nodiscard]] const hang::NodeLook& last() const { return stillness_.last(); }
  // What NCCL has said; before it was asked, nothing.
  [[nodiscard]] const hang::StuckCollectives& collectives() const { return collectives_; }

 private:
  void judge(Verdict& verdict, bool running);
  void say(Verdict& verdict, bool stalled);

  hang::NodeStillness stillness_;
  hang::StuckCollectives collectives_;
  bool asking_ = false;
  std::optional<Time> ask_again_;  // not before; nullopt: at once
  Time ask_never_before_{};        // the last question hangs
  bool stalled_ = false;
};

}  // namespace drun::launcher
