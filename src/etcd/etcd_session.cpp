#include "etcd/etcd_session.hpp"

#include <cstddef>

#include "base/hex.hpp"
#include "base/whole_number.hpp"

namespace drun::etcd {
namespace {

// No id of a job can make a key that begins so: in those, two capital digits follow a '%'.
constexpr const char* kFences = "drun/%session/";
constexpr std::size_t kFenceDigits = 20;
// The server of etcd reads up to 4 KiB at once, takes the end of what is sent for a caller who has
// gone, and then may not do what it was asked. It does not see the end as long as there is more.
constexpr std::size_t kFarewellPadding = 8'192;

// Digits of one length compare as the numbers do.
std::string fence_value(std::uint64_t generation) {
  const std::string digits = std::to_string(generation);
  return std::string(kFenceDigits - digits.size(), '0') + digits;
}

}  // namespace

Fence fence_of(LeaseId session, std::uint64_t generation) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<char>(static_cast<std::uint64_t>(session) >> shift & 255U));
  std::string key = kFences;
  append_hex(key, bytes);
  return {key, fence_value(generation)};
}

std::optional<std::uint64_t> generation_in(const std::string& value) {
  const auto generation = whole_number<std::uint64_t>(value);
  if (!generation || value.size() != kFenceDigits || *generation >= UINT32_MAX) return std::nullopt;
  return generation;
}

std::string farewell_bytes(LeaseId session, const Endpoint& member, const std::string& token) {
  const std::string body = lease_request(session);
  std::string bytes = std::string("POST ") + kRevokePath +
                      " HTTP/1.1\r\nHost: " + to_string(member) +
                      "\r\nContent-Type: application/json\r\nConnection: close\r\n";
  if (!token.empty()) bytes += "Authorization: " + token + "\r\n";
  bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  while (bytes.size() < kFarewellPadding)
    bytes += "\r\n";
  return bytes;
}

}  // namespace drun::etcd
