// The versions of PyTorch's TCPStore protocol. They differ in opcodes and in the handshake.
#pragma once

#include <cstdint>

namespace drun::store {

// Each is named after the first torch release that speaks it.
enum class TcpStoreVersion : std::uint8_t {
  Torch1_13,  // and 2.0: no handshake; has no append, multi_get, multi_set, cancelled wait
  Torch2_1,   // alone: no handshake; cannot be told from Torch1_13 by asking
  Torch2_2    // and later, and drun
};

}  // namespace drun::store
