// What relays say to a store in frames of the control protocol, and it to them: TCPStore requests
// of many clients over one connection. docs/protocol.md, section 1.11, has the byte layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/protocol/bytes.hpp"
#include "store/protocol/control_protocol.hpp"

namespace drun::store::relay_frames {

enum class Type : std::uint8_t {
  Begin = 0x14,         // this connection is a relay's from now on; answered by DONE
  Request = 0x15,       // one request of a client's, as torch 2.2 sends it
  WholeRequest = 0x16,  // likewise; the answer may have any length
  Leave = 0x17,         // nothing more comes of that client; answered by DONE
  SharedWait = 0x18,    // a WAIT for one key, of any number of clients
  PassOn = 0x19,        // a push that a SharedWait was told of is the next one's; the key

  Answer = 0x90,   // the reply, as torch 2.2 gets it
  Woken = 0x91,    // the client's WAIT or BARRIER is over
  TooLong = 0x92,  // nothing was done: the answer would be longer than kLongestAnswer
  Closed = 0x93,   // a connection of its own would be closed; the body says why
  // Something was put into the queue that a SharedWait, which goes on, waits for; its name.
  Pushed = 0x94
};

// A client's frames have its number as request id; another one has it only after a Leave.
using Stream = std::uint32_t;

// Of a Request.
inline constexpr std::size_t kLongestAnswer = 64 * 1024;

inline void append_frame(std::string& out, std::uint64_t id, Type type,
                         std::string_view body = {}) {
  append(out,
         static_cast<std::uint32_t>(control::kHeaderBytes - control::kLengthBytes + body.size()));
  append(out, id);
  append(out, static_cast<std::uint8_t>(type));
  out.append(body);
}

}  // namespace drun::store::relay_frames
