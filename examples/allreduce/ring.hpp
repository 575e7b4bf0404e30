// A ring of processes that add up their vectors. Each worker talks to two neighbours only, so the
// time does not grow with their number: the vector is cut into one piece per worker, and in every
// step each worker sends one piece to the right and takes one from the left.
//
// Everything here throws std::runtime_error with one line for the user.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

#include "drun/base/file_descriptor.hpp"
#include "drun/store/client.hpp"

namespace allreduce {

class Ring {
 public:
  // Listens, tells the others where through the store, and connects to both neighbours.
  Ring(drun::store::Client& store, int rank, int size, std::chrono::milliseconds timeout);

  // Afterwards `values` holds, on every worker, the sum over all workers.
  void all_reduce(std::span<double> values);

 private:
  // Piece i of the vector; the index counts around the ring.
  [[nodiscard]] std::span<double> piece(std::span<double> values, int index) const;
  // Sends and receives at the same time: two neighbours that both only sent would fill their
  // sockets' buffers and wait for ever.
  void exchange(std::span<const double> to_right, std::span<double> from_left);

  int rank_;
  int size_;
  std::chrono::milliseconds timeout_;
  drun::FileDescriptor left_;
  drun::FileDescriptor right_;
};

}  // namespace allreduce
