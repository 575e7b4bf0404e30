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
  // Stores that may have taken the place of the first, or that may do so later.
  std::vector<Words> others;
  // TlsContext::secret() for all these stores, which hear it over TLS; empty: they hear it as it
  // is.
  std::string key{};

  [[nodiscard]] bool empty() const { return address.empty() && others.empty(); }
};

// The longest that say() takes.
inline constexpr std::chrono::milliseconds kFarewellLimit{3'000};

// Connects to all of them, sends, and waits until one of them has closed the connection, which it
// does when it has read everything, and all others that can be reached within half a second after
// that have it. Which of them will need it is not known: the first may be lost before its next one
// has begun. One of the others that resets the connection may have begun anew, and is told again.
void say(const Farewell& farewell);

}  // namespace drun::process
