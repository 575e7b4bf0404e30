// One asynchronous attempt to connect: looks the name up if it must, then tries its addresses one
// after the other. One thread: the io_context's.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <asio/io_context.hpp>

#include "base/file_descriptor.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"

namespace drun::store {

class Dialer {
 public:
  using Callback = std::function<void(Result<FileDescriptor>)>;

  // Calls back once, from the io_context, never from inside the constructor. The error is the bare
  // cause of the last address. Each address has five seconds; the look-up has no limit but
  // cancel(). `first`: of the addresses, the first to be tried.
  Dialer(asio::io_context& io, const Endpoint& endpoint, Callback callback, std::size_t first = 0);
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;
  ~Dialer();  // cancels: no call any more

  // In the callback: which address is connected.
  [[nodiscard]] std::size_t address() const;

 private:
  class Attempt;
  std::shared_ptr<Attempt> attempt_;  // shared with its pending handlers
};

}  // namespace drun::store
