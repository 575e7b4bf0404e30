// Requests as torch sends them, and replies that arrive in pieces.
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "store/protocol/tcpstore_codec.hpp"

namespace drun::store::tcpstore {
namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

TEST(TcpStoreRequestTest, HasTheBytesThatTorchSends) {
  std::string add;
  encode(add, TcpStoreVersion::Torch2_2, {.op = Op::Add, .key = "/n", .number = -10});
  EXPECT_EQ(add, from_hex("0402000000000000002f6ef6ffffffffffffff"));
  std::string hello;
  encode(hello, TcpStoreVersion::Torch2_2, {.op = Op::Validate});
  encode(hello, TcpStoreVersion::Torch2_2, {.op = Op::Ping, .nonce = 0x51d0});
  EXPECT_EQ(hello, from_hex("00cef7853c0dd0510000"));
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

}  // namespace
}  // namespace drun::store::tcpstore
