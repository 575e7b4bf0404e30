// Every opcode of every version, byte by byte as the protocol's table has them.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "store/protocol/bytes.hpp"
#include "support/test_peer.hpp"

namespace drun::store {
namespace {

using test::PeerWorld;
using test::TestPeer;

std::string u64(std::uint64_t number) {
  std::string out;
  append(out, number);
  return out;
}
std::string i64(std::int64_t number) {
  std::string out;
  append(out, number);
  return out;
}
std::string str(std::string_view bytes) {
  return u64(bytes.size()) + std::string(bytes);
}

constexpr int kNone = -1;
constexpr const char* kVersionNames[] = {"1.13", "2.1", "2.2"};

// In a store that holds /k = "v" and /n = "8", and "item" in the queue /q.
struct Row {
  const char* name;
  std::array<int, 3> opcode;  // of 1.13, 2.1 and 2.2
  std::string body;
  std::string reply;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows{
      {"SET", {0, 0, 1}, str("/x") + str("1"), ""},
      {"COMPARE_SET", {1, 1, 2}, str("/k") + str("v") + str("w"), str("w")},
      {"GET", {2, 2, 3}, str("/k"), str("v")},
      {"ADD", {3, 3, 4}, str("/n") + i64(-10), i64(-2)},
      {"CHECK", {4, 4, 5}, u64(2) + str("/k") + str("/none"), "\1"},
      {"WAIT", {5, 5, 6}, u64(1) + str("/k"), std::string(1, '\0')},
      {"GETNUMKEYS", {6, 6, 7}, "", i64(2)},
      {"DELETE_KEY", {8, 7, 8}, str("/k"), i64(1)},
      {"APPEND", {kNone, 8, 9}, str("/k") + str("abc"), ""},
      {"MULTI_GET", {kNone, 9, 10}, u64(2) + str("/n") + str("/k"), str("8") + str("v")},
      {"MULTI_SET", {kNone, 10, 11}, u64(1) + str("/m") + str("1"), ""},
      {"CANCEL_WAIT", {kNone, 11, 12}, "", "\1"},
      {"PING", {kNone, kNone, 13}, "abcd", "abcd"},
      {"QUEUE_PUSH", {kNone, kNone, 14}, str("/q") + str("more"), ""},
      {"QUEUE_POP", {kNone, kNone, 15}, str("/q"), i64(1) + str("item")},
      {"QUEUE_LEN", {kNone, kNone, 16}, str("/q"), i64(1)},
      {"LIST_KEYS", {kNone, kNone, 17}, "", i64(2) + str("/k") + str("/n")},
      {"BARRIER", {kNone, kNone, 18}, str("/b") + i64(1), std::string(1, '\0')},
  };
  return kRows;
}

const Row* find_row(std::size_t version, int opcode) {
  for (const Row& row : rows())
    if (row.opcode[version] == opcode) return &row;
  return nullptr;
}

// A client in the middle of its connection.
struct Fixture {
  explicit Fixture(std::size_t version) {
    world.context.old_clients_are_2_1 = version == 1;
    EXPECT_TRUE(world.job.put("/k", "v") && world.job.put("/n", "8"));
    EXPECT_TRUE(world.job.push("/q", "item"));
    const std::string opening = version == 2 ? std::string(tcpstore::kHandshake) + "\7" : "\6";
    EXPECT_EQ(client.ask(opening), i64(2));
  }
  PeerWorld world;
  TestPeer client{world};
};

TEST(TcpStoreOpcodesTest, EachRequestHasItsReplyInEachVersion) {
  for (std::size_t version = 0; version < 3; ++version) {
    for (const Row& row : rows()) {
      if (row.opcode[version] == kNone) continue;
      SCOPED_TRACE(std::string(row.name) + " in " + kVersionNames[version]);
      Fixture fixture(version);
      std::string reply = fixture.client.ask(static_cast<char>(row.opcode[version]) + row.body);
      const std::string other_order = i64(2) + str("/n") + str("/k");
      if (row.name == std::string_view("LIST_KEYS") && reply == other_order) reply = row.reply;
      EXPECT_EQ(reply, row.reply);
      const std::string keys = fixture.client.ask(version == 2 ? "\7" : "\6");
      EXPECT_EQ(keys, i64(static_cast<std::int64_t>(fixture.world.job.size())))
          << "the next request is understood";
    }
  }
}

// What 1.13 does not have and 2.1 does shows that the client is a 2.1; everything else ends it.
TEST(TcpStoreOpcodesTest, EveryOtherOpcodeEndsTheConnection) {
  for (std::size_t version = 0; version < 3; ++version) {
    for (int opcode = 0; opcode < 256; ++opcode) {
      if (find_row(version, opcode) != nullptr) continue;
      if (version == 0 && find_row(1, opcode) != nullptr) continue;
      SCOPED_TRACE(std::to_string(opcode) + " in " + kVersionNames[version]);
      Fixture fixture(version);
      EXPECT_EQ(fixture.client.ask(std::string(1, static_cast<char>(opcode))), "");
      EXPECT_TRUE(fixture.client.is_closed());
      EXPECT_STREQ(fixture.client.close_reason(), "unknown request");
    }
  }
}

TEST(TcpStoreOpcodesTest, AnOldClientThatUsesWhatOnlyA21HasIsServedAsOne) {
  for (const Row& row : rows()) {
    const int opcode = row.opcode[1];
    if (opcode != 7 && opcode < 9) continue;
    SCOPED_TRACE(row.name);
    Fixture fixture(0);
    EXPECT_EQ(fixture.client.ask(static_cast<char>(opcode) + row.body), row.reply);
    EXPECT_FALSE(fixture.client.is_closed());
  }
}

}  // namespace
}  // namespace drun::store
