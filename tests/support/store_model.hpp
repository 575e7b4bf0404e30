// What the TCPStore protocol's requests do, by the plainest means: the table is compared with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/protocol/tcpstore_codec.hpp"

namespace drun::test {

class StoreModel {
 public:
  struct Wait {
    std::size_t client;
    std::multiset<std::string> missing;
  };

  std::vector<std::string> out;  // of each client, since the last look
  std::vector<bool> is_closed;

  explicit StoreModel(std::size_t clients) : out(clients), is_closed(clients) {}

  // A request of one client, whole. LIST_KEYS adds nothing to `out`: its order is not determined.
  void apply(std::size_t client, store::TcpStoreVersion version, const store::tcpstore::Request& r);

  // The client goes, and another takes its place.
  void leave(std::size_t client);

  std::map<std::string, std::string> keys;
  std::map<std::string, std::deque<std::string>> queues;
  std::deque<Wait> waits;  // in the order of their requests

 private:
  bool exists(const std::string& key) { return keys.contains(key) || !queues[key].empty(); }
  void set(const std::string& key, const std::string& value);
  std::optional<std::int64_t> add(const std::string& key, std::int64_t delta);
  void wake(const std::string& key);
  void wake_one(const std::string& key);
  void answer();
  void cancel(std::size_t client);
  void close(std::size_t client);
};

}  // namespace drun::test
