// Several agents of one machine (--local-nodes) say the same things at about the same time: the
// user is to read them once. The agents share a table of what was said how often.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "launcher/telling/shared_array.hpp"

namespace drun::launcher {

class SharedLogDedup {
 public:
  // The table is shared with the processes that are forked afterwards, each with its own copy of
  // this object. Throws std::system_error.
  SharedLogDedup() : table_(kEntries) {}

  // Whether to say it: false if another process has said the same as often as this one by now.
  // Any thread.
  [[nodiscard]] bool first_to_say(std::string_view text);

 private:
  struct Entry {
    std::atomic<std::uint64_t> text;  // a hash of it; 0: free
    std::atomic<std::uint32_t> count;
  };
  static constexpr std::size_t kEntries = 4096;

  Entry* find(std::uint64_t text);

  SharedArray<Entry> table_;
  std::mutex mutex_;  // guards own_
  std::unordered_map<std::uint64_t, std::uint32_t> own_;
};

}  // namespace drun::launcher
