#include "rendezvous/job_watch.hpp"

namespace drun::rendezvous {

void JobWatch::read_again() {
  end();
  watch_ = outbox_.watch(prefix_, true);
  state_ = State::Reading;
}

void JobWatch::on_link_lost() {
  if (state_ == State::Current) state_ = State::Reading;
  looked_away_ = true;
}

bool JobWatch::on_snapshot(WatchId watch) {
  if (!is(watch)) return false;
  state_ = State::Current;
  return true;
}

bool JobWatch::on_rejected(WatchId watch) {
  if (!is(watch)) return false;
  state_ = State::Hidden;
  return true;
}

void JobWatch::end() {
  if (state_ != State::Hidden) outbox_.unwatch(watch_);
}

}  // namespace drun::rendezvous
