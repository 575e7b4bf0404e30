// rendezvous::KeyValue for a job that nobody else can take part in: the keys are values in this
// process, and no store is needed. Behaves as a store with one client whose link never breaks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "rendezvous/key_value.hpp"

namespace drun::launcher {

class InProcessBackend : public rendezvous::KeyValue {
 public:
  using Sink = std::function<void(rendezvous::KeyValueEvent)>;

  // `io` must outlive this. The sink is called from `io`'s thread, never from inside a call, and
  // not any more when this is gone.
  InProcessBackend(asio::io_context& io, Sink sink);
  ~InProcessBackend() override;

  void open();  // once; Link::Up follows

  void watch(rendezvous::WatchId watch, std::string key, bool prefix) override;
  void unwatch(rendezvous::WatchId watch) override;
  void commit(rendezvous::RequestId request, rendezvous::Transaction transaction) override;
  void close() override;

 private:
  struct Watch {
    std::string key;
    bool prefix = false;
    [[nodiscard]] bool covers(const std::string& other) const {
      return prefix ? other.starts_with(key) : other == key;
    }
  };

  void send(rendezvous::KeyValueEvent event);
  void publish(const std::vector<rendezvous::Change>& changes);
  void deliver();

  asio::io_context& io_;
  Sink sink_;
  std::map<std::string, std::string> keys_;
  std::map<rendezvous::WatchId, Watch> watches_;
  std::vector<rendezvous::KeyValueEvent> events_;  // to be delivered
  std::shared_ptr<InProcessBackend*> self_;        // null in what is posted when this is gone
};

}  // namespace drun::launcher
