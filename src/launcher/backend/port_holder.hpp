// Who listens at a TCP port of this machine, for error messages. As far as the system tells: the
// processes of other users keep their sockets to themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace drun::launcher {

// "process 1234 (nginx)"; nullopt: nobody listens there, or it cannot be told who.
[[nodiscard]] std::optional<std::string> port_holder(std::uint16_t port);

// The inodes of the sockets that listen at `port`, in the text of /proc/net/tcp or tcp6. Pure;
// lines that are not understood are skipped.
[[nodiscard]] std::set<std::string> listening_inodes(std::string_view table, std::uint16_t port);

}  // namespace drun::launcher
