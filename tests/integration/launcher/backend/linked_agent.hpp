// An agent's link to its store, and what it hears of it, for tests on real sockets.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <asio/io_context.hpp>

#include "launcher/backend/backend_link.hpp"
#include "support/patience.hpp"

namespace drun::launcher {

// What an agent hears of its link.
class LinkedAgent {
 public:
  LinkedAgent(asio::io_context& io, const Options& options,
              BackendDiscovery::StartLookUp start_look_up = store::start_look_up)
      : io_(io), link_(io, options, "node7", calls(), std::move(start_look_up)) {
    link_.start();
  }
  ~LinkedAgent() {
    link_.leave(false);
    link_.release();
    io_.restart();
    io_.poll();
  }

  [[nodiscard]] bool until(const std::function<bool()>& condition) {
    return test::eventually([&] {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(1));
      return condition();
    });
  }
  [[nodiscard]] bool until_joined() {
    return until([this] { return identity || outcome; }) && identity;
  }
  [[nodiscard]] bool until_gave_up() {
    return until([this] { return outcome.has_value(); });
  }
  BackendLink& link() { return link_; }

  std::optional<NodeIdentity> identity;
  std::optional<rendezvous::Outcome> outcome;
  std::vector<std::string> waited_for;
  std::vector<rendezvous::Link> links;
  std::vector<rendezvous::LinkEvent> link_events;
  std::vector<Farewells> farewells;
  int commits = 0;
  int committed = 0;  // of these
  int dropped = 0;
  bool known = false;  // to the store

 private:
  BackendLink::Calls calls() {
    BackendLink::Calls calls;
    calls.waiting = [this](std::string text) { waited_for.push_back(std::move(text)); };
    calls.joined = [this](const NodeIdentity& node) { identity = node; };
    calls.dispensable = [this](bool) { return !known; };
    calls.dropped = [this] {
      identity.reset();
      ++dropped;
    };
    calls.gave_up = [this](rendezvous::Outcome end) { outcome = std::move(end); };
    calls.session = [this](Farewells words) { farewells.push_back(std::move(words)); };
    calls.event = [this](const rendezvous::KeyValueEvent& event) {
      if (const auto* link = std::get_if<rendezvous::LinkEvent>(&event)) note(*link);
      const auto* result = std::get_if<rendezvous::CommitResult>(&event);
      if (result == nullptr) return;
      ++commits;
      if (result->outcome == rendezvous::CommitOutcome::Committed) ++committed;
    };
    return calls;
  }

  void note(const rendezvous::LinkEvent& event) {
    links.push_back(event.link);
    link_events.push_back(event);
  }

  asio::io_context& io_;
  BackendLink link_;
};

}  // namespace drun::launcher
