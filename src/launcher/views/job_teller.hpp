// Tells what the job's documents say to drunctl status and history on this host, for jobs whose
// store drunctl cannot ask itself: those of one node, which have none, and those that meet at etcd.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "base/file_desk.hpp"
#include "launcher/views/job_watch.hpp"
#include "rendezvous/key_value.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks. Until somebody asks it has no thread of its own,
// and the store is asked for nothing.
class JobTeller {
 public:
  static constexpr rendezvous::WatchId kWatch = JobWatch::kWatch - 3;
  // For a store to answer; then what is known is the answer.
  static constexpr std::chrono::milliseconds kLimit{3'000};

  // Called from the loop, once, later, unless cancel() forgets it.
  using Say = std::function<void(const std::string& text)>;

  JobTeller(asio::io_context& io, const std::string& run_id);
  JobTeller(const JobTeller&) = delete;
  JobTeller& operator=(const JobTeller&) = delete;

  // jobs::encode() of the documents: none, if nothing is known of the job.
  void ask(Say say);
  // Nobody is told anything any more.
  void cancel();

  // As JobWatch's.
  void set_link(rendezvous::KeyValue* link);
  bool on_event(const rendezvous::KeyValueEvent& event);

 private:
  void advance();
  void tell();

  asio::io_context& io_;
  JobWatch watch_;
  DeadlineTimer limit_;
  std::optional<FileDesk> thread_;  // makes one text of many
  std::vector<Say> waiting_;
};

}  // namespace drun::launcher
