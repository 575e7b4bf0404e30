// MASTER_PORT for --worker-store rank0, where rank 0's worker binds it itself.
#pragma once

#include <cstdint>

#include "drun/base/result.hpp"

namespace drun::launcher {

// A port that nothing on this machine uses now and that no outgoing connection will be given: it
// lies outside the kernel's range for those (ip_local_port_range), so that between this call and
// the worker's bind only a program that asks for this very number could take it. A different one
// each time.
[[nodiscard]] Result<std::uint16_t> find_worker_store_port();

}  // namespace drun::launcher
