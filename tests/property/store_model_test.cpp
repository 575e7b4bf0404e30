// The table behind real protocol bytes against a naive model of it, over random requests of many
// connections. A failure names its seed; DRUN_SEED runs that one alone.
#include "support/store_model.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "store/relay/relay_mux.hpp"
#include "support/relayed_world.hpp"
#include "support/seeds.hpp"
#include "support/test_peer.hpp"

namespace drun::store {
namespace {

using store::TcpStoreVersion;
using tcpstore::Op;
using tcpstore::Request;
using test::PeerWorld;
using test::StoreModel;
using test::TestPeer;

// One connection, to the store or by way of one of two relays.
class Line {
 public:
  explicit Line(PeerWorld& world) : direct_(std::make_unique<TestPeer>(world)) {}
  explicit Line(test::RelayedNode& node) : relayed_(std::make_unique<test::RelayedPeer>(node)) {}

  void send(std::string_view bytes) {
    direct_ ? (void)direct_->send(bytes) : relayed_->send(bytes);
  }
  std::string take() { return direct_ ? direct_->take() : relayed_->take(); }
  [[nodiscard]] bool is_closed() const {
    return direct_ ? direct_->is_closed() : relayed_->is_closed();
  }

 private:
  std::unique_ptr<TestPeer> direct_;
  std::unique_ptr<test::RelayedPeer> relayed_;
};

enum class Ways { Direct, Mixed };

class Session {
 public:
  Session(std::uint64_t seed, Ways ways) : random_(seed), ways_(ways) {
    for (test::RelayedNode& node : nodes_) {
      test::RelayedPeer first(node);
      std::string bytes(tcpstore::kHandshake);
      for (const std::string_view queue : {"q", ""})
        tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, {.op = Op::QueueLen, .key = queue});
      first.send(bytes);
    }
    for (std::size_t i = 0; i < kClients; ++i)
      connect(i);
  }

  void steps(int count) {
    for (int i = 0; i < count && !testing::Test::HasFailure(); ++i)
      step();
    for (auto& peer : peers_)
      peer.reset();
    EXPECT_EQ(world_.job.counts().waits, 0U);
    world_.job.clear();
    EXPECT_EQ(world_.budget.used(), 0U) << "bytes that nobody holds any more";
  }

 private:
  static constexpr std::size_t kClients = 12;

  std::size_t below(std::size_t bound) { return random_() % bound; }

  void connect(std::size_t i) {
    model_.leave(i);
    peers_[i].reset();
    peers_[i] =
        is_relayed(i) ? std::make_unique<Line>(nodes_[i % 2]) : std::make_unique<Line>(world_);
    versions_[i] = below(3) == 0 ? TcpStoreVersion::Torch2_1 : TcpStoreVersion::Torch2_2;
    // An old client is a 2.1 from its first CANCEL_WAIT on.
    std::string bytes(tcpstore::kHandshake);
    if (versions_[i] == TcpStoreVersion::Torch2_1) bytes = "\6";
    peers_[i]->send(bytes);
    if (versions_[i] == TcpStoreVersion::Torch2_1) {
      peers_[i]->send("\x0B");
      (void)peers_[i]->take();
    }
  }

  std::string_view key() {
    static constexpr std::string_view kKeys[] = {"", "a", "b", "init/", "/k", "q", "long key name"};
    return kKeys[below(std::size(kKeys))];
  }
  std::string_view value() {
    static constexpr std::string_view kValues[] = {"",
                                                   "1",
                                                   "-5",
                                                   "x",
                                                   " 7 rest",
                                                   "98",
                                                   "1234",
                                                   "0099",
                                                   "9223372036854775807",
                                                   "some value longer than small ones"};
    // Behind a relay it needs a connection of its own.
    if (ways_ == Ways::Mixed && below(100) == 0) return kLong;
    return kValues[below(std::size(kValues))];
  }

  static bool is_of_queues(Op op) {
    return op == Op::QueuePush || op == Op::QueuePop || op == Op::QueueLen;
  }
  // That the first two are queues relays know. The others they take for keys, until they hear of
  // what is in them: those who wait for one of these are of one node, and wait for nothing else.
  std::string_view queue() {
    if (below(2) == 0) return below(2) == 0 ? "q" : "";
    return unknown_queue(below(std::size(nodes_)));
  }
  std::string_view unknown_queue(std::size_t node) {
    static constexpr std::string_view kNames[][6] = {{"l0", "l1", "l2", "l3", "l4", "l5"},
                                                     {"r0", "r1", "r2", "r3", "r4", "r5"}};
    return kNames[node][below(std::size(kNames[node]))];
  }
  [[nodiscard]] bool is_relayed(std::size_t i) const { return ways_ == Ways::Mixed && i % 3 != 0; }

  Request request(std::size_t i) {
    const TcpStoreVersion version = versions_[i];
    Request r;
    do {
      r.op = static_cast<Op>(1 + below(18));
    } while (!tcpstore::opcode_of(version, r.op));
    r.key = key();
    if (ways_ == Ways::Mixed && is_of_queues(r.op)) r.key = queue();
    r.value = value();
    r.expected = value();
    r.number = static_cast<std::int64_t>(below(5)) - (r.op == Op::Add ? 2 : 0);
    r.nonce = static_cast<std::uint32_t>(random_());
    for (std::size_t n = below(4); n > 0; --n) {
      r.keys.push_back(key());
      r.values.push_back(value());
    }
    if (r.op == Op::Wait && is_relayed(i) && below(2) == 0) r.keys = {unknown_queue(i % 2)};
    return r;
  }

  void step() {
    const std::size_t i = below(kClients);
    if (below(40) == 0) return connect(i);
    const Request r = request(i);
    std::string bytes;
    tcpstore::encode(bytes, versions_[i], r);
    const std::size_t cut = below(bytes.size() + 1);
    peers_[i]->send(std::string_view(bytes).substr(0, cut));
    peers_[i]->send(std::string_view(bytes).substr(cut));
    model_.apply(i, versions_[i], r);
    if (r.op == Op::ListKeys) {
      check_list(peers_[i]->take());
    }
    for (std::size_t c = 0; c < kClients; ++c) {
      ASSERT_EQ(peers_[c]->take(), model_.out[c]) << "client " << c << " after op " << int(r.op);
      ASSERT_EQ(peers_[c]->is_closed(), model_.is_closed[c]) << "client " << c;
      model_.out[c].clear();
      if (model_.is_closed[c]) connect(c);
    }
    ASSERT_EQ(world_.job.size(), model_.keys.size());
    if (ways_ == Ways::Direct)
      ASSERT_EQ(world_.job.counts().waits, model_.waits.size());
    else
      ASSERT_LE(world_.job.counts().waits, model_.waits.size());
  }

  void check_list(const std::string& reply) {
    ByteReader in(reply);
    const auto count = in.take<std::uint64_t>();
    std::set<std::string> listed;
    for (std::uint64_t n = 0; n < count && in.ok(); ++n)
      listed.emplace(in.take_bytes(in.take<std::uint64_t>()));
    EXPECT_TRUE(in.ok() && in.rest().empty());
    std::set<std::string> expected;
    for (const auto& [name, text] : model_.keys)
      expected.insert(name);
    EXPECT_EQ(listed, expected);
    EXPECT_EQ(count, listed.size());
  }

  std::mt19937_64 random_;
  const Ways ways_;
  const std::string kLong = std::string(RelayMux::kLongest + 1, 'x');
  PeerWorld world_;
  test::RelayedNode nodes_[2]{{world_}, {world_, 5}};
  StoreModel model_{kClients};
  std::unique_ptr<Line> peers_[kClients];
  TcpStoreVersion versions_[kClients] = {};
};

void compare(Ways ways, std::uint64_t seeds) {
  const auto [first, count] = test::seeds_to_run(seeds);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Session(seed, ways).steps(400);
    ASSERT_FALSE(testing::Test::HasFailure()) << "again with DRUN_SEED=" << seed;
  }
}

TEST(StoreModelTest, TableAndModelAgree) {
  compare(Ways::Direct, 300);
}

// Some speak to the store themselves, the others over the shared connections of two nodes.
TEST(StoreModelTest, ClientsOfRelaysGetTheSame) {
  compare(Ways::Mixed, 300);
}

// Clients of two nodes wait, while the news of what comes and goes is late by chance. Nobody is
// woken by what was over before, and nobody is forgotten.
class LateNews {
 public:
  explicit LateNews(std::uint64_t seed) : random_(seed) {
    other_.send(tcpstore::kHandshake);
    for (std::size_t i = 0; i < std::size(clients_); ++i) {
      clients_[i].peer = std::make_unique<test::RelayedPeer>(nodes_[i % 2]);
      clients_[i].peer->send(tcpstore::kHandshake);
    }
  }

  void run() {
    for (int i = 0; i < 300 && !testing::Test::HasFailure(); ++i)
      step();
    pass_all();
    // Those who wait now are woken by what has gone again before a relay hears of it.
    for (std::size_t key = 0; key < kKeys; ++key) {
      for (std::size_t i = 0; i <= kWaits * std::size(clients_); ++i)
        create(key);
      if (!is_queue(key)) ask_other(Op::DeleteKey, key);
    }
    pass_all();
    for (const Waiting& client : clients_)
      for (const Wait& wait : client.waits)
        ADD_FAILURE() << "forgotten for key " << wait.key;
    EXPECT_EQ(world_.job.counts().waits, 0U);
  }

 private:
  static constexpr std::size_t kKeys = 4;   // the last is a queue
  static constexpr std::size_t kWaits = 3;  // of one client
  struct Wait {
    std::size_t key = 0;
    std::uint64_t seen = 0;  // creations of the key when it began
  };
  struct Waiting {
    std::unique_ptr<test::RelayedPeer> peer;
    std::vector<Wait> waits{};
    bool cancels = false;
  };

  std::size_t below(std::size_t bound) { return random_() % bound; }
  static bool is_queue(std::size_t key) { return key == kKeys - 1; }
  void pass_all() {
    while (nodes_[0].pass_to_store() || nodes_[0].pass_from_store() || nodes_[1].pass_to_store() ||
           nodes_[1].pass_from_store()) {
    }
    for (Waiting& client : clients_)
      listen(client);
  }
  static std::string name(std::size_t key) { return "k" + std::to_string(key); }
  static std::string bytes_of(const Request& r) {
    std::string bytes;
    tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, r);
    return bytes;
  }
  bool exists(std::size_t key) {
    return world_.job.find(name(key)) != nullptr || world_.job.queue_size(name(key)) > 0;
  }
  void ask_other(Op op, std::size_t key) {
    const std::string text = name(key);
    other_.ask(bytes_of({.op = op, .key = text}));
  }
  void create(std::size_t key) {
    if (is_queue(key) || !exists(key)) ++created_[key];
    ask_other(is_queue(key) ? Op::QueuePush : Op::Set, key);
  }

  void step() {
    Waiting& client = clients_[below(std::size(clients_))];
    const std::size_t key = below(kKeys);
    switch (below(8)) {
      case 0:
        return create(key);
      case 1:
        return ask_other(is_queue(key) ? Op::QueuePop : Op::DeleteKey, key);
      case 2:
        (void)nodes_[below(2)].pass_to_store();
        return;
      case 3:
        (void)nodes_[below(2)].pass_from_store();
        return;
      case 4:
        if (client.waits.empty() || client.cancels) return;
        client.cancels = true;
        return client.peer->say(bytes_of({.op = Op::CancelWait}));
      case 5:
        return listen(client);
      default: {
        if (client.waits.size() == kWaits || client.cancels) return;
        const std::string text = name(key);
        client.waits.push_back({key, created_[key] - (exists(key) ? 1 : 0)});
        return client.peer->say(bytes_of({.op = Op::Wait, .keys = {text}}));
      }
    }
  }

  void listen(Waiting& client) {
    for (const char byte : client.peer->hear()) {
      if (byte == tcpstore::kWaitCanceled) {
        EXPECT_TRUE(client.cancels);
        client.cancels = false;
        client.waits.clear();
        continue;
      }
      // Which of them is over is not said: those that may be are all alike.
      const auto over =
          std::find_if(client.waits.begin(), client.waits.end(),
                       [&](const Wait& wait) { return created_[wait.key] > wait.seen; });
      if (over == client.waits.end()) {
        ADD_FAILURE() << "what it waits for was not there since";
        return;
      }
      client.waits.erase(over);
    }
  }

  std::mt19937_64 random_;
  PeerWorld world_;
  TestPeer other_{world_};
  test::RelayedNode nodes_[2]{{world_}, {world_}};
  std::uint64_t created_[kKeys] = {};
  Waiting clients_[6];
};

TEST(StoreModelTest, NobodyIsWokenTooEarlyOrForgottenHoweverLateTheNewsIs) {
  const auto [first, count] = test::seeds_to_run(500);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    LateNews(seed).run();
    ASSERT_FALSE(HasFailure()) << "again with DRUN_SEED=" << seed;
  }
}

// What of one turn is sent as a sum is answered as if each had come alone.
TEST(StoreModelTest, AddsThatTravelTogetherAreAnsweredOneByOne) {
  constexpr std::size_t kClients = 8;
  constexpr std::string_view kValues[] = {"", "x", "12 rest", "9223372036854775807", "-7"};
  const auto [first, count] = test::seeds_to_run(200);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    std::mt19937_64 random(seed);
    PeerWorld world;
    StoreModel model(kClients + 1);
    TestPeer other(world);
    other.send(tcpstore::kHandshake);
    test::RelayedNode node(world);
    std::vector<std::unique_ptr<test::RelayedPeer>> clients;
    for (std::size_t c = 0; c < kClients; ++c) {
      clients.push_back(std::make_unique<test::RelayedPeer>(node));
      clients.back()->send(tcpstore::kHandshake);
    }
    for (int turn = 0; turn < 30; ++turn) {
      Request r;
      std::string key = "k" + std::to_string(random() % 3);
      if (random() % 3 == 0) {
        r.op = random() % 2 == 0 ? Op::Set : Op::DeleteKey;
        r.key = key;
        r.value = kValues[random() % std::size(kValues)];
        std::string bytes;
        tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, r);
        other.send(bytes);
        model.apply(kClients, TcpStoreVersion::Torch2_2, r);
      }
      for (std::size_t c = 0; c < kClients; ++c) {
        if (model.is_closed[c] || random() % 4 == 0) continue;
        r = {};
        r.op = Op::Add;
        key = "k" + std::to_string(random() % 3);
        r.key = key;
        r.number = random() % 5 == 0 ? static_cast<std::int64_t>(random()) : 1;
        std::string bytes;
        tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, r);
        clients[c]->say(bytes);
        model.apply(c, TcpStoreVersion::Torch2_2, r);
      }
      for (std::size_t c = 0; c < kClients; ++c) {
        ASSERT_EQ(clients[c]->take(), model.out[c]) << "seed " << seed << ", client " << c;
        ASSERT_EQ(clients[c]->is_closed(), model.is_closed[c]) << "seed " << seed;
        model.out[c].clear();
      }
    }
  }
}

// A client says much at once: behind what a full store refuses nothing is done any more.
TEST(StoreModelTest, AFullStoreDoesNoMoreForAClientOfARelay) {
  constexpr std::string_view kNames[] = {"a", "b", "c"};
  constexpr Op kOps[] = {Op::Set, Op::Add, Op::Add, Op::Append, Op::DeleteKey, Op::Get};
  Limits tight;
  tight.total_bytes = 2 * KeyTable::kOverheadBytes + 30;
  const auto [first, count] = test::seeds_to_run(1000);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    std::mt19937_64 random(seed);
    std::string said(tcpstore::kHandshake);
    for (int i = 0; i < 6; ++i)
      tcpstore::encode(said, TcpStoreVersion::Torch2_2,
                       {.op = kOps[random() % std::size(kOps)],
                        .key = kNames[random() % std::size(kNames)],
                        .value = random() % 4 == 0 ? "11111111111111111111" : "1",
                        .number = 1});
    PeerWorld straight(tight);
    TestPeer direct(straight);
    direct.send(said);
    PeerWorld world(tight);
    test::RelayedNode node(world);
    test::RelayedPeer relayed(node);
    relayed.say(said);
    ASSERT_EQ(relayed.take(), direct.take()) << "again with DRUN_SEED=" << seed;
    ASSERT_EQ(relayed.is_closed(), direct.is_closed()) << "seed " << seed;
    for (const std::string_view name : kNames) {
      const std::string* there = straight.job.find(name);
      const std::string* here = world.job.find(name);
      ASSERT_EQ(here == nullptr ? "none" : *here, there == nullptr ? "none" : *there)
          << "seed " << seed << ", key " << name;
    }
  }
}

}  // namespace
}  // namespace drun::store
