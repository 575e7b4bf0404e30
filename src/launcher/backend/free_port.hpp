// Free ports for servers that workers start: MASTER_PORT for --worker-store rank0, where rank 0's
// worker binds it itself, and those of TF_CONFIG.
#pragma once

#include <cstdint>

#include "base/file_descriptor.hpp"
#include "drun/base/result.hpp"

namespace drun::launcher {

// A port that nothing on this machine uses now and that no outgoing connection will be given: it
// lies outside the kernel's range for those (ip_local_port_range), so that after `socket` is closed
// only a program that asks for this very number could take it. A different one each time.
struct HeldPort {
  FileDescriptor socket;  // bound; nobody else can be
  std::uint16_t port = 0;
};
[[nodiscard]] Result<HeldPort> hold_free_port();

}  // namespace drun::launcher
