// Hosts that could not be started: those with the same reason share a line. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace drun::launcher::hosts {

class FailedHosts {
 public:
  // `why`: one line, which may name the host.
  void add(const std::string& host, const std::string& why);
  [[nodiscard]] bool any() const { return !reasons_.empty(); }
  // "gpu[0-10]: it refuses the connection (ssh: connect to host {host} port 22: ...)", a line for
  // each reason in the order in which they came, the host itself in place of {host} if it is only
  // one. At most so many groups of names in a line. Forgets them.
  [[nodiscard]] std::vector<std::string> take(std::size_t most_named);

 private:
  struct Reason {
    std::string text;   // of any host
    std::string first;  // as the first host had it
    std::vector<std::string> hosts;
  };
  std::vector<Reason> reasons_;  // few
};

}  // namespace drun::launcher::hosts
