// The server's loop: who is let in, and when.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "store/server/listen_socket.hpp"
#include "store/server/server_loop.hpp"

namespace drun::store {
namespace {

constexpr int kMaxAccepts = 64;  // of one listener before others have their turn
constexpr Milliseconds kAcceptPause{100};

}  // namespace

Result<Endpoint> ServerLoop::add_listener(FileDescriptor bound, Table tcpstore_table,
                                          Listen listen) {
  Result<Endpoint> local = local_endpoint(bound.get());
  if (!local) return local;
  ::fcntl(bound.get(), F_SETFL, ::fcntl(bound.get(), F_GETFL) | O_NONBLOCK);
  ::fcntl(bound.get(), F_SETFD, FD_CLOEXEC);
  auto listener = std::make_unique<Listener>(std::move(bound), tcpstore_table);
  if (listen == Listen::Now) {
    const Status started = start_listening(listener->socket.get());
    if (!started) return started.error();
    listener->is_listening = true;
    watch(listener->socket.get(), *listener, EPOLLIN);
  }
  listeners_.push_back(std::move(listener));
  return local;
}

ServerLoop::Backlog ServerLoop::accept(Listener& listener) {
  for (int i = 0; i < kMaxAccepts; ++i) {
    FileDescriptor socket(
        ::accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      add_connection(std::move(socket), listener);
      continue;
    }
    switch (errno) {
      case EAGAIN:
        return Backlog::Empty;
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        pause(listener, errno);
        return Backlog::NoRoom;
      default:  // this one connection failed before it was accepted
        continue;
    }
  }
  return Backlog::PerhapsMore;
}

// Those who want to connect wait in the kernel's queue meanwhile.
void ServerLoop::pause(Listener& listener, int error) {
  drop_log_.report("accepting connections pauses: " + std::generic_category().message(error), now_);
  listener.paused_until = now_ + kAcceptPause;
  watch(listener.socket.get(), listener, 0);
}

void ServerLoop::resume_listeners() {
  for (const auto& listener : listeners_) {
    if (!listener->paused_until || *listener->paused_until > now_) continue;
    listener->paused_until.reset();
    if (!try_watch(listener->socket.get(), *listener, EPOLLIN)) pause(*listener, errno);
  }
}

void ServerLoop::drop_worker_connections() {
  for (std::size_t i = 0; i < connections_.size();) {
    Connection& connection = *connections_[i];
    if (connection.serves(worker_table_) && connection.may_be_tcpstore())
      remove(connection);
    else
      ++i;
  }
}

Status ServerLoop::reset_worker_table() {
  // Whoever waits to be accepted came for the old table: let all in, to be dropped with the others.
  for (const auto& listener : listeners_) {
    if (listener->table != Table::Workers || !listener->is_listening) continue;
    for (bool made_room = true; made_room;) {
      const Backlog left = accept(*listener);
      const std::size_t before = connections_.size();
      drop_worker_connections();
      made_room =
          left == Backlog::PerhapsMore || (left == Backlog::NoRoom && connections_.size() < before);
    }
  }
  worker_table_.clear();
  Status status = Done{};
  for (const auto& listener : listeners_) {
    if (listener->table != Table::Workers || listener->is_listening) continue;
    const Status started = start_listening(listener->socket.get());
    if (!started) {
      status = started;
      continue;
    }
    listener->is_listening = true;
    watch(listener->socket.get(), *listener, EPOLLIN);
  }
  return status;
}

}  // namespace drun::store
