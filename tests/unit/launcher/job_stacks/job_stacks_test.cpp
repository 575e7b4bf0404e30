#include "launcher/job_stacks/job_stacks.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stacks/job_look.hpp"

namespace drun::launcher {
namespace {

class Watches final : public rendezvous::KeyValue {
 public:
  void watch(rendezvous::WatchId watch, std::string key, bool /*prefix*/) override {
    list.push_back({watch, std::move(key)});
  }
  void unwatch(rendezvous::WatchId) override {}
  void commit(rendezvous::RequestId, rendezvous::Transaction) override {}
  void close() override {}

  struct Watch {
    rendezvous::WatchId id;
    std::string key;
  };
  std::vector<Watch> list;
};

// A look that is about to be taken.
struct Looks : std::runtime_error {
  Looks() : std::runtime_error("looks") {}
};

// Nobody knows for how long it has been there.
TEST(JobStacksTest, ARequestThatWasThereBeforeIsNotObeyed) {
  asio::io_context io;
  StackDesk desk(io, []() -> LookRequest { throw Looks(); });
  JobStacks job(io, desk, "train");
  Watches store;
  job.listen(store);
  ASSERT_EQ(store.list.size(), 1U);
  const auto [watch, key] = store.list.front();
  const auto request = [&key = key](const std::string& id) {
    stacks::JobLook look;
    look.id = id;
    return std::vector<rendezvous::Change>{{key, encode(look)}};
  };
  EXPECT_TRUE(job.on_event(rendezvous::WatchSnapshot{watch, request("a")}));
  EXPECT_THROW((void)job.on_event(rendezvous::WatchChanges{watch, request("b")}), Looks);
}

}  // namespace
}  // namespace drun::launcher
