// What the nodes of a round say to one another through the workers' store: each says one text, and
// hears those of all.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "rendezvous/types.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks. A store that is lost ends the round soon, if it
// stays so; until then it is tried again.
class NodeExchange {
 public:
  // Called from the loop, never from inside a call. In the order of the group ranks.
  using Done = std::function<void(const std::vector<std::string>& texts)>;

  // `kind`: names the exchanges of one purpose, "pmi". `purpose`: for messages, "--framework mpi".
  NodeExchange(asio::io_context& io, const rendezvous::Assignment& assignment, std::string kind,
               std::string purpose);
  // Nothing is called any more.
  ~NodeExchange();
  NodeExchange(const NodeExchange&) = delete;
  NodeExchange& operator=(const NodeExchange&) = delete;

  // Number 0, 1, 2 ..., each once the one before is done: one that comes earlier is not begun.
  void begin(int number, std::string text, Done done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // its pending handlers have weak pointers
};

}  // namespace drun::launcher
