#include "launcher/agent/status_door.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/log.hpp"
#include "status/agent_socket.hpp"

namespace drun::launcher {
namespace {

using asio::local::stream_protocol;

// After an error of accept(), which a lack of descriptors is.
constexpr std::chrono::seconds kPause{1};

}  // namespace

StatusDoor::StatusDoor(asio::io_context& io, std::string job,
                       std::function<status::AgentStatus()> answer)
    : acceptor_(io), pause_(io), job_(std::move(job)), answer_(std::move(answer)) {}

void StatusDoor::open() {
  asio::error_code error;
  (void)acceptor_.open(stream_protocol(), error);
  if (!error)
    (void)acceptor_.bind(std::string(1, '\0') + status::new_socket_name(::geteuid(), job_), error);
  if (!error) (void)acceptor_.listen(16, error);
  if (error) return log::debug("no socket for drunctl health: {}", error.message());
  wait();
}

void StatusDoor::close() {
  asio::error_code ignored;
  (void)acceptor_.close(ignored);
  pause_.cancel();
}

void StatusDoor::wait() {
  acceptor_.async_accept([this](asio::error_code error, stream_protocol::socket caller) {
    if (!acceptor_.is_open()) return;
    if (!error) {
      serve(caller);
      return wait();
    }
    pause_.expires_after(kPause);
    pause_.async_wait([this](asio::error_code cancelled) {
      if (!cancelled) wait();
    });
  });
}

// It is short, so an empty buffer takes it whole.
void StatusDoor::serve(stream_protocol::socket& caller) {
  if (!status::is_own_peer(caller.native_handle())) return;
  const std::string text = to_json(answer_()) + "\n";
  (void)::send(caller.native_handle(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace drun::launcher
