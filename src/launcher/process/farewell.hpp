// What is said for an agent that was killed, when everything that it had started is gone: that is
// the proof of its death, so nobody has to wait for it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace drun::process {

// A receiver, and what it is sent; what that means is the agent's business.
struct Words {
  std::string address;  // a sockaddr of a stream socket
  std::string bytes;
};

struct Farewell {
  std::string address;  // as in Words; empty: nothing is to be said to a first one
  std::string bytes;
  // Stores that may have taken the place of the first: they are told if that one does not take it.
  std::vector<Words> others;

  [[nodiscard]] bool empty() const { return address.empty() && others.empty(); }
};

inline constexpr std::chrono::milliseconds kFarewellLimit{3'000};
// The longest that say() takes: first the one, then the others.
inline constexpr std::chrono::milliseconds kLongestFarewell = 2 * kFarewellLimit;

// Connects, sends, and waits until the other side has closed the connection, which it does when it
// has read everything; all of it within kFarewellLimit. Tries once. If that one does not take it,
// all the others are told at the same time: which of them listens to it is not known. One that
// resets the connection may have begun anew, and is told again. It has ended when one of them has
// taken it and all that can be reached have it, or after kFarewellLimit more.
void say(const Farewell& farewell);

}  // namespace drun::process
