// A hash that is the same in every program and on every machine; std::hash may differ.
#pragma once

#include <cstdint>
#include <string_view>

namespace drun {

// FNV-1a of 64 bits. No shield against one who chooses the text.
constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

}  // namespace drun
