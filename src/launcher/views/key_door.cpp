#include "launcher/views/key_door.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "base/log.hpp"
#include "secure/token.hpp"
#include "status/agent_socket.hpp"

namespace drun::launcher {
namespace {

using asio::local::stream_protocol;

}  // namespace

KeyDoor::~KeyDoor() {
  secure::wipe(key_);
}

void KeyDoor::open(const std::string& job, const std::string& key,
                   std::function<std::string()> place) {
  key_ = key;
  place_ = std::move(place);
  const auto error = door_.open(status::new_key_socket_name(::geteuid(), job),
                                [this](stream_protocol::socket caller) { serve(caller); });
  if (error) log::debug("no socket that gives drunctl the key: {}", error.message());
}

// It is short, so an empty buffer takes it whole.
void KeyDoor::serve(stream_protocol::socket& caller) const {
  if (!status::may_know(caller.native_handle())) return;
  std::string answer = key_ + place_();
  (void)::send(caller.native_handle(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  secure::wipe(answer);
}

}  // namespace drun::launcher
