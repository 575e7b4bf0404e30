// Random bytes from the kernel, good enough for secrets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace drun {

// Not std::random_device, which asks the processor what it can do: slow in a virtual machine. Any
// thread. Throws std::system_error if the kernel refuses.
void fill_with_random_bytes(std::span<std::byte> bytes);

// To seed a generator of pseudo-random numbers with.
[[nodiscard]] std::uint32_t random_seed();

// `count` random characters a-z, 0-9: a name that nobody else uses.
[[nodiscard]] std::string random_name(std::size_t count);

}  // namespace drun
