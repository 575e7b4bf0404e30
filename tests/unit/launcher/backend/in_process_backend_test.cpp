#include "launcher/backend/in_process_backend.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_store.hpp"

namespace drun::launcher {
namespace {

using rendezvous::KeyValueEvent;
using ::testing::ElementsAre;

std::string text_of(const std::vector<rendezvous::Change>& changes) {
  std::string text;
  for (const auto& change : changes)
    text += " " + change.key + (change.value ? "=" + *change.value : "-");
  return text;
}

std::string text_of(const KeyValueEvent& event) {
  if (const auto* all = std::get_if<rendezvous::WatchSnapshot>(&event))
    return "all " + std::to_string(all->watch) + ":" + text_of(all->entries);
  if (const auto* some = std::get_if<rendezvous::WatchChanges>(&event))
    return "new " + std::to_string(some->watch) + ":" + text_of(some->changes);
  if (const auto* result = std::get_if<rendezvous::CommitResult>(&event))
    return "commit " + std::to_string(result->request) + " " +
           std::to_string(static_cast<int>(result->outcome));
  return "link " + std::to_string(static_cast<int>(std::get<rendezvous::LinkEvent>(event).link));
}

class InProcessBackendTest : public ::testing::Test {
 protected:
  std::vector<std::string> take() {
    io_.restart();
    io_.poll();
    return std::exchange(events_, {});
  }

  asio::io_context io_{1};
  std::vector<std::string> events_;
  InProcessBackend keys_{io_,
                         [this](const KeyValueEvent& event) { events_.push_back(text_of(event)); }};
};

TEST_F(InProcessBackendTest, TellsNothingFromInsideACall) {
  keys_.open();
  keys_.watch(1, "a/", true);
  keys_.commit(1, {{}, {{"a/b", "1"}}});
  EXPECT_TRUE(events_.empty());
  EXPECT_THAT(take(), ElementsAre("link 0", "all 1:", "new 1: a/b=1", "commit 1 0"));
}

TEST_F(InProcessBackendTest, AppliesAllOrNothing) {
  keys_.commit(1, {{{"leader", std::nullopt}}, {{"leader", "me"}, {"x", "1"}}});
  keys_.commit(2, {{{"leader", std::nullopt}}, {{"leader", "you"}, {"x", "2"}}});
  keys_.commit(3, {{{"leader", "me"}, {"x", "9"}}, {{"x", "3"}}});
  keys_.watch(1, "", true);
  EXPECT_THAT(take(),
              ElementsAre("commit 1 0", "commit 2 1", "commit 3 1", "all 1: leader=me x=1"));
}

TEST_F(InProcessBackendTest, TellsOfAKeyOnceWhereItIsWrittenTwice) {
  keys_.watch(1, "k", false);
  keys_.commit(1, {{}, {{"k", "1"}, {"k", "2"}}});
  EXPECT_THAT(take(), ElementsAre("all 1:", "new 1: k=2", "commit 1 0"));
}

TEST_F(InProcessBackendTest, IsSilentWhenItIsGone) {
  asio::io_context io;
  int events = 0;
  {
    InProcessBackend keys(io, [&events](const KeyValueEvent&) { ++events; });
    keys.open();
  }
  io.poll();
  EXPECT_EQ(events, 0);
}

TEST_F(InProcessBackendTest, MayBeEndedByWhoeverHearsOfItsClose) {
  asio::io_context io;
  std::unique_ptr<InProcessBackend> keys;
  std::vector<std::string> events;
  keys = std::make_unique<InProcessBackend>(io, [&](const KeyValueEvent& event) {
    events.push_back(text_of(event));
    if (events.back() == "link 4") keys.reset();
  });
  keys->open();
  keys->close();
  io.poll();
  EXPECT_THAT(events, ElementsAre("link 0", "link 4"));
}

TEST_F(InProcessBackendTest, SaysWhatAStoreWithOneClientSays) {
  std::mt19937 random(4711);
  const auto below = [&random](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  for (int run = 0; run < 200; ++run) {
    std::vector<std::string> expected;
    test::FakeStore store([&expected](test::SessionId, const KeyValueEvent& event) {
      expected.push_back(text_of(event));
    });
    const auto session = store.open();
    InProcessBackend keys(
        io_, [this](const KeyValueEvent& event) { events_.push_back(text_of(event)); });
    const auto any_key = [&below] {
      return std::string(1 + below(2), 'a') + (below(2) ? "b" : "");
    };
    std::set<rendezvous::WatchId> watches;
    for (int step = 0; step < 40; ++step) {
      if (const auto id = below(4); below(4) == 0 && !watches.contains(id)) {
        const auto key = any_key();
        const bool prefix = below(2) == 0;
        store.watch(session, id, key, prefix);
        keys.watch(id, key, prefix);
        watches.insert(id);
      } else if (below(8) == 0 && watches.erase(id) > 0) {
        store.unwatch(session, id);
        ASSERT_EQ(take(), std::exchange(expected, {}));
        keys.unwatch(id);
      } else {
        rendezvous::Transaction transaction;
        if (below(3) == 0)
          transaction.guards.push_back(
              {any_key(), below(2) ? std::optional<std::string>("1") : std::nullopt});
        std::set<std::string> written{any_key(), any_key()};
        for (const auto& key : written)
          transaction.writes.push_back(
              {key, below(3) ? std::optional<std::string>(std::to_string(below(2))) : std::nullopt,
               below(2) == 0});
        const auto outcome = store.commit(session, transaction);
        expected.push_back(text_of(rendezvous::CommitResult{1, outcome}));
        keys.commit(1, transaction);
      }
      ASSERT_EQ(take(), std::exchange(expected, {})) << "run " << run << " step " << step;
    }
  }
}

}  // namespace
}  // namespace drun::launcher
