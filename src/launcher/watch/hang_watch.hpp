// --hang-timeout: looks at this node's workers in another thread, and says when none of them has
// made progress for so long. One thread: the agent's loop, which it never blocks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "base/file_desk.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "hang/flight_recorder.hpp"
#include "hang/nccl_ras.hpp"
#include "hang/process_reader.hpp"
#include "launcher/watch/hang_judge.hpp"
#include "launcher/workers/hung_ranks.hpp"
#include "launcher/workers/worker_group.hpp"

namespace drun::launcher {

class HangWatch {
 public:
  // How long find_places() may take, and the ranks for their dumps.
  static constexpr std::chrono::seconds kPlacesLimit{3};
  static constexpr std::chrono::seconds kDumpLimit{5};
  // And if a file system hangs in which they are.
  static constexpr std::chrono::seconds kDumpsAtMost = 2 * kDumpLimit;

  // `group` must outlive this. `on_stalled` is called from the loop, with true when none of the
  // workers that run has made progress for `timeout`, and with false when one has again. Nullopt:
  // nobody looks. `on_doubt` gets, once, why workers of which nothing has come for `timeout` are
  // not taken for such. `ras`: where NCCL's service would be, which is asked about workers that are
  // busy for nothing.
  HangWatch(asio::io_context& io, std::optional<std::chrono::milliseconds> timeout, Endpoint ras,
            const WorkerGroup& group, std::function<void(bool)> on_stalled,
            std::function<void(const std::string&)> on_doubt);

  void start();
  void cancel();

  // Finds out where the workers wait that run, and then calls `told` from the loop; within some
  // seconds in any case.
  void find_places(std::function<void(const std::vector<WaitingRank>&)> told);
  // Asks the workers that run for dumps of PyTorch's flight recorder, if it is on in them, and then
  // calls `told` from the loop; within some seconds. Without `timeout`, too.
  void ask_for_dumps(const hang::FlightRecorder& recorder,
                     std::function<void(const Result<hang::Dumps>&)> told);
  // drun's own helper stops the workers to take their stacks; it has let them go. A look that meets
  // it tells nothing of the workers, and is not counted.
  void on_held(bool held);
  // What NCCL has said of the job's collectives; before it was asked, nothing.
  [[nodiscard]] const hang::StuckCollectives& collectives() const;

 private:
  void look();
  void on_look(hang::NodeLook look);
  void ask_nccl();
  void obey(const HangJudge::Verdict& verdict);
  [[nodiscard]] std::vector<hang::WatchedRank> watched() const;

  asio::io_context& io_;
  const Endpoint ras_;
  const WorkerGroup& group_;
  const std::function<void(bool)> on_stalled_;
  const std::function<void(const std::string&)> on_doubt_;
  std::optional<HangJudge> judge_;  // nullopt: nobody looks
  int holders_ = 0;                 // helpers that hold workers now
  int holds_ = 0;                   // times that one began
  bool disturbed_ = false;          // since the last look that counted
  std::chrono::steady_clock::time_point held_since_{};
  std::optional<FileDesk> desk_;
  std::optional<FileDesk> aside_;   // for NCCL, whose answer may take a while: looks go on
  std::optional<FileDesk> places_;  // the other nodes wait for these: not behind NCCL
  std::optional<FileDesk> dumps_;   // since they were asked for
  DeadlineTimer timer_;
};

}  // namespace drun::launcher
