// A store that writes down what is asked of it, and answers nothing: the test says what comes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/key_value.hpp"

namespace drun::test {

class RecordedKeyValue final : public rendezvous::KeyValue {
 public:
  void watch(rendezvous::WatchId watch, std::string key, bool prefix) override {
    asked_.push_back("watch " + key + (prefix ? "*" : ""));
    last_watch = watch;
  }
  void unwatch(rendezvous::WatchId /*watch*/) override { asked_.emplace_back("unwatch"); }
  void commit(rendezvous::RequestId request, rendezvous::Transaction transaction) override {
    asked_.emplace_back("commit");
    last_request = request;
    most_writes = std::max(most_writes, transaction.writes.size());
    for (auto& write : transaction.writes)
      writes.push_back(std::move(write));
  }
  void close() override { asked_.emplace_back("close"); }

  // Since the last call: "watch drun/train/*", "unwatch".
  [[nodiscard]] std::vector<std::string> take() { return std::exchange(asked_, {}); }

  std::vector<rendezvous::Write> writes;
  rendezvous::WatchId last_watch = 0;
  rendezvous::RequestId last_request = 0;
  std::size_t most_writes = 0;  // of one transaction

 private:
  std::vector<std::string> asked_;
};

}  // namespace drun::test
