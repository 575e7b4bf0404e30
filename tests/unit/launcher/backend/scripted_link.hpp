// A link to a store that is nowhere: a test says what comes of it, and sees what was asked of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>

#include "launcher/backend/remote_backend.hpp"

namespace drun::launcher {

struct LinkScript {
  // What BackendLink or its parts did.
  store::ControlOptions options;
  bool exists = false;
  bool opened = false;
  bool closed = false;
  int votes = 0;
  std::vector<Endpoint> places;  // it was sent there
  RemoteBackend::Sink sink;
  std::function<void()> called;

  // What the link says.
  std::string local_address = "127.0.0.1";
  std::optional<store::ControlFarewell> farewell = store::ControlFarewell{"store", "end it"};
  std::string farewell_sign;  // with it
  bool refused = false;
  bool resting = false;
  std::optional<Endpoint> moved;
  Endpoint store;
  std::string proof = "they are gone";
  std::string last_error;

  void tell(rendezvous::Link link, std::string detail = "") const {
    rendezvous::LinkEvent event;
    event.link = link;
    event.detail = std::move(detail);
    event.generation = 1;
    sink(event);
  }
};

class ScriptedLink : public RemoteBackend {
 public:
  explicit ScriptedLink(LinkScript& script) : script_(script) { script_.exists = true; }
  ~ScriptedLink() override { script_.exists = false; }

  // For BackendLink::MakeLink.
  static auto maker(LinkScript& script) {
    return [&script](asio::io_context& /*io*/, store::ControlOptions options, Sink sink,
                     std::function<void()> called) {
      script.options = std::move(options);
      script.sink = std::move(sink);
      script.called = std::move(called);
      script.opened = script.closed = false;
      return std::make_unique<ScriptedLink>(script);
    };
  }

  void open() override { script_.opened = true; }
  void watch(rendezvous::WatchId /*watch*/, std::string /*key*/, bool /*prefix*/) override {}
  void unwatch(rendezvous::WatchId /*watch*/) override {}
  void commit(rendezvous::RequestId /*request*/, rendezvous::Transaction /*what*/) override {}
  void vote(const rendezvous::Vote& /*vote*/,
            const std::vector<rendezvous::Successor>& /*successors*/) override {
    ++script_.votes;
  }
  void close() override { script_.closed = true; }

  [[nodiscard]] const std::string& local_address() const override { return script_.local_address; }
  [[nodiscard]] std::optional<store::ControlFarewell> farewell(
      std::string_view sign) const override {
    script_.farewell_sign = sign;
    return script_.farewell;
  }
  using RemoteBackend::go_to;
  void go_to(const Endpoint& endpoint, bool /*founds*/) override {
    script_.places.push_back(endpoint);
    script_.store = endpoint;
  }
  [[nodiscard]] bool was_refused() const override { return script_.refused; }
  [[nodiscard]] bool is_resting() const override { return script_.resting; }
  [[nodiscard]] std::optional<Endpoint> moved() const override { return script_.moved; }
  [[nodiscard]] Endpoint store_endpoint() const override { return script_.store; }
  [[nodiscard]] std::string proof_of_death() const override { return script_.proof; }
  [[nodiscard]] const std::string& last_error() const override { return script_.last_error; }

 private:
  LinkScript& script_;
};

}  // namespace drun::launcher
