// An EtcdKeyValue on a loop of its own, and what it has said.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <asio/io_context.hpp>

#include "etcd/etcd_key_value.hpp"
#include "support/etcd_cluster.hpp"
#include "support/patience.hpp"

namespace drun::etcd::test {

class EtcdClient {
 public:
  explicit EtcdClient(EtcdOptions options) {
    key_value_ = std::make_unique<EtcdKeyValue>(
        io_, std::move(options),
        [this](rendezvous::KeyValueEvent event) { events_.push_back(std::move(event)); });
    key_value_->open();
  }

  EtcdKeyValue& operator*() { return *key_value_; }
  EtcdKeyValue* operator->() { return key_value_.get(); }
  [[nodiscard]] std::vector<rendezvous::KeyValueEvent>& events() { return events_; }
  void drop() { key_value_.reset(); }

  // Runs the loop until it is so.
  bool until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + drun::test::kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(100));
    }
    return true;
  }

  template <typename Event>
  [[nodiscard]] std::vector<Event> all() const {
    std::vector<Event> found;
    for (const auto& event : events_) {
      if (const auto* each = std::get_if<Event>(&event)) found.push_back(*each);
    }
    return found;
  }
  [[nodiscard]] std::size_t count(rendezvous::Link link) const {
    std::size_t found = 0;
    for (const auto& event : all<rendezvous::LinkEvent>())
      found += event.link == link ? 1U : 0U;
    return found;
  }
  bool until_link(rendezvous::Link link, std::size_t times = 1) {
    return until([&] { return count(link) >= times; });
  }

  // Commits, and waits for the answer.
  rendezvous::CommitResult commit(rendezvous::Transaction transaction) {
    const auto request = ++last_request_;
    key_value_->commit(request, std::move(transaction));
    rendezvous::CommitResult result;
    (void)until([&] {
      for (const auto& each : all<rendezvous::CommitResult>()) {
        if (each.request == request) result = each;
      }
      return result.request == request;
    });
    return result;
  }

 private:
  asio::io_context io_;
  std::unique_ptr<EtcdKeyValue> key_value_;
  std::vector<rendezvous::KeyValueEvent> events_;
  rendezvous::RequestId last_request_ = 0;
};

// Of a cluster that speaks plainly.
inline EtcdOptions options_for(const drun::test::EtcdCluster& cluster) {
  EtcdOptions options;
  for (std::size_t i = 0; i < cluster.size(); ++i)
    options.cluster.endpoints.push_back(cluster.endpoint(i));
  options.job = "drun/test/";
  // A session that the tests may stop for a while, and a cluster that elects slowly under load.
  options.time_to_live = std::chrono::minutes(2);
  options.keep_alive = std::chrono::minutes(1);
  options.heartbeat_interval = std::chrono::milliseconds(200);
  // Of several members one may stand still. A single one is slow at most, however the machine is.
  options.heartbeat_timeout =
      cluster.size() > 1 ? std::chrono::seconds(4) : std::chrono::seconds(60);
  return options;
}

inline rendezvous::Write ephemeral(std::string key, std::string value) {
  return {std::move(key), std::move(value), true};
}
inline rendezvous::Write lasting(std::string key, std::string value) {
  return {std::move(key), std::move(value), false};
}

}  // namespace drun::etcd::test
