// --status-listen: the job's status for browsers, Prometheus and probes. A
// client with the job's token may have it take stacks.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "base/file_desk.hpp"
#include "launcher/job_stacks/page_stacks.hpp"
#include "launcher/options/options.hpp"
#include "launcher/page/page_server.hpp"
#include "launcher/page/page_sockets.hpp"
#include "launcher/telling/event_memory.hpp"
#include "launcher/views/page_answers.hpp"
#include "rendezvous/key_value.hpp"
#include "status/agent_status.hpp"

namespace drun::launcher {

// One thread: the loop's.
class StatusPage {
 public:
  // Of `options` it needs status_endpoint or status_socket. `own` and `stacks` are called from the
  // loop. The references must outlive this.
  StatusPage(asio::io_context& io, const Options& options, const std::string& host_name,
             std::function<status::AgentStatus()> own, const EventMemory& events,
             PageStacks::Take stacks);
  StatusPage(const StatusPage&) = delete;
  StatusPage& operator=(const StatusPage&) = delete;
  // A socket in a folder is removed; a file system that hangs is waited for for some seconds.
  ~StatusPage();

  void open();
  // As PageAnswers'.
  void tell_end(const rendezvous::Outcome& outcome);
  // Serves no more, and lets the loop end.
  void close();

  // As JobWatch's.
  void set_link(rendezvous::KeyValue* link);
  bool on_event(const rendezvous::KeyValueEvent& event);

 private:
  using Time = std::chrono::steady_clock::time_point;

  void try_to_listen();
  void on_listening(Result<PageSockets> sockets);
  void serve(const HttpRequest& request, const PageServer::Answer& answer);
  void on_time();
  void arm_timer();

  const Options& options_;
  PageServer server_;
  FileDesk desk_;
  DeadlineTimer timer_;
  PageAnswers answers_;
  std::optional<secure::Token> key_;  // of the page, with a token only
  std::optional<PageStacks> stacks_;  // likewise
  bool listens_ = false;
  bool closed_ = false;
  std::optional<Time> listen_again_;
};

}  // namespace drun::launcher
