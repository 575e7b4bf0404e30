// What the ends of a job's replica groups mean: each is a world of its own, so that none is stopped
// for another. Their lighthouse, if there is one, is the child after the last of them; it ends with
// them. Pure.
#pragma once

#include "launcher/local_nodes/child_ends.hpp"

namespace drun::launcher {

class GroupEnds final : public ChildEnds {
 public:
  GroupEnds(int groups, bool lighthouse)
      : groups_(groups), groups_left_(groups), lighthouse_left_(lighthouse) {}

  [[nodiscard]] Consequence on_end(std::size_t child, const process::ExitStatus& status,
                                   bool unannounced) override;
  void on_stop() override { told_to_stop_ = true; }
  void on_killed(int signal) override { killed_by_ = signal; }

  [[nodiscard]] std::string name(std::size_t child) const override;
  [[nodiscard]] int left() const override { return groups_left_ + (lighthouse_left_ ? 1 : 0); }
  [[nodiscard]] bool killed() const override { return killed_by_ != 0; }
  // 0 if all groups succeeded, else the code of the first that did not.
  [[nodiscard]] int exit_code() const override;

 private:
  [[nodiscard]] std::string group_line(std::size_t group, const process::ExitStatus& status) const;

  const int groups_;
  int groups_left_;
  bool lighthouse_left_;
  int first_failure_ = 0;  // its exit code
  bool told_to_stop_ = false;
  int killed_by_ = 0;
};

}  // namespace drun::launcher
