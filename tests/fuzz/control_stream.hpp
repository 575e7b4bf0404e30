// What one connection of the control protocol must get for what it has sent: replies in order, each
// watch complete and without doubles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "store/protocol/control_protocol.hpp"
#include "store/table/table.hpp"

namespace drun::fuzz {

class ControlStream {
 public:
  // A frame that the server, which takes so many keys in a request, has taken.
  void sent(const store::control::Frame& frame, std::size_t keys_per_request);
  // All that the server has answered since the last call, whole frames. `closed`: it has ended the
  // connection, for which an error is the last word.
  void received(std::string_view bytes, bool closed);
  // Every watch knows what `table` holds now. Precondition: all output was received.
  void check_watches(const store::KeyTable& table) const;

 private:
  // A watch as its client knows it.
  struct Mirror {
    std::string key;
    bool prefix;
    std::uint64_t revision;
    std::map<std::string, std::string> entries;
  };
  struct Pending {
    std::uint64_t id = 0;
    bool is_malformed = false;
    bool may_be_silent = false;              // no answer, unless its id is wrong
    bool is_called = false;                  // perhaps, before the answer
    std::optional<std::uint64_t> unwatches;  // id of a watch
    std::optional<Mirror> watches;
  };

  void received(std::uint64_t id, const store::control::Reply& reply, bool closed);
  void skip_silent();
  [[nodiscard]] bool is_in_use(std::uint64_t id) const;
  void answer(Pending request, const store::control::Reply& reply);
  static void apply(Mirror& mirror, const store::control::Changes& changes);

  std::deque<Pending> pending_;  // in the order of their frames
  std::map<std::uint64_t, Mirror> watches_;
  bool is_welcome_ = false;
  bool is_ended_ = false;  // by an error
};

}  // namespace drun::fuzz
