#include "rendezvous/keys.hpp"

#include <cstddef>
#include <cstdint>

#include "base/whole_number.hpp"

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
  history = prefix + "history";
  members = prefix + "member/";
  assignments = prefix + "assign/";
  facts = prefix + "facts/";
  gone = prefix + "gone/";
  death = prefix + "death/";
  silence = prefix + "silence";
  look = prefix + "look";
}

std::string Keys::answers_to(std::string_view id) const {
  return "drun-stacks/" + prefix.substr(kAllJobs.size()) + std::string(id) + "/";
}

std::string Keys::member(std::string_view ticket) const {
  return members + std::string(ticket);
}

std::string Keys::assignment(std::string_view ticket) const {
  return assignments + std::string(ticket);
}

std::string Keys::facts_of(std::string_view ticket) const {
  return facts + std::string(ticket);
}

std::string Keys::death_of(std::string_view ticket) const {
  return death + std::string(ticket);
}

std::string Keys::beat_of(std::string_view ticket) const {
  return prefix + "beat/" + std::string(ticket);
}

std::optional<Place> Keys::place_of_gone(std::string_view key) const {
  if (!key.starts_with(gone)) return std::nullopt;
  key.remove_prefix(gone.size());
  const auto after_era = key.find('.');
  const auto after_round = after_era == key.npos ? key.npos : key.find('.', after_era + 1);
  if (after_round == key.npos) return std::nullopt;
  const auto era = whole_number<std::int64_t>(key.substr(0, after_era));
  const auto number = whole_number<int>(key.substr(after_era + 1, after_round - after_era - 1));
  const auto rank = whole_number<int>(key.substr(after_round + 1));
  if (!era || !number || !rank) return std::nullopt;
  return Place{*era, *number, *rank};
}

}  // namespace drun::rendezvous
