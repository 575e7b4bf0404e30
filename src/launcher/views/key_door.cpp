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

void KeyDoor::open(const std::string& job, std::string key, std::function<std::string()> place) {
  secure::wipe(key_);
  key_.swap(key);
  place_ = std::move(place);
  const auto error = door_.open(status::new_key_socket_name(::geteuid(), job),
                                [this](stream_protocol::socket caller) { serve(caller); });
  if (error) log::debug("no socket that gives drunctl the key: {}", error.message());
}

// It is short, so an empty buffer takes it whole.
void KeyDoor::serve(stream_protocol::socket& caller) const {
  if (!status::may_know(caller.native_handle())) return;
  const std::string place = place_();
  std::string answer;
  answer.reserve(key_.size() + place.size());  // nothing is left where it would have grown
  answer.append(key_).append(place);
  (void)::send(caller.native_handle(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  secure::wipe(answer);
}

}  // namespace drun::launcher
