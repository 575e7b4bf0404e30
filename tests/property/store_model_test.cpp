// The table behind real protocol bytes against a naive model of it, over random requests of many
// connections. A failure names its seed; DRUN_SEED runs that one alone.
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "support/test_peer.hpp"

namespace drun::store {
namespace {

using tcpstore::Dialect;
using tcpstore::Op;
using tcpstore::Request;
using test::PeerWorld;
using test::TestPeer;

std::string vec(std::string_view bytes) {
  std::string out;
  tcpstore::append_vector(out, bytes);
  return out;
}
std::string num(std::int64_t number) {
  std::string out;
  append(out, number);
  return out;
}

// The protocol as its description says it, by the plainest means.
class Model {
 public:
  struct Wait {
    std::size_t client;
    std::multiset<std::string> missing;
  };

  std::vector<std::string> out;  // of each client, since the last look
  std::vector<bool> is_closed;

  explicit Model(std::size_t clients) : out(clients), is_closed(clients) {}

  void apply(std::size_t client, Dialect dialect, const Request& r) {
    if (dialect != Dialect::C) cancel(client);
    const std::string key(r.key);
    std::string& reply = out[client];
    switch (r.op) {
      case Op::Set:
        return set(key, std::string(r.value));
      case Op::CompareSet: {
        const bool wins = keys.contains(key) ? keys[key] == r.expected : r.expected.empty();
        if (wins) set(key, std::string(r.value));
        reply += vec(keys.contains(key) ? std::string_view(keys[key]) : r.expected);
        return;
      }
      case Op::Get:
        reply += vec(keys.contains(key) ? keys[key] : "");
        return;
      case Op::Add: {
        const auto sum = add(key, r.number);
        if (!sum) return close(client);
        wake(key);  // an older wait of this very client is answered first
        reply += num(*sum);
        return;
      }
      case Op::Check: {
        bool all = true;
        for (const auto k : r.keys)
          all = all && exists(std::string(k));
        reply += all ? '\0' : '\1';
        return;
      }
      case Op::Wait: {
        Wait wait{client, {}};
        for (const auto k : r.keys)
          if (!exists(std::string(k))) wait.missing.insert(std::string(k));
        if (wait.missing.empty())
          reply += '\0';
        else
          waits.push_back(wait);
        return;
      }
      case Op::GetNumKeys:
        reply += num(static_cast<std::int64_t>(keys.size()));
        return;
      case Op::DeleteKey:
        reply += num(static_cast<std::int64_t>(keys.erase(key)));
        return;
      case Op::Append:
        return set(key, (keys.contains(key) ? keys[key] : "") + std::string(r.value));
      case Op::MultiGet:
        for (const auto k : r.keys)
          reply += vec(keys.contains(std::string(k)) ? keys[std::string(k)] : "");
        return;
      case Op::MultiSet:
        for (std::size_t i = 0; i < r.keys.size(); ++i)
          set(std::string(r.keys[i]), std::string(r.values[i]));
        return;
      case Op::CancelWait:
        cancel(client);
        reply += '\1';
        return;
      case Op::Ping:
        append(reply, r.nonce);
        return;
      case Op::QueuePush:
        queues[key].push_back(std::string(r.value));
        return wake_one(key);
      case Op::QueuePop:
        reply += num(static_cast<std::int64_t>(queues[key].size()));
        if (queues[key].empty()) return;
        reply += vec(queues[key].front());
        queues[key].pop_front();
        return;
      case Op::QueueLen:
        reply += num(static_cast<std::int64_t>(queues[key].size()));
        return;
      case Op::Barrier: {
        const auto sum = add(key, 1);
        if (!sum) return close(client);
        if (*sum < r.number) {
          waits.push_back({client, {key}});
          return;
        }
        reply += '\0';
        return wake(key);
      }
      case Op::ListKeys:  // compared as a set
      case Op::Validate:
        return;
    }
  }

  void leave(std::size_t client) {
    cancel(client);
    out[client].clear();
    is_closed[client] = false;
  }

  std::map<std::string, std::string> keys;
  std::map<std::string, std::deque<std::string>> queues;
  std::deque<Wait> waits;  // in the order of their requests

 private:
  bool exists(const std::string& key) { return keys.contains(key) || !queues[key].empty(); }
  void set(const std::string& key, const std::string& value) {
    keys[key] = value;
    wake(key);
  }
  std::optional<std::int64_t> add(const std::string& key, std::int64_t delta) {
    std::int64_t number = 0;
    if (keys.contains(key)) {
      try {
        number = std::stoll(keys[key]);
      } catch (const std::exception&) {
        return std::nullopt;
      }
    }
    number = static_cast<std::int64_t>(static_cast<std::uint64_t>(number) +
                                       static_cast<std::uint64_t>(delta));
    keys[key] = std::to_string(number);
    return number;
  }
  void wake(const std::string& key) {
    for (Wait& wait : waits)
      wait.missing.erase(key);
    answer();
  }
  void wake_one(const std::string& key) {
    for (Wait& wait : waits)
      if (wait.missing.erase(key) > 0) break;
    answer();
  }
  void answer() {
    for (auto it = waits.begin(); it != waits.end();) {
      if (!it->missing.empty()) {
        ++it;
        continue;
      }
      out[it->client] += '\0';
      it = waits.erase(it);
    }
  }
  void cancel(std::size_t client) {
    std::erase_if(waits, [&](const Wait& wait) { return wait.client == client; });
  }
  void close(std::size_t client) {
    cancel(client);
    is_closed[client] = true;
  }
};

class Session {
 public:
  explicit Session(std::uint64_t seed) : random_(seed) {
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
    peers_[i] = std::make_unique<TestPeer>(world_);
    dialects_[i] = below(3) == 0 ? Dialect::B : Dialect::C;
    // An old client is a 2.1 from its first CANCEL_WAIT on.
    std::string bytes(tcpstore::kHandshake);
    if (dialects_[i] == Dialect::B) bytes = "\6";
    peers_[i]->send(bytes);
    if (dialects_[i] == Dialect::B) {
      peers_[i]->send("\x0B");
      (void)peers_[i]->take();
    }
  }

  std::string_view key() {
    static constexpr std::string_view kKeys[] = {"", "a", "b", "init/", "/k", "q", "long key name"};
    return kKeys[below(std::size(kKeys))];
  }
  std::string_view value() {
    static constexpr std::string_view kValues[] = {
        "", "1", "-5", "x", " 7 rest", "9223372036854775807", "some value longer than small ones"};
    return kValues[below(std::size(kValues))];
  }

  Request request(Dialect dialect) {
    Request r;
    do {
      r.op = static_cast<Op>(1 + below(18));
    } while (!tcpstore::opcode_of(dialect, r.op));
    r.key = key();
    r.value = value();
    r.expected = value();
    r.number = static_cast<std::int64_t>(below(5)) - (r.op == Op::Add ? 2 : 0);
    r.nonce = static_cast<std::uint32_t>(random_());
    for (std::size_t n = below(4); n > 0; --n) {
      r.keys.push_back(key());
      r.values.push_back(value());
    }
    return r;
  }

  void step() {
    const std::size_t i = below(kClients);
    if (below(40) == 0) return connect(i);
    const Request r = request(dialects_[i]);
    std::string bytes;
    tcpstore::encode(bytes, dialects_[i], r);
    const std::size_t cut = below(bytes.size() + 1);
    peers_[i]->send(std::string_view(bytes).substr(0, cut));
    peers_[i]->send(std::string_view(bytes).substr(cut));
    model_.apply(i, dialects_[i], r);
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
    ASSERT_EQ(world_.job.counts().waits, model_.waits.size());
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
  PeerWorld world_;
  Model model_{kClients};
  std::unique_ptr<TestPeer> peers_[kClients];
  Dialect dialects_[kClients] = {};
};

TEST(StoreModelTest, TableAndModelAgree) {
  std::uint64_t first = 1;
  std::uint64_t count = 300;
  if (const char* seed = std::getenv("DRUN_SEED")) {
    first = std::strtoull(seed, nullptr, 10);
    count = 1;
  }
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Session(seed).steps(400);
    ASSERT_FALSE(HasFailure()) << "again with DRUN_SEED=" << seed;
  }
}

}  // namespace
}  // namespace drun::store
