// A ring of processes that add up their vectors. Each worker talks to two neighbours only, so the
// time does not grow with their number: the vector is cut into one piece per worker, and in every
// step each worker sends one piece to the right and takes one from the left.
//
// Everything here throws std::runtime_error with one line for the user.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <utility>

#include "drun/store/client.hpp"

namespace allreduce {

// An owning file descriptor; -1: none.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept { return std::swap(fd_, other.fd_), *this; }
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

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
  Socket left_;
  Socket right_;
};

}  // namespace allreduce
