// What is said for an agent that was killed, when everything that it had started is gone: that is
// the proof of its death, so nobody has to wait for it.
#pragma once

#include <chrono>
#include <string>

namespace drun::process {

// Who is told, and in which words; what they mean is the agent's business.
struct Farewell {
  std::string address;  // a sockaddr of a stream socket; empty: nothing is to be said
  std::string bytes;
};

inline constexpr std::chrono::milliseconds kFarewellLimit{3'000};

// Connects, sends, and waits until the other side has closed the connection, which it does when it
// has read everything; all of it within kFarewellLimit. Tries once.
void say(const Farewell& farewell);

}  // namespace drun::process
