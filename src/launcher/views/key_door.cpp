#include "launcher/views/key_door.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/log.hpp"
#include "secure/token.hpp"
#include "status/agent_socket.hpp"

namespace drun::launcher {
namespace {

using asio::local::stream_protocol;

// After an error of accept(), which a lack of descriptors is.
constexpr std::chrono::seconds kPauseOfKeys{1};

}  // namespace

KeyDoor::~KeyDoor() {
  secure::wipe(key_);
}

void KeyDoor::open(const std::string& job, const std::string& key,
                   std::function<std::string()> place) {
  key_ = key;
  place_ = std::move(place);
  asio::error_code error;
  (void)acceptor_.open(stream_protocol(), error);
  if (!error)
    (void)acceptor_.bind(std::string(1, '\0') + status::new_key_socket_name(::geteuid(), job),
                         error);
  if (!error) (void)acceptor_.listen(16, error);
  // What drun starts must not go on listening in its place.
  if (!error && ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC) != 0)
    error = asio::error_code(errno, asio::system_category());
  if (error) return log::debug("no socket that gives drunctl the key: {}", error.message());
  wait();
}

void KeyDoor::close() {
  asio::error_code ignored;
  (void)acceptor_.close(ignored);
  pause_.cancel();
}

// It is short, so an empty buffer takes it whole.
void KeyDoor::serve(stream_protocol::socket& caller) const {
  if (!status::may_know(caller.native_handle())) return;
  std::string answer = key_ + place_();
  (void)::send(caller.native_handle(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  secure::wipe(answer);
}

void KeyDoor::wait() {
  acceptor_.async_accept([this](asio::error_code error, stream_protocol::socket caller) {
    if (!acceptor_.is_open()) return;
    if (!error) {
      serve(caller);
      return wait();
    }
    pause_.expires_after(kPauseOfKeys);
    pause_.async_wait([this](asio::error_code cancelled) {
      if (!cancelled) wait();
    });
  });
}

}  // namespace drun::launcher
