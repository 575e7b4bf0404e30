// A TCP connection that sends and expects exact bytes. Every read has a deadline, so that a missing
// answer fails the test instead of hanging it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "drun/base/endpoint.hpp"
#include "store/protocol/control_protocol.hpp"
#include "store/protocol/tcpstore_codec.hpp"
#include "support/patience.hpp"

namespace drun::test {

class RawConnection {
 public:
  // One answer may take a sanitized server the sending of very much to others first.
  static constexpr std::chrono::milliseconds kPatience = 2 * test::kPatience;

  // 127.0.0.1 and the like.
  explicit RawConnection(const Endpoint& endpoint, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0)
      ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(endpoint.port);
    ::inet_pton(AF_INET, endpoint.host.c_str(), &address.sin_addr);
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

  // False: the peer closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // Exactly `size` bytes, or fewer if the peer closes or keeps silent.
  std::string receive(std::size_t size, std::chrono::milliseconds patience = kPatience) {
    std::string bytes(size, '\0');
    std::size_t have = 0;
    while (have < size && readable(patience)) {
      const ssize_t got = ::recv(fd_.get(), bytes.data() + have, size - have, 0);
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    return bytes;
  }

  [[nodiscard]] bool readable(std::chrono::milliseconds patience) const {
    pollfd poll{fd_.get(), POLLIN, 0};
    return ::poll(&poll, 1, static_cast<int>(patience.count())) == 1;
  }

  // True once the peer has closed or reset the connection; what it sent before is skipped.
  [[nodiscard]] bool is_closed_by_peer(std::chrono::milliseconds patience = kPatience) {
    char bytes[4096];
    while (readable(patience)) {
      const ssize_t got = ::recv(fd_.get(), bytes, sizeof bytes, 0);
      if (got <= 0) return true;
    }
    return false;
  }
  void close() { fd_.reset(); }

 private:
  FileDescriptor fd_;
  bool connected_ = false;
};

// Requests of torch 2.2, as bytes.
inline std::string set_request(std::string_view key, std::string_view value) {
  std::string bytes;
  store::tcpstore::Request request;
  request.op = store::tcpstore::Op::Set;
  request.key = key;
  request.value = value;
  store::tcpstore::encode(bytes, store::TcpStoreVersion::Torch2_2, request);
  return bytes;
}
inline std::string get_request(std::string_view key) {
  std::string bytes;
  store::tcpstore::Request request;
  request.op = store::tcpstore::Op::Get;
  request.key = key;
  store::tcpstore::encode(bytes, store::TcpStoreVersion::Torch2_2, request);
  return bytes;
}

// Speaks torch 2.2, or an old version without a handshake.
class TcpStoreConnection : public RawConnection {
 public:
  using TcpStoreVersion = store::TcpStoreVersion;
  using Op = store::tcpstore::Op;

  explicit TcpStoreConnection(const Endpoint& endpoint,
                              TcpStoreVersion version = TcpStoreVersion::Torch2_2)
      : RawConnection(endpoint), version_(version) {
    if (version == TcpStoreVersion::Torch2_2) send(store::tcpstore::kHandshake);
  }

  void request(const store::tcpstore::Request& request) {
    std::string bytes;
    store::tcpstore::encode(bytes, version_, request);
    send(bytes);
  }
  void set(std::string_view key, std::string_view value) {
    store::tcpstore::Request r;
    r.op = Op::Set;
    r.key = key;
    r.value = value;
    request(r);
  }
  std::string get(std::string_view key) {
    store::tcpstore::Request r;
    r.op = Op::Get;
    r.key = key;
    request(r);
    return receive_vector();
  }
  std::int64_t add(std::string_view key, std::int64_t delta) {
    store::tcpstore::Request r;
    r.op = Op::Add;
    r.key = key;
    r.number = delta;
    request(r);
    return receive_number();
  }
  void start_wait(const std::vector<std::string_view>& keys) {
    store::tcpstore::Request r;
    r.op = Op::Wait;
    r.keys = keys;
    request(r);
  }
  std::string receive_vector() { return receive(static_cast<std::size_t>(receive_number())); }
  std::int64_t receive_number() {
    const std::string bytes = receive(8);
    EXPECT_EQ(bytes.size(), 8U) << "no answer";
    return bytes.size() == 8 ? store::load<std::int64_t>(bytes) : 0;
  }

 private:
  TcpStoreVersion version_;
};

// Speaks the control protocol. Messages hold views into the last frame received.
class ControlConnection : public RawConnection {
 public:
  struct Received {
    std::uint64_t request = 0;
    store::control::Reply reply = store::control::Error{};
  };

  explicit ControlConnection(const Endpoint& endpoint, int receive_buffer = 0)
      : RawConnection(endpoint, receive_buffer) {
    std::string opening;
    store::control::encode_opening(opening);
    send(opening);
    EXPECT_TRUE(std::holds_alternative<store::control::Welcome>(receive_reply().reply));
  }

  void request(std::uint64_t id, const store::control::Request& message) {
    std::string bytes;
    store::control::encode(bytes, id, message);
    send(bytes);
  }
  Received receive_reply(std::chrono::milliseconds patience = kPatience) {
    using namespace store::control;
    frame_ = receive(kHeaderBytes, patience);
    if (frame_.size() < kHeaderBytes) {
      ADD_FAILURE() << "no frame came";
      return {};
    }
    frame_ += receive(4 + store::load<std::uint32_t>(frame_) - kHeaderBytes);
    const FrameResult found = next_frame(frame_, 0xFFFFFFFF);
    Received received;
    received.request = found.frame.request;
    EXPECT_EQ(found.status, FrameStatus::Complete);
    EXPECT_EQ(decode_reply(found.frame, received.reply), DecodeStatus::Ok);
    return received;
  }
  template <typename T>
  T receive_as(std::uint64_t id) {
    const Received received = receive_reply();
    EXPECT_EQ(received.request, id);
    const T* reply = std::get_if<T>(&received.reply);
    EXPECT_NE(reply, nullptr) << "reply " << received.reply.index();
    return reply ? *reply : T{};
  }
  template <typename T>
  T call(std::uint64_t id, const store::control::Request& message) {
    request(id, message);
    return receive_as<T>(id);
  }
  // What a key holds now.
  std::optional<std::string> value_of(std::string_view key) {
    using namespace store::control;
    const std::uint64_t watch = ++last_question_;
    std::optional<std::string> value;
    for (const Entry& entry : call<Snapshot>(watch, Watch{key, false}).entries)
      value.emplace(*entry.value);
    (void)call<store::control::Done>(++last_question_, Unwatch{watch});
    return value;
  }
  // What the server tells about itself.
  std::uint64_t counter(std::string_view name) {
    const auto reply = call<store::control::Counters>(++last_question_, store::control::Stats{});
    for (const auto& [key, value] : reply.counters)
      if (key == name) return value;
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }

 private:
  std::string frame_;
  std::uint64_t last_question_ = 1000;  // beyond the ids that tests use
};

}  // namespace drun::test
