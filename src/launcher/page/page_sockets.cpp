#include "launcher/page/page_sockets.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/printable.hpp"
#include "store/server/listen_socket.hpp"

namespace drun::launcher {
namespace {

constexpr int kBacklog = 64;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), longest_socket_path()));
  return address;
}

FileDescriptor new_socket() {
  return FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// A socket file that no process listens at.
bool is_left_behind(const sockaddr_un& address) {
  const FileDescriptor probe = new_socket();
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

std::string url_of(Endpoint local) {
  if (local.host == "0.0.0.0" || local.host == "::") local.host = "localhost";
  return "http://" + to_string(local) + "/";
}

}  // namespace

Result<PageSockets> listen_at(const Endpoint& address) {
  auto bound = store::bind_endpoint(address);
  if (!bound) return bound.error();
  for (const auto& socket : *bound)
    if (const auto listens = store::start_listening(socket.get()); !listens) return listens.error();
  const auto local = store::local_endpoint(bound->front().get());
  if (!local) return local.error();
  return PageSockets{std::move(*bound), url_of(*local)};
}

Result<PageSockets> listen_at(const std::string& path) {
  const std::string what = "listen at " + as_name(path);
  if (path.size() > longest_socket_path()) return Error::from_errno(ENAMETOOLONG, what);
  FileDescriptor socket = new_socket();
  if (!socket) return Error::from_errno(errno, "open a socket");
  const sockaddr_un address = address_of(path);
  const auto bind = [&] {
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  };
  if (!bind()) {
    if (errno != EADDRINUSE) return Error::from_errno(errno, what);
    struct stat there {};
    const bool is_socket = ::lstat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode);
    if (!is_socket) return Error::from_errno(EEXIST, what + ", which is no socket");
    if (!is_left_behind(address)) return Error::from_errno(EADDRINUSE, what);
    if (::unlink(path.c_str()) != 0 || !bind()) return Error::from_errno(errno, what);
  }
  // Nobody can have connected before it listens.
  if (::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 || ::listen(socket.get(), kBacklog) != 0)
    return Error::from_errno(errno, what);
  PageSockets result;
  result.sockets.push_back(std::move(socket));
  result.place = "unix:" + path;
  return result;
}

void remove_socket(const std::string& path) {
  if (is_left_behind(address_of(path))) (void)::unlink(path.c_str());
}

std::size_t longest_socket_path() {
  return sizeof sockaddr_un().sun_path - 1;
}

}  // namespace drun::launcher
