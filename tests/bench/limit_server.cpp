#include "bench/limit_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file_descriptor.hpp"

namespace drun::bench {
namespace {

constexpr std::size_t kBufferBytes = 65536;

struct Connection {
  bool open = false;
  bool greeted = false;
  bool wants_writable = false;
  std::size_t unanswered = 0;  // bytes that have no reply yet
  std::size_t owed = 0;        // bytes of replies not written yet
  std::string kept;            // Copy: the last bytes that came
  std::size_t kept_at = 0;     // where the next byte goes
};

class LimitServer {
 public:
  LimitServer(const LimitSizes& sizes, LimitKind kind, int out)
      : sizes_(sizes), copies_(kind == LimitKind::Copy) {
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_.get(), 65535) != 0 ||
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::system_error(errno, std::generic_category(), "listen");
    }
    epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
    add(listener_.get(), EPOLLIN, EPOLL_CTL_ADD);
    const std::string line = "127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "\n";
    if (::write(out, line.data(), line.size()) < 0) ::_exit(1);
  }

  [[noreturn]] void run() {
    std::array<epoll_event, 512> events;
    for (;;) {
      const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < n; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == listener_.get()) {
          accept_all();
        } else if ((events[static_cast<std::size_t>(i)].events & EPOLLOUT) != 0) {
          write_owed(fd);
        } else {
          read_some(fd);
        }
      }
    }
  }

 private:
  void add(int fd, std::uint32_t events, int operation) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    ::epoll_ctl(epoll_.get(), operation, fd, &event);
  }

  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) return;
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      if (connections_.size() <= static_cast<std::size_t>(fd)) {
        connections_.resize(static_cast<std::size_t>(fd) + 1);
      }
      Connection& connection = at(fd);
      connection = {};
      connection.open = true;
      add(fd, EPOLLIN, EPOLL_CTL_ADD);
    }
  }

  void read_some(int fd) {
    const ssize_t n = ::recv(fd, buffer_.data(), buffer_.size(), 0);
    if (n > 0) {
      if (copies_) copy(at(fd), {buffer_.data(), static_cast<std::size_t>(n)});
      arrived(fd, static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EAGAIN) {
      close(fd);
    }
  }

  // Over the bytes before, as a store puts a value where the last one was.
  void copy(Connection& connection, std::string_view bytes) const {
    std::string& kept = connection.kept;
    kept.resize(std::max<std::size_t>(
        {kept.size(), bytes.size(), sizes_.request_bytes, sizes_.reply_bytes, sizes_.hello_reply}));
    while (!bytes.empty()) {
      const std::size_t size = std::min(bytes.size(), kept.size() - connection.kept_at);
      std::memcpy(kept.data() + connection.kept_at, bytes.data(), size);
      connection.kept_at = (connection.kept_at + size) % kept.size();
      bytes.remove_prefix(size);
    }
  }

  void close(int fd) {
    ::close(fd);
    at(fd) = {};
  }

  void arrived(int fd, std::size_t bytes) {
    Connection& connection = at(fd);
    connection.unanswered += bytes;
    if (!connection.greeted) {
      if (connection.unanswered < sizes_.hello_bytes) return;
      connection.unanswered -= sizes_.hello_bytes;
      connection.greeted = true;
      connection.owed += sizes_.hello_reply;
      bytes = connection.unanswered;
    }
    if (sizes_.release_at > 0) {
      if (const std::size_t load = sizes_.load; load != std::exchange(load_, load)) collected_ = 0;
      collected_ += bytes;
      if (collected_ >= sizes_.release_at) release();
    } else if (const std::size_t size = sizes_.request_bytes; size > 0) {
      connection.owed += connection.unanswered / size * sizes_.reply_bytes;
      connection.unanswered %= size;
    }
    write_owed(fd);
  }

  void release() {
    collected_ = 0;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      Connection& connection = connections_[i];
      const std::size_t waited = std::exchange(connection.unanswered, 0);
      if (!connection.open || waited != sizes_.request_bytes) continue;
      connection.owed += sizes_.reply_bytes;
      write_owed(static_cast<int>(i));
    }
  }

  void write_owed(int fd) {
    Connection& connection = at(fd);
    std::string_view from = zeros_;
    if (copies_) from = connection.kept;
    while (connection.owed > 0) {
      const ssize_t n =
          ::send(fd, from.data(), std::min(connection.owed, from.size()), MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN) {
        close(fd);
        return;
      }
      if (n < 0) break;
      connection.owed -= static_cast<std::size_t>(n);
    }
    const bool wants = connection.owed > 0;
    if (wants != connection.wants_writable) {
      connection.wants_writable = wants;
      add(fd, wants ? EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
    }
  }

  Connection& at(int fd) { return connections_[static_cast<std::size_t>(fd)]; }

  const LimitSizes& sizes_;
  const bool copies_;
  FileDescriptor listener_;
  FileDescriptor epoll_;
  std::vector<Connection> connections_;  // by descriptor
  std::size_t collected_ = 0;            // bytes towards release_at, of this load
  std::size_t load_ = 0;
  std::array<char, kBufferBytes> buffer_{};
  const std::string zeros_ = std::string(kBufferBytes + 8, '\0');
};

}  // namespace

LimitSizes& shared_limit_sizes() {
  void* memory = ::mmap(nullptr, sizeof(LimitSizes), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  return *new (memory) LimitSizes{};
}

std::optional<LimitKind> limit_kind(std::string_view server) {
  if (server == "limit") return LimitKind::Limit;
  if (server == "copy") return LimitKind::Copy;
  return std::nullopt;
}

void serve_limit(const LimitSizes& sizes, LimitKind kind, int out) {
  LimitServer(sizes, kind, out).run();
}

}  // namespace drun::bench
