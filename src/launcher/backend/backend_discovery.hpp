// Whose address the rendezvous endpoint has: this machine's or another's. A name is looked up
// without waiting, and the look-up can be abandoned at any time, though no answer may come for
// minutes.
#pragma once

#include <functional>

#include <asio/io_context.hpp>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "store/client/async_look_up.hpp"

namespace drun::launcher {

class BackendDiscovery {
 public:
  // Whether this machine has one of the host's addresses; an error is the bare cause.
  using Answer = std::function<void(Result<bool> own)>;
  using StartLookUp = store::AsyncLookUp::Start;

  // `io` must outlive this.
  explicit BackendDiscovery(asio::io_context& io, StartLookUp start_look_up = store::start_look_up);

  // Calls back once, for a numeric host from inside the call. Not while another answer is awaited.
  void ask(const Endpoint& endpoint, Answer answer);
  // No call any more.
  void abandon() { look_up_.abandon(); }

 private:
  store::AsyncLookUp look_up_;
};

}  // namespace drun::launcher
