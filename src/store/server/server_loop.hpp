// The server's loop: one thread, one epoll, all connections, listeners and timers.
//
// Not an Asio loop, which reads a second time for each request to learn that there is nothing more:
// here the system calls are the cost. A connection's events are edge-triggered, so that the kernel
// looks at it once per event, and a read that did not fill its buffer has taken all: a request
// takes one recv and one send, and a share of an epoll_wait.
#pragma once

#include <signal.h>
#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/mailbox.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "drun/store/server.hpp"
#include "store/server/connection.hpp"
#include "store/server/drop_log.hpp"
#include "store/server/event_source.hpp"
#include "store/server/newcomers.hpp"
#include "store/server/snapshot_writer.hpp"
#include "store/server/turn_queue.hpp"
#include "store/table/ended_groups.hpp"

namespace drun::store {

class ServerLoop final : public ConnectionOwner {
 public:
  using Command = std::function<void()>;

  explicit ServerLoop(const ServerOptions& options);
  ~ServerLoop() override;

  Result<Endpoint> add_listener(FileDescriptor bound, Table tcpstore_table, Listen listen);
  Status use_snapshot(const std::string& file, Milliseconds interval);
  [[nodiscard]] Status last_snapshot() const { return last_snapshot_; }
  void stop_on(const sigset_t& signals);
  void run();

  // ---- any thread ----
  void stop();
  // Runs `command` in the loop's thread.
  void post(Command command);

  // Readable while there is something to do.
  [[nodiscard]] int fd() const { return epoll_.get(); }

  // ---- the loop's thread, or before run() the one that will start it ----
  Status reset_worker_table();
  [[nodiscard]] bool stop_unless(const std::function<bool(std::string_view key)>& needed);
  // Likewise: see Server.
  [[nodiscard]] bool point_to(std::uint64_t generation, const Endpoint& store) {
    return succession_.point_to(generation, store, now_);
  }
  [[nodiscard]] const Deaths& deaths() const { return succession_.deaths(); }
  // What was posted. run() does it, too.
  void run_commands();

 private:
  struct Listener : EventSource {
    Listener(FileDescriptor bound, Table served)
        : EventSource(Kind::Listener), socket(std::move(bound)), table(served) {}
    FileDescriptor socket;
    Table table;
    bool is_listening = false;
    std::optional<Time> paused_until;  // accepting failed
  };

  void request_flush(Connection& connection) override;
  void request_turn(Connection& connection) override;
  bool end_a_stranger(const Connection& asking) override { return end_oldest_stranger(&asking); }
  [[nodiscard]] Time now() const override { return now_; }

  void handle_all(std::span<epoll_event> events);
  void handle(const epoll_event& event);
  void serve_waiting(TurnQueue& waiting);
  enum class Backlog { Empty, PerhapsMore, NoRoom };
  Backlog accept(Listener& listener);
  void drop_worker_connections();
  void pause(Listener& listener, int error);
  void resume_listeners();
  void add_connection(FileDescriptor socket, Listener& listener);
  void refuse(int fd, const std::string& why);
  [[nodiscard]] bool make_room();
  bool end_oldest_stranger(const Connection* asking);
  void make_go(Connection& connection, const char* why);
  void say_full();
  // `unread`: there may be more to read, now.
  void after_event(Connection& connection, bool unread = false);
  void remove(Connection& connection);
  void report(Connection& connection);
  void flush_listed();
  void check_blocked();
  void end_unwelcome();
  void take_signal();
  void save_snapshot_if_due();
  void save_last_snapshot();
  void note_snapshot(const Status& result);
  [[nodiscard]] int timeout_ms() const;
  // `again`: also if it is watched like this already, so that epoll reports what is there by now.
  void watch(int fd, EventSource& source, std::uint32_t events, bool again = false);
  // False: the kernel has no room for one more, which errno says.
  [[nodiscard]] bool try_watch(int fd, EventSource& source, std::uint32_t events,
                               bool again = false);

  Limits limits_;
  Budget budget_;
  KeyTable job_table_;
  KeyTable worker_table_;
  Sessions sessions_;
  StoreSuccession succession_;
  std::optional<EndedGroups> ended_;
  ServerCounters counters_;
  Turn turn_;
  PeerContext job_context_;
  PeerContext worker_context_;
  SharedBuffers shared_;

  FileDescriptor epoll_;
  FileDescriptor stop_event_;
  FileDescriptor signals_;  // of stop_on()
  Mailbox<Command> mailbox_;
  EventSource stop_source_{EventSource::Kind::Stop};
  EventSource signal_source_{EventSource::Kind::Signal};
  EventSource mailbox_source_{EventSource::Kind::Mailbox};
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<Connection>> connections_;
  Newcomers<Connection> newcomers_;
  Time full_said_at_ = Time::min();
  std::vector<Connection*> listed_;                   // to be flushed
  TurnQueue waiting_sessions_;                        // connections that wait for their turn
  TurnQueue waiting_;                                 // the others'
  std::vector<std::unique_ptr<Connection>> removed_;  // freed when the round of events is over
  Time now_;                                          // of the round of events
  Time next_blocked_check_ = Time::max();
  DropLog drop_log_;
  std::optional<SnapshotWriter> snapshot_;
  Milliseconds snapshot_interval_{0};
  Time next_snapshot_ = Time::max();
  std::uint64_t saved_generation_ = 0;  // of table and sessions together
  Status last_snapshot_ = Done{};
  bool is_stopping_ = false;
};

}  // namespace drun::store
