#include "rendezvous/keys.hpp"

#include <cstddef>

namespace drun::rendezvous {
namespace {

constexpr std::string_view kHex = "0123456789ABCDEF";

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

std::string escape_id(std::string_view id) {
  std::string out;
  for (const char c : id) {
    if (plain(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

std::string unescape_id(std::string_view escaped) {
  std::string out;
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] == '%' && i + 2 < escaped.size()) {
      const auto high = kHex.find(escaped[i + 1]);
      const auto low = kHex.find(escaped[i + 2]);
      if (high != kHex.npos && low != kHex.npos) {
        out += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    out += escaped[i];
  }
  return out;
}

Keys::Keys(std::string_view run_id) : prefix(std::string(kAllJobs) + escape_id(run_id) + "/") {
  leader = prefix + "leader";
  job = prefix + "job";
  round = prefix + "round";
  outcome = prefix + "outcome";
  members = prefix + "member/";
  assignments = prefix + "assign/";
}

std::string Keys::member(std::string_view ticket) const {
  return members + std::string(ticket);
}

std::string Keys::assignment(std::string_view ticket) const {
  return assignments + std::string(ticket);
}

}  // namespace drun::rendezvous
