#include "store/relay/socket_owners.hpp"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/small_file.hpp"
#include "base/split.hpp"
#include "base/whole_number.hpp"

namespace drun::store {
namespace {

struct Ip {
  std::uint8_t family = 0;
  std::array<std::uint32_t, 4> words{};  // as the network has them
  std::uint16_t port = 0;                // likewise
};

Ip ip_of(const SocketAddress& address) {
  Ip ip;
  ip.family = static_cast<std::uint8_t>(address.storage.ss_family);
  if (ip.family == AF_INET6) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
    std::memcpy(ip.words.data(), &in6.sin6_addr, sizeof in6.sin6_addr);
    ip.port = in6.sin6_port;
  } else {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address.storage);
    ip.words[0] = in.sin_addr.s_addr;
    ip.port = in.sin_port;
  }
  return ip;
}

// As the lists have it: each word as a number of this machine.
std::string text_of(const Ip& ip, bool mapped) {
  std::array<char, 48> text{};
  const auto& w = ip.words;
  const unsigned port = ntohs(ip.port);
  if (mapped)
    std::snprintf(text.data(), text.size(), "0000000000000000%08X%08X:%04X", htonl(0xFFFF), w[0],
                  port);
  else if (ip.family == AF_INET)
    std::snprintf(text.data(), text.size(), "%08X:%04X", w[0], port);
  else
    std::snprintf(text.data(), text.size(), "%08X%08X%08X%08X:%04X", w[0], w[1], w[2], w[3], port);
  return text.data();
}

std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return take_until(line, ' ');
}

std::optional<SocketOwner> ask_kernel(int kernel, const Ip& local, const Ip& remote) {
  struct {
    nlmsghdr header{};
    inet_diag_req_v2 request{};
  } question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.request.sdiag_family = local.family;
  question.request.sdiag_protocol = IPPROTO_TCP;
  auto& id = question.request.id;
  std::memcpy(id.idiag_src, local.words.data(), sizeof id.idiag_src);
  std::memcpy(id.idiag_dst, remote.words.data(), sizeof id.idiag_dst);
  id.idiag_sport = local.port;
  id.idiag_dport = remote.port;
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (::send(kernel, &question, sizeof question, 0) != sizeof question) return std::nullopt;
  struct {
    nlmsghdr header{};
    inet_diag_msg found{};
    std::array<char, 1'024> more{};
  } answer;
  // It is there by now.
  const ssize_t size = ::recv(kernel, &answer, sizeof answer, MSG_DONTWAIT);
  constexpr std::size_t kLeast = sizeof answer.header + sizeof answer.found;
  if (size < static_cast<ssize_t>(kLeast) || answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY)
    return std::nullopt;
  // If there is no such connection the kernel finds the listener.
  const auto& got = answer.found.id;
  if (got.idiag_sport != local.port || got.idiag_dport != remote.port) return std::nullopt;
  return SocketOwner{answer.found.idiag_uid, answer.found.idiag_inode != 0};
}

}  // namespace

SocketOwners::SocketOwners()
    : kernel_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) {}

std::optional<SocketOwner> SocketOwners::of_peer(int accepted) {
  const SocketAddress local = peer_address_of(accepted);
  const SocketAddress remote = local_address_of(accepted);
  if (local.empty() || remote.empty()) return std::nullopt;
  if (kernel_)
    if (const auto found = ask_kernel(kernel_.get(), ip_of(local), ip_of(remote))) return found;
  for (const char* file : {"/proc/net/tcp", "/proc/net/tcp6"})
    if (const auto table = read_small_file(file))
      if (const auto found = owner_in_table(*table, local, remote)) return found;
  return std::nullopt;
}

std::optional<SocketOwner> owner_in_table(std::string_view table, const SocketAddress& local,
                                          const SocketAddress& remote) {
  const Ip ends[] = {ip_of(local), ip_of(remote)};
  // A socket for both kinds of addresses is in the list of IPv6. Each line of a long list costs a
  // search for its text, and no more: it is gone through for each connection.
  for (const bool mapped : {false, true}) {
    if (mapped && ends[0].family != AF_INET) break;
    const auto found =
        table.find(" " + text_of(ends[0], mapped) + " " + text_of(ends[1], mapped) + " ");
    if (found == std::string_view::npos) continue;
    std::string_view rest = table.substr(found);
    std::string_view line = take_until(rest, '\n');
    for (int i = 0; i < 6; ++i)
      (void)next_word(line);  // addresses, state, queues, timers, retransmissions
    const auto user = whole_number<uid_t>(next_word(line));
    (void)next_word(line);  // "timeout"
    const auto inode = whole_number<std::uint64_t>(next_word(line));
    if (user && inode) return SocketOwner{*user, *inode != 0};
  }
  return std::nullopt;
}

}  // namespace drun::store
