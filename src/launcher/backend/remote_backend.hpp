// A store that is not in this process, as BackendLink needs it: a KeyValue with a connection.
#pragma once

#include <functional>
#include <optional>
#include <string>

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
  [[nodiscard]] virtual std::optional<store::ControlFarewell> farewell() const = 0;
  // The last reason why no connection could be made, for the waiting line; empty when connected.
  [[nodiscard]] virtual const std::string& last_error() const = 0;
};

}  // namespace drun::launcher
