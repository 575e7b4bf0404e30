#include "launcher/telling/shared_log_dedup.hpp"

#include <functional>

namespace drun::launcher {
namespace {

constexpr std::size_t kProbes = 64;  // so many places are tried for one text

}  // namespace

// Null if the table is full.
SharedLogDedup::Entry* SharedLogDedup::find(std::uint64_t text) {
  for (std::size_t i = 0; i < kProbes; ++i) {
    Entry& entry = table_[(text + i) % table_.size()];
    std::uint64_t found = 0;
    if (entry.text.compare_exchange_strong(found, text) || found == text) return &entry;
  }
  return nullptr;
}

bool SharedLogDedup::first_to_say(std::string_view text) {
  const std::uint64_t hash = std::hash<std::string_view>()(text) | 1U;
  Entry* entry = find(hash);
  if (entry == nullptr) return true;
  const std::uint32_t times = [&] {
    const std::lock_guard lock(mutex_);
    return ++own_[hash];
  }();
  std::uint32_t said = entry->count.load();
  while (said < times)
    if (entry->count.compare_exchange_weak(said, times)) return true;
  return false;
}

}  // namespace drun::launcher
