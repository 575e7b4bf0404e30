#include "launcher/process/farewell.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"

namespace drun::process {
namespace {

using Clock = std::chrono::steady_clock;

bool await(int socket, short what, Clock::time_point deadline) {
  pollfd entry{socket, what, 0};
  for (;;) {
    const int n = ::poll(&entry, 1, poll_limit(time_left(deadline)));
    if (n >= 0 || errno != EINTR) return n > 0;
  }
}

bool send_all(int socket, std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    if (!await(socket, POLLOUT, deadline)) return false;
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void await_close(int socket, Clock::time_point deadline) {
  char ignored[512];
  while (await(socket, POLLIN, deadline)) {
    const ssize_t n = ::recv(socket, ignored, sizeof ignored, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return;
  }
}

}  // namespace

void say(const Farewell& farewell) {
  sockaddr_storage address{};
  const std::size_t size = farewell.address.size();
  if (size < sizeof(sa_family_t) || size > sizeof address) return;
  std::memcpy(&address, farewell.address.data(), size);
  const auto deadline = Clock::now() + kFarewellLimit;
  const FileDescriptor socket(
      ::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return;
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                static_cast<socklen_t>(size)) != 0 &&
      errno != EINPROGRESS)
    return;
  if (!send_all(socket.get(), farewell.bytes, deadline)) return;
  ::shutdown(socket.get(), SHUT_WR);
  await_close(socket.get(), deadline);
}

}  // namespace drun::process
