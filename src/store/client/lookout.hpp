// Keeps asking the servers at several endpoints where a job's store is, all of them side by side,
// and tells them what this program knows. A question a second, of a few dozen bytes.
//
// Runs on the caller's asio::io_context, one thread. The sink is called from the io_context, never
// from inside a call; it may call the lookout, and may destroy it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <asio/io_context.hpp>

#include "drun/base/endpoint.hpp"
#include "store/client/inquiry_fsm.hpp"

namespace drun::store {

class Lookout {
 public:
  // A server has said something new, or cannot be asked any more.
  using Sink = std::function<void(std::size_t endpoint, const Whereabouts& answer)>;

  // Asks at once. `io` must outlive this.
  Lookout(asio::io_context& io, const std::vector<Endpoint>& endpoints,
          const InquiryFsm::Options& options, const Sink& sink);
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;
  ~Lookout();

  void tell(const StoreNews& news);

 private:
  class Inquiry;
  std::vector<std::shared_ptr<Inquiry>> inquiries_;
};

}  // namespace drun::store
