#include "launcher/watch/own_ranks.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/signal_block.hpp"
#include "base/small_file.hpp"
#include "launcher/process/descendants.hpp"

namespace drun::launcher {

OwnRanks::OwnRanks(Look look) : look_(std::move(look)) {}

void OwnRanks::begin(Time now) {
  next_ = now + kInterval;
  found_.reset();
  looks_ = 0;
}

bool OwnRanks::on_time(Time now, bool awaited) {
  if (!next_ || now < *next_) return false;
  const bool found = found_ != nullptr && *found_;
  if (!awaited || found || looks_ == kLooks) {
    end();
    return awaited && found;
  }
  found_ = look_();
  ++looks_;
  next_ = now + kInterval;
  return false;
}

bool is_spawned_by_python(std::string_view command_line) {
  return command_line.find("from multiprocessing.spawn import spawn_main") !=
         std::string_view::npos;
}

std::shared_ptr<std::atomic<bool>> look_for_own_ranks() {
  auto found = std::make_shared<std::atomic<bool>>(false);  // shared with the thread
  const SignalBlock no_signals;                             // they belong to the caller's threads
  try {
    std::thread([found] {
      const auto processes = process::descendants();
      *found = std::any_of(processes.begin(), processes.end(), [](pid_t pid) {
        const auto line = read_small_file("/proc/" + std::to_string(pid) + "/cmdline");
        return line && is_spawned_by_python(*line);
      });
    }).detach();
  } catch (const std::system_error&) {
    // No thread to be had: nothing is said.
  }
  return found;
}

}  // namespace drun::launcher
