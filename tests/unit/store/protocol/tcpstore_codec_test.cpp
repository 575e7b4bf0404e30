#include "store/protocol/tcpstore_codec.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::store::tcpstore {
namespace {

using namespace std::string_literals;

constexpr TcpStoreVersion kVersions[] = {TcpStoreVersion::Torch1_13, TcpStoreVersion::Torch2_1,
                                         TcpStoreVersion::Torch2_2};

// ---- opcodes ----

TEST(TcpStoreProtocolTest, OpcodesAreThoseOfEachRelease) {
  struct Row {
    Op op;
    std::optional<int> a, b, c;
  };
  constexpr auto kNone = std::nullopt;
  const Row rows[] = {
      {Op::Set, 0, 0, 1},
      {Op::CompareSet, 1, 1, 2},
      {Op::Get, 2, 2, 3},
      {Op::Add, 3, 3, 4},
      {Op::Check, 4, 4, 5},
      {Op::Wait, 5, 5, 6},
      {Op::GetNumKeys, 6, 6, 7},
      {Op::DeleteKey, 8, 7, 8},
      {Op::Append, kNone, 8, 9},
      {Op::MultiGet, kNone, 9, 10},
      {Op::MultiSet, kNone, 10, 11},
      {Op::CancelWait, kNone, 11, 12},
      {Op::Ping, kNone, kNone, 13},
      {Op::QueuePush, kNone, kNone, 14},
      {Op::QueuePop, kNone, kNone, 15},
      {Op::QueueLen, kNone, kNone, 16},
      {Op::ListKeys, kNone, kNone, 17},
      {Op::Barrier, kNone, kNone, 18},
  };
  for (const Row& row : rows) {
    const std::optional<int> opcodes[] = {row.a, row.b, row.c};
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(opcode_of(kVersions[i], row.op), opcodes[i]) << "op " << int(row.op);
      if (!opcodes[i]) continue;
      EXPECT_EQ(op_of(kVersions[i], static_cast<std::uint8_t>(*opcodes[i])), row.op);
    }
  }
  EXPECT_EQ(op_of(TcpStoreVersion::Torch1_13, 7), std::nullopt) << "WATCH_KEY is not served";
  EXPECT_EQ(op_of(TcpStoreVersion::Torch2_2, 0), std::nullopt) << "VALIDATE comes first or never";
  for (int opcode = 9; opcode < 256; ++opcode)
    EXPECT_EQ(op_of(TcpStoreVersion::Torch1_13, static_cast<std::uint8_t>(opcode)), std::nullopt);
  for (int opcode = 12; opcode < 256; ++opcode)
    EXPECT_EQ(op_of(TcpStoreVersion::Torch2_1, static_cast<std::uint8_t>(opcode)), std::nullopt);
  for (int opcode = 19; opcode < 256; ++opcode)
    EXPECT_EQ(op_of(TcpStoreVersion::Torch2_2, static_cast<std::uint8_t>(opcode)), std::nullopt);
}

// ---- first bytes ----

struct FirstBytes {
  const char* name;
  std::string bytes;
  Detection::Status status;
  TcpStoreVersion version = TcpStoreVersion::Torch1_13;
  std::size_t decided_after = 0;  // bytes
};

class DetectVersionTest : public testing::TestWithParam<FirstBytes> {};

TEST_P(DetectVersionTest, DecidesAsSoonAsItCanAndNeverChanges) {
  const Limits limits;
  const FirstBytes& given = GetParam();
  for (std::size_t size = 0; size <= given.bytes.size(); ++size) {
    const Detection found = detect_version(std::string_view(given.bytes).substr(0, size), limits);
    if (size < given.decided_after || given.decided_after == 0) {
      EXPECT_EQ(found.status, Detection::Status::NeedMore) << size;
      continue;
    }
    EXPECT_EQ(found.status, given.status) << size;
    if (given.status != Detection::Status::Decided) continue;
    EXPECT_EQ(found.version, given.version) << size;
    EXPECT_EQ(found.consumed, given.version == TcpStoreVersion::Torch2_2 ? 5U : 0U) << size;
  }
}

std::string with_number(char opcode, std::uint64_t number) {
  std::string bytes(1, opcode);
  append(bytes, number);
  return bytes + "rest";
}

constexpr auto kDecided = Detection::Status::Decided;
constexpr auto kRejected = Detection::Status::Rejected;

INSTANTIATE_TEST_SUITE_P(
    FirstBytes, DetectVersionTest,
    testing::Values(
        FirstBytes{"nothing", "", Detection::Status::NeedMore},
        FirstBytes{"modern", "\x00\xCE\xF7\x85\x3C\x0D\1\2\3\4"s, kDecided,
                   TcpStoreVersion::Torch2_2, 5},
        FirstBytes{"old_set", with_number(0, 2), kDecided, TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_set_with_a_key_of_206_bytes", with_number(0, 0xCE), kDecided,
                   TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_set_that_almost_looks_modern", with_number(0, 0x85F7CE), kRejected,
                   TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"wrong_magic", "\x00\xCE\xF7\x85\x3D\0\0\0\0"s, kRejected,
                   TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_set_longest_key", with_number(0, 8192), kDecided,
                   TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_set_key_too_long", with_number(0, 8193), kRejected,
                   TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_compare_set", with_number(1, 3), kDecided, TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_get", with_number(2, 3), kDecided, TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_add", with_number(3, 5), kDecided, TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_add_key_too_long", with_number(3, 1ULL << 63), kRejected,
                   TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_check", with_number(4, 1), kDecided, TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_wait", with_number(5, 131072), kDecided, TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_wait_too_many", with_number(5, 131073), kRejected,
                   TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_num_keys", "\6", kDecided, TcpStoreVersion::Torch1_13, 1},
        FirstBytes{"old_7", with_number(7, 3), kDecided, TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_8", with_number(8, 3), kDecided, TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_multi_get", with_number(9, 3), kDecided, TcpStoreVersion::Torch1_13, 9},
        FirstBytes{"old_multi_set", with_number(10, 131073), kRejected, TcpStoreVersion::Torch1_13,
                   9},
        FirstBytes{"cancel_wait", "\x0B", kRejected, TcpStoreVersion::Torch1_13, 1},
        FirstBytes{"ping_without_validate", "\x0D\1\2\3\4", kRejected, TcpStoreVersion::Torch1_13,
                   1},
        FirstBytes{"magic_before_every_request", "\xCE\xF7\x85\x3C", kRejected,
                   TcpStoreVersion::Torch1_13, 1},
        FirstBytes{"http", "GET / HTTP/1.1\r\n", kRejected, TcpStoreVersion::Torch1_13, 1},
        FirstBytes{"tls", "\x16\3\1\2", kRejected, TcpStoreVersion::Torch1_13, 1},
        FirstBytes{"ssh", "SSH-2.0-", kRejected, TcpStoreVersion::Torch1_13, 1},
        FirstBytes{"redis", "*1\r\n", kRejected, TcpStoreVersion::Torch1_13, 1},
        FirstBytes{"zeros", std::string(16, '\0'), kDecided, TcpStoreVersion::Torch1_13, 9}),
    [](const testing::TestParamInfo<FirstBytes>& parameter) { return parameter.param.name; });

// ---- requests ----

std::vector<Request> all_requests() {
  std::vector<Request> requests;
  for (int op = 1; op <= int(Op::Barrier); ++op) {
    Request request;
    request.op = static_cast<Op>(op);
    request.key = "/key";
    request.value = std::string_view("v\0l", 3);
    request.expected = "";
    request.number = -7;
    request.nonce = 0xDEADBEEF;
    request.keys = {"", "a", "a"};
    request.values = {"1", "", "22"};
    requests.push_back(request);
  }
  return requests;
}

void expect_same(const Request& a, const Request& b) {
  ASSERT_EQ(a.op, b.op);
  std::string bytes_of_a;
  std::string bytes_of_b;
  encode(bytes_of_a, TcpStoreVersion::Torch2_2, a);
  encode(bytes_of_b, TcpStoreVersion::Torch2_2, b);
  EXPECT_EQ(bytes_of_a, bytes_of_b);
}

TEST(TcpStoreProtocolTest, EveryRequestIsCompleteExactlyWithItsLastByte) {
  const Limits limits;
  for (const TcpStoreVersion version : kVersions) {
    for (const Request& request : all_requests()) {
      if (!opcode_of(version, request.op)) continue;
      std::string bytes;
      encode(bytes, version, request);
      Decoder decoder(version);
      Request decoded;
      for (std::size_t size = 1; size < bytes.size(); ++size) {
        const auto result = decoder.next(std::string_view(bytes).substr(0, size), limits, decoded);
        ASSERT_EQ(result.status, Decoder::Status::NeedMore) << "op " << int(request.op);
        EXPECT_GT(result.size, size);
        EXPECT_LE(result.size, bytes.size());
      }
      const auto result = decoder.next(bytes, limits, decoded);
      ASSERT_EQ(result.status, Decoder::Status::Complete) << "op " << int(request.op);
      EXPECT_EQ(result.size, bytes.size());
      expect_same(decoded, request);
      // The next one starts afresh.
      const auto again = decoder.next(bytes, limits, decoded);
      EXPECT_EQ(again.status, Decoder::Status::Complete);
      expect_same(decoded, request);
    }
  }
}

TEST(TcpStoreProtocolTest, AListThatTricklesInIsLookedAtOnce) {
  const std::string key = "k";
  Request request;
  request.op = Op::Wait;
  request.keys.assign(100'000, key);
  std::string bytes;
  encode(bytes, TcpStoreVersion::Torch2_2, request);
  Decoder decoder(TcpStoreVersion::Torch2_2);
  Request decoded;
  const Limits limits;
  // Quadratic work would take minutes here.
  for (std::size_t size = 1; size < bytes.size(); ++size)
    ASSERT_EQ(decoder.next(std::string_view(bytes).substr(0, size), limits, decoded).status,
              Decoder::Status::NeedMore);
  EXPECT_EQ(decoder.next(bytes, limits, decoded).status, Decoder::Status::Complete);
  EXPECT_EQ(decoded.keys.size(), 100'000U);
}

Decoder::Result decode(std::string_view bytes, const Limits& limits) {
  Request request;
  return Decoder(TcpStoreVersion::Torch2_2).next(bytes, limits, request);
}

TEST(TcpStoreProtocolTest, LimitsAreExact) {
  Limits limits;
  limits.key_bytes = 4;
  limits.value_bytes = 6;
  limits.keys_per_request = 3;
  const auto status = [&](const Request& request) {
    std::string bytes;
    encode(bytes, TcpStoreVersion::Torch2_2, request);
    return decode(bytes, limits).status;
  };
  using Status = Decoder::Status;
  for (Request request : all_requests()) {
    request.key = "/key";
    request.value = "sixsix";
    request.expected = "sixsix";
    request.keys = {"kkkk", "kkkk", "kkkk"};
    request.values = {"sixsix", "sixsix", "sixsix"};
    EXPECT_EQ(status(request), Status::Complete) << "op " << int(request.op);
    const bool has_value = request.op == Op::Set || request.op == Op::Append ||
                           request.op == Op::QueuePush || request.op == Op::CompareSet;
    const bool has_list = request.op == Op::Check || request.op == Op::Wait ||
                          request.op == Op::MultiGet || request.op == Op::MultiSet;
    const bool has_nothing = request.op == Op::GetNumKeys || request.op == Op::CancelWait ||
                             request.op == Op::Ping || request.op == Op::ListKeys;
    if (!has_list && !has_nothing) {
      Request long_key = request;
      long_key.key = "/key5";
      EXPECT_EQ(status(long_key), Status::Refused) << "op " << int(request.op);
    }
    if (has_value) {
      Request long_value = request;
      long_value.value = "sevenxx";
      EXPECT_EQ(status(long_value), Status::Refused) << "op " << int(request.op);
    }
    if (request.op == Op::CompareSet) {
      request.expected = "sevenxx";
      EXPECT_EQ(status(request), Status::Refused);
    }
    if (has_list) {
      Request many = request;
      many.keys.push_back("k");
      many.values.push_back("v");
      EXPECT_EQ(status(many), Status::Refused) << "op " << int(request.op);
      Request long_key = request;
      long_key.keys.back() = "kkkkk";
      EXPECT_EQ(status(long_key), Status::Refused) << "op " << int(request.op);
    }
    if (request.op == Op::MultiSet) {
      request.values.back() = "sevenxx";
      EXPECT_EQ(status(request), Status::Refused);
    }
  }
}

TEST(TcpStoreProtocolTest, AHugeLengthIsRefusedFromItsEightBytes) {
  const Limits limits;
  for (const std::uint64_t length :
       {std::uint64_t{8193}, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    std::string bytes = "\x01";
    append(bytes, length);
    EXPECT_EQ(decode(bytes, limits).status, Decoder::Status::Refused) << length;
  }
  std::string list = "\x06";
  append(list, ~std::uint64_t{0});
  EXPECT_EQ(decode(list, limits).status, Decoder::Status::Refused);
}

TEST(TcpStoreProtocolTest, ARequestAsAWholeIsBounded) {
  Limits limits;
  limits.request_bytes = 100;
  Request request;
  request.op = Op::MultiSet;
  const std::string value(30, 'v');
  request.keys = {"a", "b"};
  request.values = {value, value};  // 1 + 8 + 2 * (9 + 38)
  std::string bytes;
  encode(bytes, TcpStoreVersion::Torch2_2, request);
  ASSERT_EQ(bytes.size(), 103U);
  EXPECT_EQ(decode(std::string_view(bytes).substr(0, 75), limits).status, Decoder::Status::Refused)
      << "before the rest is waited for";
  limits.request_bytes = 103;
  EXPECT_EQ(decode(std::string_view(bytes).substr(0, 75), limits).status,
            Decoder::Status::NeedMore);
}

TEST(TcpStoreProtocolTest, AnOldClientIsFoundToBeA21ByWhatOnlyA21Sends) {
  const Limits limits;
  const auto version_after = [&](std::string_view bytes) {
    Decoder decoder(TcpStoreVersion::Torch1_13);
    Request request;
    (void)decoder.next(bytes, limits, request);
    return decoder.version();
  };
  std::string key;
  append_vector(key, "/k");
  std::string value;
  append_vector(value, "v");
  EXPECT_EQ(version_after("\6"), TcpStoreVersion::Torch1_13);
  EXPECT_EQ(version_after("\7" + key), TcpStoreVersion::Torch2_1);
  EXPECT_EQ(version_after("\x09"s), TcpStoreVersion::Torch2_1);
  EXPECT_EQ(version_after("\x0B"s), TcpStoreVersion::Torch2_1);
  EXPECT_EQ(version_after("\x0C"s), TcpStoreVersion::Torch1_13) << "unknown to both";
  EXPECT_EQ(version_after("\x08" + key), TcpStoreVersion::Torch1_13)
      << "DELETE_KEY: the client waits now";
  EXPECT_EQ(version_after("\x08" + key + value), TcpStoreVersion::Torch2_1)
      << "APPEND comes with its value";
  EXPECT_EQ(version_after("\x08" + key + value + "\6"), TcpStoreVersion::Torch1_13)
      << "not one value";
}

}  // namespace
}  // namespace drun::store::tcpstore
