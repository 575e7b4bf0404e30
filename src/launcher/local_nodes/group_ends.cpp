#include "launcher/local_nodes/group_ends.hpp"

#include "base/counted.hpp"
#include "base/exit_codes.hpp"

namespace drun::launcher {
namespace {

// An agent gives what its workers were ended by as a shell does.
std::string how(const process::ExitStatus& status) {
  process::ExitStatus shown = status;
  if (const int signal = status.signal == 0 ? signal_of_exit_code(status.code) : 0; signal != 0)
    shown = {0, signal};
  return process::describe(shown);
}

}  // namespace

ChildEnds::Consequence GroupEnds::on_end(std::size_t child, const process::ExitStatus& status,
                                         bool /*unannounced*/) {
  Consequence result;
  const bool is_news = !told_to_stop_ && !killed();
  if (child == static_cast<std::size_t>(groups_)) {
    lighthouse_left_ = false;
    if (is_news && groups_left_ > 0)
      result.line = "the lighthouse has ended (" + how(status) + "), and is not started again";
    return result;
  }
  --groups_left_;
  const int code = status.shell_code();
  if (code != 0 && first_failure_ == 0) first_failure_ = code;
  if (code != 0 && is_news) result.line = group_line(child, status);
  if (groups_left_ == 0 && lighthouse_left_) result.stop_one = groups_;
  return result;
}

std::string GroupEnds::group_line(std::size_t group, const process::ExitStatus& status) const {
  return name(group) + " of " + std::to_string(groups_) + " has failed for good (" + how(status) +
         ")" +
         (groups_left_ == 0 ? "" : "; " + counted(groups_left_, "group goes on", "groups go on"));
}

std::string GroupEnds::name(std::size_t child) const {
  return child == static_cast<std::size_t>(groups_) ? "the lighthouse"
                                                    : "replica group " + std::to_string(child);
}

int GroupEnds::exit_code() const {
  if (first_failure_ != 0) return first_failure_;
  return killed() ? exit_code_of_signal(killed_by_) : 0;
}

}  // namespace drun::launcher
