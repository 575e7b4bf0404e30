#include "launcher/views/local_door.hpp"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace drun::launcher {
namespace {

using asio::local::stream_protocol;

// After an error of accept(), which a lack of descriptors is.
constexpr std::chrono::seconds kPause{1};

}  // namespace

asio::error_code LocalDoor::open(const std::string& name, Serve serve) {
  serve_ = std::move(serve);
  asio::error_code error;
  (void)acceptor_.open(stream_protocol(), error);
  if (!error) (void)acceptor_.bind(std::string(1, '\0') + name, error);
  if (!error) (void)acceptor_.listen(16, error);
  // What drun starts must not go on listening in its place.
  if (!error && ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC) != 0)
    error = asio::error_code(errno, asio::system_category());
  if (!error) wait();
  return error;
}

void LocalDoor::close() {
  asio::error_code ignored;
  (void)acceptor_.close(ignored);
  pause_.cancel();
}

void LocalDoor::wait() {
  acceptor_.async_accept([this](asio::error_code error, stream_protocol::socket caller) {
    if (!acceptor_.is_open()) return;
    if (!error) {
      serve_(std::move(caller));
      return wait();
    }
    pause_.expires_after(kPause);
    pause_.async_wait([this](asio::error_code cancelled) {
      if (!cancelled) wait();
    });
  });
}

}  // namespace drun::launcher
