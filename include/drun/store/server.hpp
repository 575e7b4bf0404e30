// The key-value store's server: the TCPStore protocol of PyTorch 1.13 to 2.14 and drun's control
// protocol on one port. docs/protocol.md has the byte layouts. One thread runs it; stop(),
// stop_unless(), point_to() and reset_worker_table() may be called from any other.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "drun/store/limits.hpp"
#include "drun/store/place.hpp"

namespace drun::secure {
class TlsContext;
}

namespace drun::store {

// Which table a protocol's connections on a listener act on.
enum class Table {
  Job,     // the rendezvous's keys
  Workers  // the workers' store: empty at the start of every round
};

// When a listener begins to take connections.
enum class Listen {
  Now,
  AtReset  // with the next reset_worker_table(); until then the port is held, and refuses them
};

// What a server has heard of nodes that have gone. That stays true for the next one at its place,
// whichever of them comes to serve.
struct Deaths;

struct ServerOptions {
  Limits limits;
  // Clients that open in the way of torch 1.13 to 2.1 are all 2.1. The difference matters to
  // append() alone, and is guessed from the way its bytes come otherwise.
  bool old_clients_are_2_1 = false;
  // Groups of keys of Table::Job, ROOT/NAME/..., are deleted when they have had the key
  // ROOT/NAME/MARK for so long, and no session's key; without it, when they have had no session's
  // key for four times that. 0: never.
  std::chrono::milliseconds forget_ended{0};
  std::string ended_root = "drun";     // a job's group
  std::string ended_mark = "outcome";  // is there once it has ended
  // It is to succeed a job's store that was lost: it gives nobody a session until the job's
  // majority waits for one, and then it serves that job. docs/protocol.md, section 1.9.
  bool successor = false;
  // That job's prefix of keys; empty: the first one of which somebody with a vote comes. Of a first
  // store: the one that point_to() is about.
  std::string job{};
  // The nodes that may begin the job's first store, as an electorate without a rank, and whether
  // they may do so here. Other places of an electorate that begins no round count for nothing.
  Place founders{};
  bool founding = false;
  // A first store, where the job may run elsewhere: clients that have no part in a round of it wait
  // for so long from run() on, in case somebody says so.
  std::chrono::milliseconds listening{0};
  // So many nodes of a job are enough to have a majority, at the user's own risk. 0: a majority.
  std::uint32_t quorum = 0;
  // Of a successor: what the one before it at this place had heard. Null: there was none.
  std::shared_ptr<const Deaths> deaths{};
  // The job's token, of drun's own programs: only TLS with it leads to Table::Job, and to the
  // control protocol. TCPStore clients of a listener for Table::Workers need none. Null: none is
  // asked for.
  std::shared_ptr<const secure::TlsContext> tls{};
  // With a token: those need it, too. Relays have it.
  bool workers_need_token = false;
};

class Server {
 public:
  explicit Server(const ServerOptions& options);
  explicit Server(const Limits& limits = {}) : Server(ServerOptions{limits}) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Closes everything. Precondition: run() is not running.
  ~Server();

  // Before run(). Binds `endpoint` (port 0: any free one; host empty: all interfaces, dual stack;
  // a name: all its addresses) and says what was bound. Control connections act on Table::Job,
  // TCPStore connections on `tcpstore_table`. An error names the endpoint and the cause.
  Result<Endpoint> add_listener(const Endpoint& endpoint, Table tcpstore_table,
                                Listen listen = Listen::Now);
  // The same with a socket that is bound already. It is the server's from now on, which closes it,
  // after an error too.
  Result<Endpoint> adopt_listener(int bound, Table tcpstore_table, Listen listen = Listen::Now);

  // Before run(). Keeps Table::Job, its queues and the sessions in `file`: loads it if it is there,
  // and replaces it at every `interval` in which something has changed, and when run() ends. A
  // session of the snapshot can be resumed for its time to live. Replacing it holds up the clients
  // for as long as copying what the table holds takes; a thread writes the copy. An error: the file
  // cannot be read, is damaged, is another store's or cannot be replaced; it names the file, leaves
  // it as it is, and the server must not be used.
  Status use_snapshot(const std::string& file,
                      std::chrono::milliseconds interval = std::chrono::seconds(1));
  // Once run() has returned: whether the file holds what the server held.
  [[nodiscard]] Status last_snapshot() const;

  // Before run(), for a program that does nothing else: any of `signals` is a stop() too. They are
  // blocked in the calling thread, which is to call run(); block them in all others.
  void stop_on(const sigset_t& signals);

  // Serves until stop(). Call from the thread that is to serve; blocks all signals in it, without
  // stop_on().
  void run();
  // Any thread, and signal handlers; before run() too, which then returns at once.
  void stop();

  // Stops, unless Table::Job has a key that `needed` accepts. True: it stops, or was stopped
  // before. Question and end are one step: no request that comes after the question is served any
  // more. `needed` is called in the thread of run(), while this call waits. While run() runs, or
  // has run.
  [[nodiscard]] bool stop_unless(const std::function<bool(std::string_view key)>& needed);

  // A successor that does not serve, or a first store, says from now on where the job's store is,
  // as a numeric address, and of which generation, and begins none. Generation 0, of a successor:
  // nobody knows; it waits for a majority of a round's nodes. False: it is the job's store, and
  // nothing has changed. While run() runs.
  [[nodiscard]] bool point_to(std::uint64_t generation, const Endpoint& store);
  // Once run() has returned; of a successor.
  [[nodiscard]] std::shared_ptr<const Deaths> deaths() const;

  // Drops all connections to Table::Workers, empties it, and lets its listeners listen; returns
  // when that is done. An error: one of them cannot. While run() runs or is about to.
  Status reset_worker_table();

  // For a program that starts run() only when somebody comes. Before run(), from the thread that
  // will start it:
  // As reset_worker_table(), which would wait for run().
  Status open_worker_table();
  // Readable while run() has something to do. The server's: do not close it.
  [[nodiscard]] int fd() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drun::store
