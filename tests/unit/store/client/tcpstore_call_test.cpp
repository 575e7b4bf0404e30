#include "store/client/tcpstore_call.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "store/client/backoff.hpp"
#include "store/client/resolve.hpp"

namespace drun::store {
namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

TEST(RequestWriterTest, WritesTheBytesThatTorchSends) {
  std::string add;
  RequestWriter(add).byte(*opcode(Call::Add, Dialect::C)).bytes("/n").i64(-10);
  EXPECT_EQ(add, from_hex("0402000000000000002f6ef6ffffffffffffff"));
  std::string hello;
  RequestWriter(hello).byte(*opcode(Call::Validate, Dialect::C)).u32(0x3C85F7CE);
  RequestWriter(hello).byte(*opcode(Call::Ping, Dialect::C)).u32(0x51d0);
  EXPECT_EQ(hello, from_hex("00cef7853c0dd0510000"));
}

TEST(OpcodeTest, KnowsWhatEachGenerationHas) {
  EXPECT_EQ(opcode(Call::DeleteKey, Dialect::A), 8);
  EXPECT_EQ(opcode(Call::DeleteKey, Dialect::B), 7);
  EXPECT_EQ(opcode(Call::DeleteKey, Dialect::C), 8);
  EXPECT_EQ(opcode(Call::Append, Dialect::A), std::nullopt);
  EXPECT_EQ(opcode(Call::Append, Dialect::B), 8);
  EXPECT_EQ(opcode(Call::CancelWait, Dialect::A), std::nullopt);
  EXPECT_EQ(opcode(Call::CancelWait, Dialect::B), 11);
  EXPECT_EQ(opcode(Call::Barrier, Dialect::C), 18);
  EXPECT_EQ(opcode(Call::Ping, Dialect::B), std::nullopt);
  // From A to C every number of 0 to 6 grows by one.
  for (const Call call : {Call::Set, Call::CompareSet, Call::Get, Call::Add, Call::Check,
                          Call::Wait, Call::NumKeys}) {
    EXPECT_EQ(*opcode(call, Dialect::A) + 1, *opcode(call, Dialect::C)) << name(call);
    EXPECT_EQ(*opcode(call, Dialect::A), *opcode(call, Dialect::B)) << name(call);
  }
}

struct Case {
  ReplyShape shape;
  std::size_t count;
  std::string bytes;
  std::int64_t integer;
  std::vector<std::string> values;
};

std::vector<Case> replies() {
  const std::string ab = from_hex("02000000000000006162");
  const std::string empty = from_hex("0000000000000000");
  return {
      {ReplyShape::None, 0, "", 0, {}},
      {ReplyShape::Byte, 0, from_hex("01"), 1, {}},
      {ReplyShape::Nonce, 0, from_hex("d0510000"), 0x51d0, {}},
      {ReplyShape::Integer, 0, from_hex("feffffffffffffff"), -2, {}},
      {ReplyShape::Value, 0, ab, 0, {"ab"}},
      {ReplyShape::Value, 0, empty, 0, {""}},
      {ReplyShape::Values, 3, ab + empty + ab, 0, {"ab", "", "ab"}},
      {ReplyShape::Values, 0, "", 0, {}},
      {ReplyShape::Keys, 0, from_hex("0200000000000000") + ab + empty, 2, {"ab", ""}},
      {ReplyShape::Keys, 0, empty, 0, {}},
      {ReplyShape::Popped, 0, from_hex("0500000000000000") + ab, 5, {"ab"}},
      {ReplyShape::Popped, 0, empty, 0, {}},
  };
}

// Feeds a reader pieces that end at `cuts`, as a socket would; what stays unread is given again.
void expect_reads(const Case& expected, std::size_t cut) {
  const std::string bytes = expected.bytes + "next";
  ReplyReader reader(expected.shape, expected.count, 100);
  std::size_t begin = 0;
  std::size_t taken = 0;
  auto state = reader.read(std::string_view(bytes).substr(0, cut), taken);
  begin += taken;
  if (cut < expected.bytes.size()) {
    ASSERT_EQ(state, ReplyReader::State::NeedMore) << cut;
    state = reader.read(std::string_view(bytes).substr(begin), taken);
    begin += taken;
  }
  ASSERT_EQ(state, ReplyReader::State::Done) << cut;
  EXPECT_EQ(begin, expected.bytes.size()) << cut;
  EXPECT_EQ(reader.reply().integer, expected.integer);
  EXPECT_EQ(reader.reply().values, expected.values);
}

TEST(ReplyReaderTest, ReadsEveryShapeSplitAnywhere) {
  for (const Case& c : replies()) {
    for (std::size_t cut = 0; cut <= c.bytes.size(); ++cut)
      expect_reads(c, cut);
  }
}

TEST(ReplyReaderTest, RefusesALengthAboveTheLimitBeforeTheBytesCome) {
  ReplyReader reader(ReplyShape::Value, 1, 100);
  std::size_t taken = 0;
  EXPECT_EQ(reader.read(from_hex("6500000000000000"), taken), ReplyReader::State::TooLarge);
  ReplyReader at_limit(ReplyShape::Value, 1, 100);
  EXPECT_EQ(at_limit.read(from_hex("6400000000000000"), taken), ReplyReader::State::NeedMore);
}

TEST(ReplyReaderTest, RefusesANegativeCount) {
  for (const ReplyShape shape : {ReplyShape::Keys, ReplyShape::Popped}) {
    ReplyReader reader(shape, 0, 100);
    std::size_t taken = 0;
    EXPECT_EQ(reader.read(from_hex("ffffffffffffffff"), taken), ReplyReader::State::Malformed);
  }
}

TEST(BackoffTest, GrowsToItsLimitAndStaysWithinHalfOfThePlan) {
  using std::chrono::milliseconds;
  Backoff backoff(milliseconds(10), milliseconds(100), 7);
  double planned = 10;
  for (int i = 0; i < 40; ++i) {
    const auto pause = backoff.next();
    EXPECT_GE(pause, std::chrono::microseconds(static_cast<int>(planned * 500) - 2));
    EXPECT_LE(pause, std::chrono::microseconds(static_cast<int>(planned * 1500) + 2));
    planned = std::min(planned * 1.5, 100.0);
  }
  backoff.reset();
  EXPECT_LE(backoff.next(), milliseconds(15));
}

TEST(ResolveTest, NumericAddressesAndLocalhostNeedNoLookUp) {
  const struct {
    const char* host;
    std::vector<const char*> addresses;
  } cases[] = {
      {"127.0.0.1", {"127.0.0.1"}}, {"::1", {"::1"}}, {"localhost", {"127.0.0.1", "::1"}},
      {"10.1.2.3", {"10.1.2.3"}},   {"node7", {}},    {"node7.example", {}},
  };
  for (const auto& c : cases) {
    const Addresses found = literal_addresses({c.host, 29500});
    ASSERT_EQ(found.size(), c.addresses.size()) << c.host;
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(to_endpoint(found[i]), (Endpoint{c.addresses[i], 29500}));
    }
  }
}

}  // namespace
}  // namespace drun::store
