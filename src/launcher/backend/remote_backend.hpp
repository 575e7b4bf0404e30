// A store that is not in this process, as BackendLink needs it: a KeyValue with a connection.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "drun/store/control_client.hpp"
#include "rendezvous/key_value.hpp"

namespace drun::launcher {

class RemoteBackend : public rendezvous::KeyValue {
 public:
  using Sink = std::function<void(rendezvous::KeyValueEvent)>;

  virtual void open() = 0;  // once; Link::Up or Link::Failed follows

  // The numeric address of this end of the connection, as the other end sees this machine; empty
  // before Link::Up.
  [[nodiscard]] virtual const std::string& local_address() const = 0;
  // What ends the present session in this process's stead; nullopt: there is none, or nothing does.
  // Before that it writes the key `sign`, which goes with the session, if the store can be told so.
  [[nodiscard]] virtual std::optional<store::ControlFarewell> farewell(
      std::string_view sign) const = 0;
  // Leaves the present store without a word, and goes to the one at `endpoint`. Link::NewSession
  // follows when that one welcomes this agent, Link::Down if it does not.
  // `founds`: it may begin there with this agent's help.
  virtual void go_to(const Endpoint& /*endpoint*/, bool /*founds*/) {}
  void go_to(const Endpoint& endpoint) { go_to(endpoint, true); }
  // Of the last Link::Down: nobody listened there; the link does not mend itself.
  [[nodiscard]] virtual bool was_refused() const { return false; }
  [[nodiscard]] virtual bool is_resting() const { return false; }
  // Likewise: the store said that the job's is at this place.
  [[nodiscard]] virtual std::optional<Endpoint> moved() const { return std::nullopt; }
  // After Link::Down: the candidate still reaches the store that we lost; ask again later.
  [[nodiscard]] virtual bool was_early() const { return false; }
  // Where the present store is, as a numeric address.
  [[nodiscard]] virtual Endpoint store_endpoint() const { return {}; }
  // What tells a successor that this process and all that it has started are gone; empty: nothing.
  [[nodiscard]] virtual std::string proof_of_death() const { return {}; }
  // The last reason why no connection could be made, for the waiting line; empty when connected.
  [[nodiscard]] virtual const std::string& last_error() const = 0;
};

}  // namespace drun::launcher
