#include "launcher/watch/hang_judge.hpp"

#include <algorithm>
#include <utility>

namespace drun::launcher {

using Verdict = HangJudge::Verdict;

std::chrono::milliseconds HangJudge::answer_limit() const {
  return std::clamp(interval() * 5, kShortestAnswer, kLongestAnswer);
}

// Twice within the time NCCL is asked: after half of it, and at its end.
Verdict HangJudge::on_look(hang::NodeLook look, bool running, Time now) {
  Verdict verdict;
  stillness_.on_look(std::move(look));
  if (!stillness_.busy_in_vain()) {
    collectives_ = {};
    ask_again_.reset();
  } else if (!asking_ && (!ask_again_ || now >= *ask_again_) && now >= ask_never_before_) {
    asking_ = verdict.asks_nccl = true;
  }
  if (!asking_) judge(verdict, running);
  return verdict;
}

Verdict HangJudge::on_blind_look() {
  Verdict verdict;
  say(verdict, false);
  return verdict;
}

Verdict HangJudge::on_answer(Answer answer, bool running, Time now) {
  asking_ = false;
  ask_again_ = now + interval() * 4;
  if (!answer.in_time) ask_never_before_ = now + kAgainAfterHanging;
  collectives_.on_answer(std::move(answer.said));
  Verdict verdict;
  judge(verdict, running);
  return verdict;
}

void HangJudge::judge(Verdict& verdict, bool running) {
  if (collectives_.stuck()) stillness_.on_stuck_collective();
  verdict.doubt = stillness_.take_doubt();
  say(verdict, stillness_.stalled() && running);
}

void HangJudge::say(Verdict& verdict, bool stalled) {
  if (std::exchange(stalled_, stalled) != stalled) verdict.stalled = stalled;
}

}  // namespace drun::launcher
