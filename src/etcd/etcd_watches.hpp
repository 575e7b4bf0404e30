// The watches of a connection to etcd: of which keys, and the streams that tell of them, line by
// line. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/key_value.hpp"

namespace drun::etcd {

class EtcdWatches {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using WatchId = rendezvous::WatchId;

  enum class State {
    Absent,     // not watched
    Listed,     // watched, but not on this connection yet
    Beginning,  // its stream has said nothing yet
    Streaming
  };
  struct Watch {
    std::string key;
    bool prefix = false;
    std::uint64_t serial = 0;  // no other watch has had it, whatever its name
  };
  // Without an end, a line of a stream is no longer.
  static constexpr std::size_t kLongestLine = 256UL << 20U;

  // Its serial. There must be none of this name.
  std::uint64_t add(WatchId name, std::string key, bool prefix);
  // Its stream, which nobody reads any more; nullopt: it has none.
  std::optional<std::uint64_t> remove(WatchId name);
  // Null: it is not watched any more, although another of this name may be.
  [[nodiscard]] const Watch* find(WatchId name, std::uint64_t serial) const;
  // Of all, in the order of their names.
  [[nodiscard]] std::vector<std::pair<WatchId, std::uint64_t>> serials() const;
  [[nodiscard]] State state(WatchId name) const;

  // A stream of it begins, whose first line is due then.
  void begin(WatchId name, std::uint64_t stream, Time first_line_due);
  [[nodiscard]] std::optional<WatchId> of_stream(std::uint64_t stream) const;
  // Of a stream of theirs. False: it sends a line without an end.
  [[nodiscard]] bool receive(std::uint64_t stream, std::string_view bytes);
  // The next whole line of a stream, without its end; nullopt: none has come, or the stream counts
  // no more.
  [[nodiscard]] std::optional<std::string> take_line(std::uint64_t stream);
  // Its stream works.
  void note_word(WatchId name);

  // The connection is over, its streams with it.
  void drop_streams();
  [[nodiscard]] bool all_stream() const;
  // When the first of the first lines is due.
  [[nodiscard]] std::optional<Time> next_due() const;

 private:
  struct Entry : Watch {
    std::uint64_t stream = 0;   // 0: not begun on this connection
    std::string text;           // of the stream, as far as it has come
    std::size_t taken = 0;      // of the text
    std::size_t looked_at = 0;  // there is no end of a line before
    std::optional<Time> due;    // for its first line; nullopt: it has come, or is not due
  };
  using Entries = std::map<WatchId, Entry>;
  [[nodiscard]] Entries::const_iterator entry_of(std::uint64_t stream) const;

  Entries watches_;
  std::uint64_t last_serial_ = 0;
};

}  // namespace drun::etcd
