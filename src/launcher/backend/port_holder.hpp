// Who listens at a TCP port of this machine, for error messages. As far as the system tells: the
// processes of other users keep their sockets to themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace drun::launcher {

// "process 1234 (nginx)", or "a connection of process 1234 (nginx)" if nobody listens there, but
// the port is a connection's own end, as outgoing ones get it. nullopt: nobody has it, or it cannot
// be told who.
[[nodiscard]] std::optional<std::string> port_holder(std::uint16_t port);

// The inodes of the sockets at `port`, in the text of /proc/net/tcp or tcp6: of those that listen,
// or of the others. Pure; lines that are not understood are skipped.
enum class SocketKind { Listener, Connection };
[[nodiscard]] std::set<std::string> inodes_at(std::string_view table, std::uint16_t port,
                                              SocketKind kind);

}  // namespace drun::launcher
