// Asks and tells the servers at the job's endpoints, as StoreStanding says: where the store is,
// while this agent has none, or where it is served now, for agents that come to the endpoints.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <asio/io_context.hpp>

#include "drun/base/endpoint.hpp"
#include "launcher/backend/store_standing.hpp"
#include "launcher/options/options.hpp"
#include "store/client/inquiry_fsm.hpp"
#include "store/client/lookout.hpp"

namespace drun::launcher {

class EndpointLookouts {
 public:
  // From the loop.
  using OnAnswer = std::function<void(const Endpoint& endpoint, const store::Whereabouts& answer)>;

  // The references must outlive this.
  EndpointLookouts(asio::io_context& io, const Options& options, const StoreStanding& standing,
                   OnAnswer on_answer)
      : io_(io), options_(options), standing_(standing), on_answer_(std::move(on_answer)) {}
  EndpointLookouts(const EndpointLookouts&) = delete;
  EndpointLookouts& operator=(const EndpointLookouts&) = delete;

  // Goes on with this, or begins it. `news`: what is told.
  void keep(LookoutTask task, const store::StoreNews& news);
  // Nobody is asked any more before the next keep(); what is told within milliseconds goes on.
  void forget() { lookout_.reset(); }
  void end();

  // The single endpoint was last reached there.
  void note_address(const Endpoint& address) { address_ = address; }

 private:
  void look_out(std::unique_ptr<store::Lookout>& lookout, const std::vector<Endpoint>& endpoints,
                const store::InquiryFsm::Options& options, const store::StoreNews& news);
  [[nodiscard]] std::vector<Endpoint> known_endpoints() const;
  [[nodiscard]] std::vector<Endpoint> known_addresses() const;

  asio::io_context& io_;
  const Options& options_;
  const StoreStanding& standing_;
  const OnAnswer on_answer_;
  std::unique_ptr<store::Lookout> lookout_;
  LookoutTask task_ = LookoutTask::None;  // of the last lookout
  // A second, faster probe, for hosts that come back and listen only for 75-300 ms.
  std::unique_ptr<store::Lookout> quick_;
  std::optional<Endpoint> address_;
};

}  // namespace drun::launcher
