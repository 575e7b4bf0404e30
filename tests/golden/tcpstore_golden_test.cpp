// Replays recorded connections of real torch clients, and compares each answer byte for byte with
// that of torch's own server.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "secure/tls_engine.hpp"
#include "store/protocol/bytes.hpp"
#include "store/relay/relay_flow.hpp"
#include "support/places.hpp"
#include "support/relayed_world.hpp"
#include "support/test_peer.hpp"
#include "support/tls_peer.hpp"

namespace drun::store {
namespace {

using test::PeerWorld;
using test::TestPeer;

struct Step {
  enum class Kind { Open, Send, Receive, ClientCloses, ServerCloses };
  Kind kind = Kind::Open;
  int connection = 0;
  std::string bytes;
};
struct Record {
  int session = 0;
  std::string op;
  std::string call;
  std::vector<Step> steps;
};

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

// The value of set_1mib, cut to `size` where the test is not about its size.
std::string big_value(std::size_t size) {
  std::string value(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    value[i] = static_cast<char>(i * 7 + (i >> 8));
  return value;
}

Step parse_step(const nlohmann::json& json, std::size_t big_size) {
  Step step;
  step.connection = json.at("conn").get<int>();
  if (json.contains("event")) {
    const auto event = json.at("event").get<std::string>();
    step.kind = event == "open"      ? Step::Kind::Open
                : event == "close-C" ? Step::Kind::ClientCloses
                                     : Step::Kind::ServerCloses;
    return step;
  }
  step.kind = json.at("dir") == "C>S" ? Step::Kind::Send : Step::Kind::Receive;
  step.bytes = from_hex(json.at("hex").get<std::string>());
  if (json.contains("then_mebibyte")) tcpstore::append_vector(step.bytes, big_value(big_size));
  return step;
}

constexpr std::size_t kRecordedSize = 1024 * 1024;
constexpr std::size_t kShortSize = 500;
constexpr std::size_t kLongRecord = 700;

std::vector<Record> load(const std::string& name, std::size_t big_size) {
  std::ifstream file(places::source("tests/golden/tcpstore/") + name);
  std::vector<Record> records;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    Record record{json.at("session").get<int>(),
                  json.at("op").get<std::string>(),
                  json.at("call").get<std::string>(),
                  {}};
    for (const auto& step : json.at("exchange"))
      record.steps.push_back(parse_step(step, big_size));
    records.push_back(std::move(record));
  }
  return records;
}

// LIST_KEYS answers in no particular order.
std::string with_sorted_keys(std::string_view reply) {
  ByteReader in(reply);
  const auto count = in.take<std::uint64_t>();
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < count && in.ok(); ++i)
    keys.emplace_back(in.take_bytes(in.take<std::uint64_t>()));
  EXPECT_TRUE(in.ok() && in.rest().empty()) << "not a list of keys";
  std::sort(keys.begin(), keys.end());
  std::string sorted;
  for (const std::string& key : keys)
    sorted += key + '\n';
  return sorted;
}

// Cuts the bytes that a client sent with one call into the pieces that arrive.
using Cut = std::vector<std::string_view> (*)(std::string_view bytes, std::size_t at);

std::vector<std::string_view> whole(std::string_view bytes, std::size_t) {
  return {bytes};
}
std::vector<std::string_view> in_two(std::string_view bytes, std::size_t at) {
  if (at >= bytes.size()) return {bytes};
  return {bytes.substr(0, at), bytes.substr(at)};
}
std::vector<std::string_view> in_pieces(std::string_view bytes, std::size_t size) {
  std::vector<std::string_view> pieces;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size())))
    pieces.push_back(bytes.substr(0, size));
  return pieces;
}

// A peer with a connection of its own behind a relay that shows a token for it.
class LonePeer {
 public:
  explicit LonePeer(PeerWorld& world) : peer_(world) {
    flow_.on_store();
    pass_on();
  }

  void send(std::string_view bytes) {
    flow_.take(RelayFlow::Side::Client, bytes);
    pass_on();
  }
  std::string take() {
    pass_on();
    return sent(RelayFlow::Side::Client);
  }
  [[nodiscard]] bool is_closed() const { return peer_.is_closed(); }
  [[nodiscard]] const char* close_reason() const { return peer_.close_reason(); }

 private:
  std::string sent(RelayFlow::Side to) {
    std::string all;
    for (auto bytes = flow_.output(to); !bytes.empty(); bytes = flow_.output(to)) {
      all += bytes;
      flow_.on_sent(to, bytes.size());
    }
    return all;
  }
  void pass_on() {
    for (bool more = true; more;) {
      std::string plain;
      store_.receive(sent(RelayFlow::Side::Store), plain);
      if (!plain.empty()) peer_.send(plain);
      if (store_.is_open()) store_.send(peer_.take());
      more = !store_.output().empty();
      flow_.take(RelayFlow::Side::Store, std::exchange(store_.output(), {}));
    }
  }

  const std::shared_ptr<const secure::TlsContext> tls_ = test::tls_of(test::kToken);
  TestPeer peer_;
  RelayFlow flow_{tls_};
  secure::TlsEngine store_{tls_, secure::TlsEngine::Role::Server};
};

// Where peers meet.
template <typename AnyPeer>
struct WorldOf {
  [[nodiscard]] PeerWorld& place() { return world; }
  PeerWorld world;
};
template <>
struct WorldOf<test::RelayedPeer> {
  [[nodiscard]] test::RelayedNode& place() { return node; }
  PeerWorld world;
  test::RelayedNode node{world, 7};
};

template <typename AnyPeer>
class Replay {
 public:
  Replay(Cut cut, std::size_t at) : cut_(cut), at_(at) {}

  void cut_at(std::size_t at) { at_ = at; }

  void run(const Record& record) {
    std::map<int, std::string> expected;
    for (const Step& step : record.steps) {
      switch (step.kind) {
        case Step::Kind::Open:
          peers_[step.connection] = std::make_unique<AnyPeer>(world_.place());
          break;
        case Step::Kind::Send:
          for (const std::string_view piece : cut_(step.bytes, at_))
            peers_.at(step.connection)->send(piece);
          break;
        case Step::Kind::Receive:
          expected[step.connection] += step.bytes;
          break;
        case Step::Kind::ClientCloses:
          peers_.erase(step.connection);
          break;
        case Step::Kind::ServerCloses:
          EXPECT_TRUE(peers_.at(step.connection)->is_closed()) << record.call;
          peers_.erase(step.connection);
          break;
      }
    }
    // torch's classic server leaves waiters asleep on COMPARE_SET; this one wakes them, as torch's
    // newer one does. The waiting connection has the lowest number of the record.
    if (record.op == "wait_later_by_cas") {
      const int waiter = record.steps.front().connection;
      expected[waiter].insert(0, 1, '\0');
    }
    for (auto& [connection, peer] : peers_) {
      const std::string answer = peer->take();
      if (record.op.find("list_keys") != std::string::npos && !answer.empty())
        EXPECT_EQ(with_sorted_keys(answer), with_sorted_keys(expected[connection])) << record.call;
      else
        EXPECT_EQ(answer, expected[connection]) << record.call << ", connection " << connection;
      EXPECT_FALSE(peer->is_closed()) << record.call << ": " << peer->close_reason();
    }
  }

 private:
  WorldOf<AnyPeer> world_;
  Cut cut_;
  std::size_t at_;
  std::map<int, std::unique_ptr<AnyPeer>> peers_;
};

template <typename AnyPeer = TestPeer>
void replay_all(const std::vector<Record>& records, Cut cut, std::size_t at) {
  std::map<int, Replay<AnyPeer>> sessions;
  for (const Record& record : records) {
    sessions.try_emplace(record.session, cut, at).first->second.run(record);
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "cut at " << at << " in " << record.op;
      return;
    }
  }
}

std::size_t longest_sent(const Record& record) {
  std::size_t longest = 0;
  for (const Step& step : record.steps)
    if (step.kind == Step::Kind::Send) longest = std::max(longest, step.bytes.size());
  return longest;
}

class TcpStoreGoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(TcpStoreGoldenTest, AnswersAsTorchsServerDoes) {
  const std::vector<Record> records = load(GetParam(), kRecordedSize);
  ASSERT_GT(records.size(), 70U);
  replay_all(records, whole, 0);
}

TEST_P(TcpStoreGoldenTest, AnswersAlikeWhereverTheBytesAreSplit) {
  const std::vector<Record> records = load(GetParam(), kShortSize);
  for (std::size_t at = 1; at < kLongRecord && !HasFailure(); ++at)
    replay_all(records, in_two, at);
}

// The few long ones are SET and MULTI_SET of fresh keys, which can be done again and again.
TEST_P(TcpStoreGoldenTest, AnswersAlikeWhereverALongRequestIsSplit) {
  std::map<int, Replay<TestPeer>> sessions;
  for (const Record& record : load(GetParam(), kShortSize)) {
    Replay<TestPeer>& session = sessions.try_emplace(record.session, in_two, 0).first->second;
    session.run(record);
    for (std::size_t at = kLongRecord; at < longest_sent(record) && !HasFailure(); ++at) {
      session.cut_at(at);
      session.run(record);
    }
  }
}

// As recorded; in the middle of such a value one place is like another.
TEST_P(TcpStoreGoldenTest, AnswersAlikeWhereverAMebibyteIsSplit) {
  std::map<int, Replay<TestPeer>> sessions;
  int count = 0;
  for (const Record& record : load(GetParam(), kRecordedSize)) {
    Replay<TestPeer>& session = sessions.try_emplace(record.session, in_two, 0).first->second;
    session.cut_at(0);
    session.run(record);
    const std::size_t size = longest_sent(record);
    if (size < kRecordedSize) continue;
    ++count;
    std::vector<std::size_t> places{64 * 1024, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1};
    for (std::size_t i = 1; i < 60; ++i)
      places.insert(places.end(), {i, size - i});
    for (const std::size_t place : places) {
      session.cut_at(place);
      session.run(record);
    }
  }
  EXPECT_GT(count, 0);
}

TEST_P(TcpStoreGoldenTest, AnswersAlikeInPiecesOfAnySize) {
  const std::vector<Record> records = load(GetParam(), kShortSize);
  for (std::size_t size = 1; size < 40 && !HasFailure(); ++size)
    replay_all(records, in_pieces, size);
}

template <typename AnyPeer>
void replay_in_pieces(const char* recording) {
  replay_all<AnyPeer>(load(recording, kRecordedSize), whole, 0);
  const std::vector<Record> records = load(recording, kShortSize);
  for (const std::size_t size : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 9U, 13U, 17U, 31U, 100U})
    if (!testing::Test::HasFailure()) replay_all<AnyPeer>(records, in_pieces, size);
}

TEST_P(TcpStoreGoldenTest, AnswersAlikeThroughARelay) {
  replay_in_pieces<test::RelayedPeer>(GetParam());
}

TEST_P(TcpStoreGoldenTest, AnswersAlikeOnAConnectionOfItsOwnThroughARelay) {
  replay_in_pieces<LonePeer>(GetParam());
}

std::string test_name(const testing::TestParamInfo<const char*>& parameter) {
  std::string name(parameter.param, std::string_view(parameter.param).rfind('.'));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Recorded, TcpStoreGoldenTest,
                         testing::Values("torch-1.13.1.jsonl", "torch-2.14.1.jsonl"), test_name);

}  // namespace
}  // namespace drun::store
