#include "hang/connections.hpp"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/whole_number.hpp"

namespace drun::hang {
namespace {

struct Question {
  nlmsghdr header{};
  inet_diag_req_v2 request{};
};

Question question_of(std::uint8_t family, std::uint16_t flags) {
  Question question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  question.request.sdiag_family = family;
  question.request.sdiag_protocol = IPPROTO_TCP;
  return question;
}

struct LocalQuestion {
  nlmsghdr header{};
  unix_diag_req request{};
};

// Invalid if the kernel takes no questions.
template <typename Asked>
FileDescriptor ask_kernel(const Asked& question) {
  FileDescriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (socket && ::send(socket.get(), &question, sizeof question, 0) != sizeof question)
    socket.reset();
  return socket;
}

// Of every state but those without a process: TIME_WAIT, and the half-open ones of a listener.
constexpr std::uint32_t kStates = 0xffff & ~(1U << 6) & ~(1U << 12);

std::string address_of(const inet_diag_msg& socket) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::inet_ntop(socket.idiag_family, static_cast<const void*>(socket.id.idiag_dst), text.data(),
                  text.size()) == nullptr)
    return {};
  return to_string(Endpoint{text.data(), ntohs(socket.id.idiag_dport)});
}

template <typename T>
T copied(std::string_view bytes) {
  T value{};  // what an older kernel leaves out stays zero
  std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
  return value;
}

// A piece that begins with its own length, as messages and attributes of netlink do, taken off
// `rest`; empty: there is none. Without the `header` bytes.
std::string_view take_piece(std::string_view& rest, std::size_t length, std::size_t header) {
  constexpr std::size_t kAlign = 4;
  if (length < header || length > rest.size()) {
    rest = {};
    return {};
  }
  const std::string_view piece = rest.substr(header, length - header);
  rest.remove_prefix(std::min((length + kAlign - 1) / kAlign * kAlign, rest.size()));
  return piece;
}

// Both ways.
std::uint64_t bytes_in(std::string_view attributes) {
  while (attributes.size() >= sizeof(rtattr)) {
    const auto header = copied<rtattr>(attributes);
    const auto value = take_piece(attributes, std::size_t{header.rta_len}, sizeof header);
    if (header.rta_type != INET_DIAG_INFO) continue;
    const auto info = copied<tcp_info>(value);
    return info.tcpi_bytes_acked + info.tcpi_bytes_received;
  }
  return 0;
}

// By inode; 0: it has none.
std::uint64_t other_end_in(std::string_view attributes) {
  while (attributes.size() >= sizeof(rtattr)) {
    const auto header = copied<rtattr>(attributes);
    const auto value = take_piece(attributes, std::size_t{header.rta_len}, sizeof header);
    if (header.rta_type == UNIX_DIAG_PEER) return copied<std::uint32_t>(value);
  }
  return 0;
}

// Each message of the answer. False: the kernel does not tell, or not all.
template <typename Asked, typename Visit>
bool for_each_answer(const Asked& question, std::size_t least, Visit visit) {
  const FileDescriptor socket = ask_kernel(question);
  if (!socket) return false;
  std::vector<char> buffer(64 * 1024);
  for (;;) {
    const ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (size <= 0) return false;
    std::string_view rest(buffer.data(), static_cast<std::size_t>(size));
    while (rest.size() >= sizeof(nlmsghdr)) {
      const auto header = copied<nlmsghdr>(rest);
      const auto message = take_piece(rest, std::size_t{header.nlmsg_len}, sizeof header);
      if (header.nlmsg_type == NLMSG_DONE) return true;
      if (header.nlmsg_type == NLMSG_ERROR || message.size() < least) return false;
      visit(message);
    }
  }
}

// "socket:[4711]"
std::optional<std::uint64_t> inode_of(std::string_view file) {
  constexpr std::string_view kSocket = "socket:[";
  if (!file.starts_with(kSocket) || !file.ends_with(']')) return std::nullopt;
  file.remove_prefix(kSocket.size());
  file.remove_suffix(1);
  return whole_number<std::uint64_t>(file);
}

}  // namespace

void Connections::ask(std::uint8_t family) {
  Question question = question_of(family, NLM_F_DUMP);
  question.request.idiag_ext = 1U << (INET_DIAG_INFO - 1);
  question.request.idiag_states = kStates;
  known_ = for_each_answer(
               question, sizeof(inet_diag_msg),
               [this](std::string_view message) {
                 const auto found = copied<inet_diag_msg>(message);
                 const bool counts = left_out_ == 0 || (ntohs(found.id.idiag_sport) != left_out_ &&
                                                        ntohs(found.id.idiag_dport) != left_out_);
                 const std::uint64_t bytes = counts ? bytes_in(message.substr(sizeof found)) : 0;
                 by_inode_[found.idiag_inode] = {bytes, address_of(found)};
               }) ||
           known_;
}

void Connections::ask_for_local_ones() {
  if (std::exchange(asked_for_local_ones_, true)) return;
  LocalQuestion question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.request.sdiag_family = AF_UNIX;
  question.request.udiag_states = ~0U;
  question.request.udiag_show = UDIAG_SHOW_PEER;
  (void)for_each_answer(question, sizeof(unix_diag_msg), [this](std::string_view message) {
    const auto found = copied<unix_diag_msg>(message);
    other_ends_[found.udiag_ino] = other_end_in(message.substr(sizeof found));
  });
}

void Connections::ask() {
  if (std::exchange(asked_, true)) return;
  ask(AF_INET);
  if (known_) ask(AF_INET6);
}

const Connections::Connection* Connections::find(std::string_view file) {
  const auto inode = inode_of(file);
  if (!inode) return nullptr;
  ask();
  const auto known = by_inode_.find(*inode);
  return known == by_inode_.end() ? nullptr : &known->second;
}

std::uint64_t Connections::bytes_of(std::string_view file) {
  const Connection* const found = find(file);
  return found == nullptr ? 0 : found->bytes;
}

std::string Connections::peer_of(std::string_view file) {
  const Connection* const found = find(file);
  return found == nullptr ? std::string() : found->peer;
}

bool Connections::is_connection(std::string_view file) {
  const Connection* const found = find(file);
  return found != nullptr && !found->peer.ends_with(":0");
}

std::string Connections::other_end_of(std::string_view file) {
  const auto inode = inode_of(file);
  if (!inode) return {};
  ask_for_local_ones();
  const auto known = other_ends_.find(*inode);
  if (known == other_ends_.end() || known->second == 0) return {};
  return "socket:[" + std::to_string(known->second) + "]";
}

bool Connections::known() {
  ask();
  return known_;
}

// As the kernel finds the listener for a packet: nobody sends from port 0.
std::optional<uid_t> user_listening_at(const Endpoint& place) {
  const bool six = place.host.find(':') != place.host.npos;
  Question question = question_of(six ? AF_INET6 : AF_INET, 0);
  auto& id = question.request.id;
  if (::inet_pton(question.request.sdiag_family, place.host.c_str(),
                  static_cast<void*>(id.idiag_src)) != 1)
    return std::nullopt;
  id.idiag_sport = htons(place.port);
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  const FileDescriptor socket = ask_kernel(question);
  if (!socket) return std::nullopt;
  std::array<char, 8'192> buffer{};
  const ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
  if (size < static_cast<ssize_t>(sizeof(nlmsghdr))) return std::nullopt;
  std::string_view rest(buffer.data(), static_cast<std::size_t>(size));
  const auto header = copied<nlmsghdr>(rest);
  const auto message = take_piece(rest, std::size_t{header.nlmsg_len}, sizeof header);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || message.size() < sizeof(inet_diag_msg))
    return std::nullopt;
  const auto found = copied<inet_diag_msg>(message);
  constexpr std::uint8_t kListens = 10;
  if (found.idiag_state != kListens) return std::nullopt;
  return found.idiag_uid;
}

}  // namespace drun::hang
