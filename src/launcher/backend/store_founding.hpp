// How an agent that was given several endpoints comes to its job's store: it looks up which of them
// are its own, waits for the others at the first of those, and goes where FoundingFsm says. This
// does it; the caller has the link and asks the endpoints.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "drun/base/endpoint.hpp"
#include "drun/store/control_client.hpp"
#include "launcher/backend/backend_discovery.hpp"
#include "launcher/backend/founding_fsm.hpp"
#include "launcher/backend/own_endpoint_fsm.hpp"
#include "launcher/backend/successor_store.hpp"
#include "launcher/options/options.hpp"
#include "store/client/inquiry_fsm.hpp"

namespace drun::launcher {

class StoreFounding {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  // From inside start(), on_time() and on_answer(), or from the loop.
  struct Calls {
    // The search begins, or begins again: drop the link, if there is one.
    std::function<void()> drop_link;
    // Make another, with these options. It goes nowhere before go_to().
    std::function<void(store::ControlOptions options)> make_link;
    // From now on the endpoints are to be asked; the answers go to on_answer().
    std::function<void()> begun;
    // `founds`: a store may begin there with this agent's help.
    std::function<void(const Endpoint& place, bool founds)> go_to;
    // next_deadline() may be another.
    std::function<void()> changed;
  };

  // The references must outlive this. `own_store`: stands at the own endpoint.
  StoreFounding(asio::io_context& io, const Options& options, SuccessorStore& own_store,
                BackendDiscovery::StartLookUp start_look_up, Calls calls);
  StoreFounding(const StoreFounding&) = delete;
  StoreFounding& operator=(const StoreFounding&) = delete;

  void start();
  // It has come to a store, or looks no more. What waits at listed() stays so.
  void end();
  // What waited at listed() is gone.
  void wait_nowhere() { listed_.reset(); }

  // What the server at this endpoint says.
  void on_answer(const Endpoint& endpoint, const store::Whereabouts& answer);
  // Nothing came of the last go_to(): see FoundingFsm.
  void on_turned_away(const std::optional<Endpoint>& moved);
  // At or after next_deadline().
  void on_time();

  [[nodiscard]] bool is_under_way() const { return fsm_.has_value(); }
  // The endpoints are to be asked.
  [[nodiscard]] bool is_asking() const { return fsm_ && fsm_->is_started(); }
  [[nodiscard]] std::optional<Time> next_deadline() const;
  // Whom this agent waits for, one line.
  [[nodiscard]] std::string text() const { return fsm_ ? fsm_->text() : ""; }
  // The endpoint at which this agent waits or has waited.
  [[nodiscard]] std::optional<std::size_t> listed() const { return listed_; }

 private:
  void follow(const OwnEndpointFsm::Step& step);
  void look_up(std::size_t endpoint);
  void begin();
  void wait_at_own_endpoint();
  void go(const FoundingFsm::Step& step);

  asio::io_context& io_;
  const Options& options_;
  SuccessorStore& own_store_;
  const BackendDiscovery::StartLookUp start_look_up_;
  const Calls calls_;
  std::vector<std::unique_ptr<BackendDiscovery>> look_ups_;  // of each endpoint
  std::optional<OwnEndpointFsm> own_endpoints_;              // while it is under way
  std::optional<FoundingFsm> fsm_;                           // likewise
  std::optional<std::size_t> listed_;
};

}  // namespace drun::launcher
