#include "rendezvous/rank_assignment.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/split.hpp"
#include "rendezvous/node_count.hpp"

namespace drun::rendezvous {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}

// The digits that start at `at`, without leading zeros; moves `at` behind them.
std::string_view number(std::string_view text, std::size_t& at) {
  while (at < text.size() && text[at] == '0')
    ++at;
  const std::size_t begin = at;
  while (at < text.size() && digit(text[at]))
    ++at;
  return text.substr(begin, at - begin);
}

bool by_name(const Candidate& a, const Candidate& b) {
  const auto order = natural_order(a.document->host, b.document->host);
  return order != 0 ? order < 0 : a.arrival < b.arrival;
}

bool by_arrival(const Candidate& a, const Candidate& b) {
  return a.arrival < b.arrival;
}

// Of "spine1/leaf4" the spine first; no place at all comes last.
std::strong_ordering network_order(std::string_view a, std::string_view b) {
  if (a.empty() != b.empty()) return a.empty() <=> b.empty();
  while (!a.empty() && !b.empty())
    if (const auto order = natural_order(take_until(a, '/'), take_until(b, '/')); order != 0)
      return order;
  return a.size() <=> b.size();
}

// Agents of one host, which nothing tells apart, keep their order.
bool by_network(const Candidate& a, const Candidate& b) {
  if (const auto order = network_order(a.document->network, b.document->network); order != 0)
    return order < 0;
  if (const auto order = natural_order(a.document->host, b.document->host); order != 0)
    return order < 0;
  if (a.last_rank != b.last_rank && a.last_rank && b.last_rank) return *a.last_rank < *b.last_rank;
  if (a.last_rank.has_value() != b.last_rank.has_value()) return a.last_rank.has_value();
  return a.arrival < b.arrival;
}

// Survivors by their last rank, before newcomers in the order `newcomers`.
template <typename Less>
auto survivors_first(Less newcomers) {
  return [newcomers](const Candidate& a, const Candidate& b) {
    if (a.last_rank.has_value() != b.last_rank.has_value()) return a.last_rank.has_value();
    if (a.last_rank && *a.last_rank != *b.last_rank) return *a.last_rank < *b.last_rank;
    return newcomers(a, b);
  };
}

bool host_then_name(const Candidate& a, const Candidate& b) {
  if (a.document->is_host != b.document->is_host) return a.document->is_host;
  return by_name(a, b);
}

std::vector<Candidate> choose(std::vector<Candidate> candidates, std::size_t at_most) {
  if (candidates.size() <= at_most) return candidates;
  const auto preference = [](const Candidate& c) {
    return std::tuple(c.aside, !c.last_rank.has_value(), !c.document->node_rank.has_value(),
                      !c.document->is_host, c.last_rank.value_or(0), c.arrival);
  };
  std::sort(candidates.begin(), candidates.end(),
            [&](const Candidate& a, const Candidate& b) { return preference(a) < preference(b); });
  candidates.resize(at_most);
  return candidates;
}

}  // namespace

std::strong_ordering natural_order(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      const auto x = number(a, i);
      const auto y = number(b, j);
      if (const auto order = x.size() <=> y.size(); order != 0) return order;
      if (const auto order = x <=> y; order != 0) return order;
      continue;
    }
    if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) <=> static_cast<unsigned char>(b[j]);
    ++i;
    ++j;
  }
  if (const auto order = (a.size() - i) <=> (b.size() - j); order != 0) return order;
  return a <=> b;  // node7 and node07: any order, but always the same
}

std::vector<Candidate> place(std::vector<Candidate> candidates, const Config& config) {
  const int places = nodes_taken(config, static_cast<int>(candidates.size()));
  candidates = choose(std::move(candidates), static_cast<std::size_t>(places));

  std::map<int, Candidate> slots;
  std::vector<Candidate> rest;
  for (const auto& c : candidates) {
    if (!c.document->node_rank || !slots.emplace(*c.document->node_rank, c).second)
      rest.push_back(c);
  }
  if (config.rank_order == RankOrder::Keep) {
    std::vector<Candidate> others;
    for (const auto& c : rest) {
      if (!c.last_rank || !slots.emplace(*c.last_rank, c).second) others.push_back(c);
    }
    rest = std::move(others);
    std::sort(rest.begin(), rest.end(), survivors_first(host_then_name));
  } else if (config.rank_order == RankOrder::Host) {
    std::sort(rest.begin(), rest.end(), by_name);
  } else if (config.rank_order == RankOrder::Topology) {
    std::sort(rest.begin(), rest.end(), by_network);
  } else {
    std::sort(rest.begin(), rest.end(), survivors_first(by_arrival));
  }

  int free = 0;
  auto taken = slots.begin();
  for (const auto& c : rest) {
    while (taken != slots.end() && taken->first == free) {
      ++taken;
      ++free;
    }
    slots.emplace_hint(taken, free++, c);
  }

  std::vector<Candidate> ordered;
  ordered.reserve(slots.size());
  for (const auto& [slot, candidate] : slots)
    ordered.push_back(candidate);
  return ordered;
}

std::vector<Assignment> assign(const std::vector<Candidate>& ordered, int round,
                               int restart_count) {
  std::vector<Assignment> places;
  places.reserve(ordered.size());
  std::unordered_map<std::string_view, int> role_sizes;
  int world_size = 0;
  std::int64_t ends_ms = 0;
  for (const auto& c : ordered) {
    if (const std::int64_t each = c.document->ends_ms; each != 0)
      ends_ms = ends_ms == 0 ? each : std::min(ends_ms, each);
    Assignment& a = places.emplace_back();
    a.round = round;
    a.restart_count = restart_count;
    a.group_rank = static_cast<int>(places.size()) - 1;
    a.group_world_size = static_cast<int>(ordered.size());
    a.first_rank = world_size;
    int& role_size = role_sizes[c.document->role];
    a.first_role_rank = role_size;
    world_size += c.document->local_world_size;
    role_size += c.document->local_world_size;
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i].world_size = world_size;
    places[i].ends_ms = ends_ms;
    places[i].role_world_size = role_sizes[ordered[i].document->role];
  }
  return places;
}

}  // namespace drun::rendezvous
