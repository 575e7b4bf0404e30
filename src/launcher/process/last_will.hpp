// What the agent has ordered for its end, if it is killed: watchdog and guardian both know it, and
// either can do it alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/process/farewell.hpp"
#include "launcher/process/wire.hpp"

namespace drun::process {

class LastWill {
 public:
  // One message of the agent's; others than RemoveFolder, LeaveFolders and Farewell are
  // ignored.
  void take(wire::Type type, std::string_view payload);

  [[nodiscard]] const Farewell& farewell() const { return farewell_; }
  // May hang with the folders' file system. What is gone already does not matter.
  void remove_folders() const;

 private:
  std::vector<std::string> folders_;
  Farewell farewell_;
};

}  // namespace drun::process
