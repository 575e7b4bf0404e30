#include "launcher/local_nodes/node_ends.hpp"

#include "base/exit_codes.hpp"

namespace drun::launcher {

NodeEnds::Step NodeEnds::on_end(const process::ExitStatus& status, bool unannounced) {
  --left_;
  // If all were told to stop, each of them says how the job ended.
  const bool left_alone = unannounced && !told_to_stop_;
  // Nobody misses a spare that comes when the job has ended, or one that did not hear of its end.
  if (status.signal == 0 && left_alone && over_) return Step::None;
  if (status.signal != 0 || (status.code != 0 && left_alone)) return on_lost(status.shell_code());
  if (outcome_.value_or(0) == 0) outcome_ = status.code;
  over_ = over_ || !unannounced;
  return Step::None;
}

NodeEnds::Step NodeEnds::on_lost(int code) {
  if (lost_ == 0) lost_ = code;
  if (told_to_stop_ || too_few_ || left_ == 0 || left_ >= min_nodes_) return Step::None;
  too_few_ = true;
  return Step::StopOthers;
}

int NodeEnds::exit_code() const {
  if (killed()) return outcome_.value_or(0) != 0 ? *outcome_ : exit_code_of_signal(killed_by_);
  return too_few_ ? lost_ : outcome_.value_or(lost_);
}

}  // namespace drun::launcher
