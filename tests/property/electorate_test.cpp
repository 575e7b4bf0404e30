// Agents and stores with random fates: messages are lost, agents leave for candidates, die, and
// are given new rounds by any store that serves, also by one that nobody else is with. However it
// goes, no store renews a lease from a moment after one of a later generation has begun to serve.
// The first store serves from the start, or where most of its founders have met. Who leads may know
// of no earlier round, and begin one of another origin.
#include "store/table/electorate.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/seeds.hpp"

namespace drun::store {
namespace {

using Time = Electorate::Time;
using std::chrono::milliseconds;

constexpr std::size_t kAgents = 6;
constexpr int kSteps = 600;

struct Agent {
  Voter voter;
  std::uint64_t generation = 1;  // the highest that has called it
  std::optional<std::size_t> store;
  VoterId session = 0;
  bool is_called = false;  // by the store that it is with
  bool is_alive = true;
  std::optional<Time> unread;  // an answer of its store, sent then
};

struct Store {
  Electorate votes;
  std::uint64_t generation = 0;
  std::uint64_t highest_waiting = 0;  // generation of those who came
  std::optional<Time> began;          // to serve
  std::uint64_t origin = 0;           // of the rounds that are begun there
};

class World {
 public:
  // `founders`: so many of the agents may begin the first store. 0: it is there.
  World(std::uint64_t seed, std::uint32_t founders) : random_(seed) {
    agents_.resize(kAgents);
    add_store();
    if (founders > 0) {
      stores_[0]->votes = Electorate(Electorate::Options{.is_first = false});
      for (std::uint32_t rank = 0; rank < founders; ++rank)
        agents_[rank].voter.found({{0, 7}, rank, founders, kNoRank});
      for (Agent& agent : agents_) {
        agent.generation = 0;
        if (pick(2) == 0) join(agent, 0);
      }
      return;
    }
    stores_[0]->generation = 1;
    stores_[0]->began = now_;
    for (Agent& agent : agents_)
      join(agent, 0);
    for (Agent& agent : agents_)
      pulse(agent, false);
    new_round(0);
  }

  void step() {
    now_ += milliseconds(pick(150));
    Agent& agent = agents_[pick(agents_.size())];
    const std::uint64_t fate = pick(100);
    if (fate < 60) {
      if (agent.is_alive && agent.store) pulse(agent, pick(6) == 0);
    } else if (fate < 80) {
      read(agent);
    } else if (fate < 92) {
      move(agent);
    } else if (fate < 96) {
      new_round(pick(stores_.size()));
    } else if (fate < 98) {
      if (pick(8) == 0) die(agent);
    } else {
      forget_session(agent);
    }
    for (const auto& store : stores_)
      serve(*store);
  }

  // What no two stores may do.
  void check() {
    for (const auto& early : stores_)
      for (const auto& late : stores_) {
        if (early == late || !early->began || !late->began) continue;
        ASSERT_NE(early->generation, late->generation);
        if (early->generation > late->generation) continue;
        const std::optional<Time> quorum = early->votes.quorum(now_);
        if (quorum) {
          ASSERT_LE(quorum->time_since_epoch(), late->began->time_since_epoch());
        }
      }
  }
  [[nodiscard]] std::size_t successions() const {
    std::size_t count = 0;
    for (const auto& store : stores_)
      count += store->began ? 1U : 0U;
    return count == 0 ? 0 : count - 1;
  }

 private:
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }

  void add_store() {
    stores_.push_back(std::make_unique<Store>());
    stores_.back()->origin = 1 + pick(3);
  }

  void join(Agent& agent, std::size_t store) {
    agent.store = store;
    agent.session = ++last_session_;
    agent.is_called = false;
    agent.unread.reset();
  }

  // A question and its answer, either of which may be lost.
  void pulse(Agent& agent, bool is_lost) {
    Store& store = *stores_[*agent.store];
    if (is_lost) return;
    store.highest_waiting = std::max(store.highest_waiting, agent.generation);
    if (agent.voter.is_lost()) return;
    store.votes.vote(agent.session, agent.voter.vote(), now_);
    if (!store.began && !store.votes.has_majority()) return;
    if (!store.began) call(store);
    (void)store.votes.quorum(now_);
    agent.unread = now_;
    if (pick(2) == 0) read(agent);
  }

  // A candidate's generation is higher than that of all who come to it, and each of them has to
  // know it.
  static void call(Store& store) {
    if (store.generation > store.highest_waiting) return;
    store.generation = store.highest_waiting + 1;
    store.votes.unconfirm();
  }

  void read(Agent& agent) {
    if (!agent.is_alive || !agent.store || !agent.unread) return;
    Store& store = *stores_[*agent.store];
    const Time sent = *std::exchange(agent.unread, std::nullopt);
    if (store.generation < agent.generation) return;
    agent.generation = store.generation;
    agent.is_called = true;
    if (store.votes.settled().nodes > 0) agent.voter.settle(store.votes.settled());
    if (pick(5) != 0) store.votes.confirm(agent.session, sent);
  }

  void serve(Store& store) {
    if (store.began || !store.votes.quorum(now_)) return;
    store.began = now_;
  }

  void move(Agent& agent) {
    if (!agent.is_alive) return;
    if (pick(16) == 0) next_ = pick(stores_.size() + 1);
    const std::size_t to = pick(8) == 0 ? pick(stores_.size()) : next_;
    if (agent.store == to) return;
    if (to == stores_.size()) {
      if (stores_.size() >= 8) return;
      add_store();
      stores_.back()->votes = Electorate(Electorate::Options{.is_first = false});
    }
    if (stores_[to]->began && stores_[to]->generation < agent.generation) return;
    // Candidates are told when a connection breaks, but perhaps late.
    if (agent.store && pick(3) == 0) stores_[*agent.store]->votes.leave(agent.session);
    join(agent, to);
  }

  void new_round(std::size_t leader) {
    Store& store = *stores_[leader];
    if (!store.began) return;
    std::vector<Agent*> there;
    std::vector<Agent*> nodes;
    for (Agent& agent : agents_) {
      if (!agent.is_alive || agent.store != leader || agent.generation != store.generation)
        continue;
      there.push_back(&agent);
      if (pick(4) != 0) nodes.push_back(&agent);
    }
    if (nodes.empty()) return;
    Place place{{store.generation << 32 | store.origin, ++last_round_},
                kNoRank,
                static_cast<std::uint32_t>(nodes.size()),
                kNoRank};
    if (pick(2) == 0) place.casting = static_cast<std::uint32_t>(pick(nodes.size()));
    for (Agent* agent : there) {
      if (pick(6) == 0) continue;  // it has not heard of it yet, and will not
      const auto mine = std::find(nodes.begin(), nodes.end(), agent);
      place.rank = mine == nodes.end() ? kNoRank : static_cast<std::uint32_t>(mine - nodes.begin());
      agent->voter.give(place);
    }
  }

  void die(Agent& agent) {
    if (!agent.is_alive || agent.voter.is_lost()) return;
    agent.is_alive = false;
    for (const auto& store : stores_) {
      if (store->began && store->generation < agent.generation) continue;
      if (pick(2) == 0) continue;
      if (!store->began && store->generation <= agent.generation) {
        store->highest_waiting = std::max(store->highest_waiting, agent.generation);
        call(*store);
      }
      store->votes.gone(agent.voter.vote());
    }
    agent.store.reset();
  }

  void forget_session(Agent& agent) {
    if (!agent.store) return;
    stores_[*agent.store]->votes.leave(agent.session);
    agent.session = ++last_session_;
  }

  std::mt19937_64 random_;
  Time now_{std::chrono::seconds(100)};
  std::vector<Agent> agents_;
  std::vector<std::unique_ptr<Store>> stores_;
  std::size_t next_ = 1;  // where most agents go, if they go
  VoterId last_session_ = 0;
  std::uint64_t last_round_ = 0;
};

void run_worlds(std::uint32_t founders) {
  const test::Seeds seeds = test::seeds_to_run(600);
  std::size_t successions = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    SCOPED_TRACE("DRUN_SEED=" + std::to_string(seed));
    World world(seed, founders);
    for (int step = 0; step < kSteps; ++step) {
      world.step();
      world.check();
      if (testing::Test::HasFatalFailure()) return;
    }
    successions += world.successions();
  }
  if (seeds.count > 1) {
    EXPECT_GT(successions, seeds.count / 4) << "too few to tell";
  }
}

TEST(Electorates, OfTwoStoresOneRenewsNoLease) {
  run_worlds(0);
}

TEST(Electorates, NorWhereTheFirstOneBegins) {
  for (const std::uint32_t founders : {2U, 3U, 4U, 5U}) {
    SCOPED_TRACE(founders);
    run_worlds(founders);
  }
}

}  // namespace
}  // namespace drun::store
