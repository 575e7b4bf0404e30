#include "store/relay/relay.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include "base/signal_block.hpp"
#include "store/relay/relay_trunk.hpp"
#include "store/relay/relayed_client.hpp"
#include "store/relay/socket_owners.hpp"
#include "store/server/drop_log.hpp"
#include "store/server/listen_socket.hpp"

namespace drun::store {
namespace {

constexpr int kMaxAccepts = 64;  // before others have their turn
constexpr std::chrono::milliseconds kAcceptPause{100};

// What a thread has for all clients.
struct Shared {
  SocketOwners owners;
  RelayedClient::Buffer buffer;
  DropLog log{"", " more messages about connections to the workers' store were left out"};
};

// One place with its clients. Made with std::make_shared; the loop's thread.
class RelayPlace : public std::enable_shared_from_this<RelayPlace> {
 public:
  RelayPlace(asio::io_context& io, const RelayOptions& options, Shared& shared,
             FileDescriptor listener, const Endpoint& store)
      : options_(options),
        shared_(shared),
        listener_(io, listener.release()),
        pause_(io),
        round_{io,
               store,
               options.tls,
               options.patience,
               shared.buffer,
               [this](const std::string& what, const std::string& kind) { say(what, kind); },
               std::make_shared<RelayTrunk>(
                   io, store, options.tls, shared.buffer,
                   [this](const std::string& what, const std::string& kind) { say(what, kind); }),
               [this](RelayedClient& client) { remove(client); }} {}

  void await_clients() {
    waits_ = true;
    listener_.async_wait(asio::posix::stream_descriptor::wait_read,
                         [self = shared_from_this()](std::error_code cancelled) {
                           self->waits_ = false;
                           if (!cancelled && self->listener_.is_open()) self->accept();
                         });
  }

  void close() {
    std::error_code ignored;
    listener_.close(ignored);
    pause_.cancel();
    round_.trunk->close();
    for (const auto& client : clients_)
      client->reset();
    clients_.clear();
  }

 private:
  void say(const std::string& what, const std::string& kind) {
    shared_.log.report(what, RelayedClient::Clock::now(), kind);
  }

  void accept() {
    for (int i = 0; i < kMaxAccepts; ++i) {
      if (clients_.size() >= options_.clients)
        return say("as many connections to the workers' store as this node has room for (" +
                       std::to_string(options_.clients) +
                       "; a higher limit of descriptors, ulimit -n, has more): others wait",
                   "full");
      FileDescriptor socket(
          ::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (socket) {
        add(std::move(socket));
      } else if (errno == EAGAIN) {
        break;
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        return pause(errno);
      }
    }
    await_clients();
  }

  // Those who want to connect wait in the kernel's queue meanwhile.
  void pause(int error) {
    say("connections to the workers' store wait: " + std::generic_category().message(error),
        "pause");
    pause_.expires_after(kAcceptPause);
    pauses_ = true;
    pause_.async_wait([self = shared_from_this()](std::error_code cancelled) {
      self->pauses_ = false;
      if (!cancelled && self->listener_.is_open()) self->accept();
    });
  }

  [[nodiscard]] bool may_come(int socket) {
    const auto owner = shared_.owners.of_peer(socket);
    const bool own = owner && owner->user == options_.user;
    if (own && (owner->user != 0 || is_really_roots(socket))) return true;
    if (own)
      say("a connection to the workers' store was closed before it was known whose it was: what it "
          "said is lost",
          "gone");
    // One that has come and gone is nobody's any more.
    else if (owner && owner->is_open)
      say("a process of user " + std::to_string(owner->user) +
              " wanted to connect to the workers' store: only those of user " +
              std::to_string(options_.user) + " may",
          "user " + std::to_string(owner->user));
    return false;
  }

  // Of a socket that nobody has any more the kernel may say that it is root's, as soon as it is
  // closed. One that is open now was so when it was asked about before.
  [[nodiscard]] bool is_really_roots(int socket) {
    const auto owner = shared_.owners.of_peer(socket);
    return owner && owner->is_open;
  }

  void add(FileDescriptor socket) {
    if (!may_come(socket.get())) return;
    const auto client = std::make_shared<RelayedClient>(round_, std::move(socket));
    client->index = clients_.size();
    clients_.push_back(client);
    client->start();
  }

  void remove(RelayedClient& client) {
    const std::size_t index = client.index;
    std::swap(clients_[index], clients_.back());
    clients_[index]->index = index;
    clients_.pop_back();
    if (waits_ || pauses_ || !listener_.is_open()) return;
    if (clients_.size() + 1 == options_.clients) await_clients();
  }

  const RelayOptions& options_;
  Shared& shared_;
  asio::posix::stream_descriptor listener_;
  asio::steady_timer pause_;
  const RelayedClient::Round round_;
  std::vector<std::shared_ptr<RelayedClient>> clients_;
  // For the next connection: for the listener, for a moment; or, if neither, for room.
  bool waits_ = false;
  bool pauses_ = false;
};

}  // namespace

class Relay::Impl {
 public:
  explicit Impl(RelayOptions options) : options_(std::move(options)) {}
  ~Impl() { end(); }

  Result<Endpoint> begin(const Endpoint& store) {
    auto bound = bind_endpoint({"127.0.0.1", 0});
    if (!bound) {
      auto six = bind_endpoint({"::1", 0});
      if (!six) return bound.error();
      bound = std::move(six);
    }
    FileDescriptor listener = std::move(bound->front());
    if (const Status listens = start_listening(listener.get()); !listens) return listens.error();
    auto place = local_endpoint(listener.get());
    if (!place) return place;
    if (!thread_.joinable()) start();
    asio::post(io_, [this, fd = listener.release(), store] {
      if (place_) place_->close();
      place_ = std::make_shared<RelayPlace>(io_, options_, shared_, FileDescriptor(fd), store);
      place_->await_clients();
    });
    return place;
  }

  void end() {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] {
      if (place_) place_->close();
      place_.reset();
      work_.reset();
    });
    thread_.join();
    io_.restart();
  }

 private:
  void start() {
    work_.emplace(io_.get_executor());
    const SignalBlock no_signals;  // they are the other threads' business
    thread_ = std::thread([this] { run(); });
  }

  // What a lack of memory or of the kernel's room breaks off must not end the agent.
  void run() {
    for (;;) {
      try {
        io_.run();
        return;
      } catch (const std::exception& failed) {
        shared_.log.report(std::string("a relayed connection is lost: ") + failed.what(),
                           RelayedClient::Clock::now(), "lost");
      }
    }
  }

  const RelayOptions options_;
  Shared shared_;
  asio::io_context io_{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::shared_ptr<RelayPlace> place_;  // the thread's
  std::thread thread_;
};

Relay::Relay(RelayOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Relay::~Relay() = default;

Result<Endpoint> Relay::begin(const Endpoint& store) {
  return impl_->begin(store);
}

void Relay::end() {
  impl_->end();
}

}  // namespace drun::store
