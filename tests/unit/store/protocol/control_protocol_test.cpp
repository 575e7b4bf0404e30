#include "store/protocol/control_protocol.hpp"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace drun::store::control {
namespace {

constexpr std::size_t kLongest = 1 << 20;
constexpr std::size_t kManyKeys = 1000;

std::vector<Request> all_requests() {
  Transaction transaction;
  transaction.guards = {{"leader", std::nullopt}, {"round", "3"}, {"", ""}};
  transaction.writes = {
      {"leader", "me", true}, {"round", std::nullopt, false}, {"", std::string_view("\0x", 2)}};
  return {OpenSession{5000, 1000},
          ResumeSession{7, {1, 2, 3, 255}},
          Heartbeat{},
          Goodbye{},
          transaction,
          Transaction{},
          Watch{"drun/", true},
          Watch{"k", false},
          Unwatch{1ULL << 60},
          Stats{},
          Pulse{"drun/a/", {}},
          Pulse{"drun/a/", {{{1, 2}, 0, 3, 1}, {{{1, 3}, kNoRank, 2, kNoRank}, {{2, 1}, 1, 2, 0}}}},
          Confirm{1ULL << 50},
          OpenSuccessor{5000, 1000, 3, "drun/a/", {{}, {{{1, 1}, 2, 3, 0}}}, 6001},
          Gone{4, "drun/a/", {{{1, 2}, 0, 3, 1}, {}}},
          Find{},
          Find{3, "10.0.0.1", 29400, "drun/a/", 1ULL << 30},
          LastWords{"drun/a/member/"}};
}

std::vector<Reply> all_replies() {
  return {Welcome{1, 1000, 8192, 1ULL << 40, 131072},
          VersionRefused{1, 2, "no"},
          Done{},
          Session{42, {9, 8, 7}, 5000, 1000},
          SessionEnded{EndReason::Silent},
          Committed{77},
          Refused{78, {std::nullopt, "", "x"}},
          Snapshot{81, {{"b", "1"}}},
          Changes{82, {{"b", std::nullopt}, {"", ""}}},
          Counters{{{"keys", 5}, {"", 0}}},
          Pulsed{2, 1500, {{1, 2}, kNoRank, 3, 1}, 1ULL << 50},
          Pulsed{1, Pulsed::kNever, {}, 0},
          Moved{},
          Moved{3, "::1", 65535},
          Heard{},
          Heard{{{"drun/a/member/x", 1500, 5000}, {"", 0, 0xFFFFFFFF}}},
          Error{ErrorCode::Limit, "key too long"}};
}

Frame only_frame(std::string_view bytes) {
  const FrameResult result = next_frame(bytes, kLongest);
  EXPECT_EQ(result.status, FrameStatus::Complete);
  EXPECT_EQ(result.size, bytes.size());
  return result.frame;
}

TEST(ControlProtocolTest, LayoutIsThatOfTheDocument) {
  std::string bytes;
  encode_opening(bytes);
  EXPECT_EQ(bytes, std::string("\xD5"
                               "drun\r\n\0\1\0\3\0",
                               12));
  bytes.clear();
  Transaction transaction;
  transaction.guards = {{"g", std::nullopt}};
  transaction.writes = {{"k", "v", true}};
  encode(bytes, 0x0102, Request(transaction));
  EXPECT_EQ(bytes, std::string("\x23\0\0\0"
                               "\2\1\0\0\0\0\0\0"
                               "\5"
                               "\1\0\0\0"
                               "\1\0\0\0g\0"
                               "\1\0\0\0"
                               "\1\0\0\0k\1\1\1\0\0\0v",
                               39));
}

TEST(ControlProtocolTest, LayoutOfAVoteIsThatOfTheDocument) {
  std::string bytes;
  encode(bytes, 3, Request(Pulse{"j/", {{{1, 5}, kNoRank, 4, 2}, {{{2, 6}, 1, 3, kNoRank}}}}));
  EXPECT_EQ(bytes, std::string("\x4C\0\0\0"
                               "\3\0\0\0\0\0\0\0"
                               "\x0E"
                               "\2\0\0\0j/"
                               "\1"
                               "\1\0\0\0\0\0\0\0"
                               "\5\0\0\0\0\0\0\0"
                               "\xFF\xFF\xFF\xFF"
                               "\4\0\0\0"
                               "\2\0\0\0"
                               "\1\0\0\0"
                               "\2\0\0\0\0\0\0\0"
                               "\6\0\0\0\0\0\0\0"
                               "\1\0\0\0"
                               "\3\0\0\0"
                               "\xFF\xFF\xFF\xFF",
                               80));
}

TEST(ControlProtocolTest, LayoutOfWhereAStoreIsIsThatOfTheDocument) {
  std::string bytes;
  encode(bytes, 3, Request(Find{2, "::1", 29400, "j/", 7}));
  EXPECT_EQ(bytes, std::string("\x28\0\0\0"
                               "\3\0\0\0\0\0\0\0"
                               "\x12"
                               "\2\0\0\0\0\0\0\0"
                               "\3\0\0\0::1"
                               "\xD8\x72"
                               "\2\0\0\0j/"
                               "\7\0\0\0\0\0\0\0",
                               44));
  bytes.clear();
  encode(bytes, 3, Reply(Moved{2, "::1", 29400}));
  EXPECT_EQ(bytes, std::string("\x1A\0\0\0"
                               "\3\0\0\0\0\0\0\0"
                               "\x8E"
                               "\2\0\0\0\0\0\0\0"
                               "\3\0\0\0::1"
                               "\xD8\x72",
                               30));
}

TEST(ControlProtocolTest, WhatIsNoVoteIsMalformed) {
  const auto decoded = [](const Request& request) {
    std::string bytes;
    encode(bytes, 1, request);
    Request result;
    return decode_request(only_frame(bytes), kManyKeys, result);
  };
  EXPECT_EQ(decoded(Pulse{"", {{}, {{{1, 1}, 3, 3, 0}}}}), DecodeStatus::Malformed);
  Vote many;
  for (std::uint64_t round = 0; round <= kMostPlaces; ++round)
    many.later.push_back({{1, round}, 0, 1, 0});
  EXPECT_EQ(decoded(Pulse{"", many}), DecodeStatus::Malformed);
  many.later.pop_back();
  EXPECT_EQ(decoded(Pulse{"", many}), DecodeStatus::Ok);
  EXPECT_EQ(decoded(OpenSuccessor{0, 0, kHighestGeneration, "", {}}), DecodeStatus::Ok);
  EXPECT_EQ(decoded(OpenSuccessor{0, 0, kHighestGeneration + 1, "", {}}), DecodeStatus::Malformed);
  EXPECT_EQ(decoded(Gone{kHighestGeneration + 1, "", {}}), DecodeStatus::Malformed);
}

TEST(ControlProtocolTest, EveryRequestComesBackAsItWasSent) {
  for (const Request& request : all_requests()) {
    std::string bytes;
    encode(bytes, 5, request);
    const Frame frame = only_frame(bytes);
    EXPECT_EQ(frame.request, 5U);
    Request decoded;
    ASSERT_EQ(decode_request(frame, kManyKeys, decoded), DecodeStatus::Ok) << request.index();
    EXPECT_EQ(decoded.index(), request.index());
    std::string again;
    encode(again, 5, decoded);
    EXPECT_EQ(again, bytes) << request.index();
  }
}

TEST(ControlProtocolTest, EveryReplyComesBackAsItWasSent) {
  for (const Reply& reply : all_replies()) {
    std::string bytes;
    encode(bytes, 6, reply);
    Reply decoded;
    ASSERT_EQ(decode_reply(only_frame(bytes), decoded), DecodeStatus::Ok) << reply.index();
    EXPECT_EQ(decoded.index(), reply.index());
    std::string again;
    encode(again, 6, decoded);
    EXPECT_EQ(again, bytes) << reply.index();
  }
}

TEST(ControlProtocolTest, EveryShorterOrLongerBodyIsMalformed) {
  const auto check = [](const std::string& bytes, auto decode) {
    Frame frame = only_frame(bytes);
    const std::string body(frame.body);
    for (std::size_t size = 0; size < body.size(); ++size) {
      frame.body = std::string_view(body).substr(0, size);
      EXPECT_NE(decode(frame), DecodeStatus::Ok) << "type " << int{frame.type} << " of " << size;
    }
    const std::string longer = body + '\0';
    frame.body = longer;
    EXPECT_EQ(decode(frame), DecodeStatus::Malformed) << "type " << int{frame.type};
  };
  for (const Request& request : all_requests()) {
    std::string bytes;
    encode(bytes, 1, request);
    check(bytes, [](const Frame& frame) {
      Request decoded;
      return decode_request(frame, kManyKeys, decoded);
    });
  }
  for (const Reply& reply : all_replies()) {
    std::string bytes;
    encode(bytes, 1, reply);
    check(bytes, [](const Frame& frame) {
      Reply decoded;
      return decode_reply(frame, decoded);
    });
  }
}

TEST(ControlProtocolTest, AFrameIsCompleteExactlyWhenAllItsBytesAreThere) {
  std::string bytes;
  encode(bytes, 1, Request(Watch{"abc", true}));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const FrameResult result = next_frame(std::string_view(bytes).substr(0, size), kLongest);
    EXPECT_EQ(result.status, FrameStatus::NeedMore);
    EXPECT_GT(result.size, size);
    EXPECT_LE(result.size, bytes.size());
  }
  const std::string two = bytes + bytes;
  EXPECT_EQ(next_frame(two, kLongest).size, bytes.size());
}

TEST(ControlProtocolTest, LengthsOutOfBoundsAreRefusedFromTheHeaderAlone) {
  EXPECT_EQ(next_frame(std::string_view("\x08\0\0\0", 4), kLongest).status, FrameStatus::Malformed);
  EXPECT_EQ(next_frame(std::string_view("\x65\0\0\0", 4), 100).status, FrameStatus::TooLong);
  EXPECT_EQ(next_frame(std::string_view("\x64\0\0\0", 4), 100).status, FrameStatus::NeedMore);
  EXPECT_EQ(next_frame("\xFF\xFF\xFF\xFF", 0xFFFFFFFE).status, FrameStatus::TooLong);
}

TEST(ControlProtocolTest, AnOpeningIsKnownByteByByte) {
  std::string bytes;
  encode_opening(bytes, {1, 9});
  for (std::size_t size = 0; size <= bytes.size(); ++size)
    EXPECT_TRUE(may_be_opening(std::string_view(bytes).substr(0, size)));
  for (std::size_t i = 0; i < kMagic.size(); ++i) {
    std::string wrong = bytes;
    wrong[i] ^= 1;
    EXPECT_FALSE(may_be_opening(std::string_view(wrong).substr(0, i + 1))) << i;
  }
  EXPECT_EQ(decode_opening(bytes).lowest, 1);
  EXPECT_EQ(decode_opening(bytes).highest, 9);
}

TEST(ControlProtocolTest, TheHighestCommonVersionIsChosen) {
  EXPECT_EQ(choose_version({1, 1}), 1);
  EXPECT_EQ(choose_version({1, 65535}), kHighestVersion);
  EXPECT_EQ(choose_version({0, 1}), 1);
  EXPECT_EQ(choose_version({2, 2}), 2);
  EXPECT_EQ(choose_version({3, 5}), 3);
  EXPECT_EQ(choose_version({4, 5}), std::nullopt);
  EXPECT_EQ(choose_version({0, 0}), std::nullopt);
  EXPECT_EQ(choose_version({3, 1}), std::nullopt) << "lowest above highest";
}

TEST(ControlProtocolTest, ListsAreBoundedBeforeMemoryIsTaken) {
  std::string bytes;
  encode(bytes, 1, Request(Transaction{{{"a", {}}, {"b", {}}, {"c", {}}}, {}}));
  const Frame frame = only_frame(bytes);
  Request decoded;
  EXPECT_EQ(decode_request(frame, 3, decoded), DecodeStatus::Ok);
  EXPECT_EQ(std::get<Transaction>(decoded).guards.size(), 3U);
  EXPECT_EQ(decode_request(frame, 2, decoded), DecodeStatus::TooManyKeys);
  const Frame huge{1, static_cast<std::uint8_t>(FrameType::Transaction), "\xFF\xFF\xFF\xFF"};
  EXPECT_EQ(decode_request(huge, kManyKeys, decoded), DecodeStatus::Malformed);
}

TEST(ControlProtocolTest, UnknownTypesAndFlagsAreTold) {
  Request request;
  Reply reply;
  for (const int type : {0x00, 0x06, 0x07, 0x0A, 0x0B, 0x0D, 0x14, 0x7F, 0x80, 0xFF})
    EXPECT_EQ(decode_request({1, static_cast<std::uint8_t>(type), ""}, 9, request),
              DecodeStatus::UnknownType);
  for (const int type : {0x00, 0x01, 0x7F, 0x87, 0x88, 0x8C, 0x90, 0xFE})
    EXPECT_EQ(decode_reply({1, static_cast<std::uint8_t>(type), ""}, reply),
              DecodeStatus::UnknownType);
  std::string bytes;
  encode(bytes, 1, Request(Watch{"k", true}));
  bytes.back() = 2;
  EXPECT_EQ(decode_request(only_frame(bytes), 9, request), DecodeStatus::Malformed);
}

TEST(ControlProtocolTest, WhatIsDecodedOfRandomBodiesIsWhatTheyAre) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string body(random() % 40, '\0');
    for (char& byte : body)
      byte = static_cast<char>(random() % 4);
    Request request;
    Reply reply;
    const auto type = static_cast<std::uint8_t>(random() % 16);
    const auto expect_same = [&](const auto& message) {
      std::string again;
      encode(again, 1, message);
      EXPECT_EQ(only_frame(again).body, body);
    };
    if (decode_request({1, type, body}, 100, request) == DecodeStatus::Ok) expect_same(request);
    const auto reply_type = static_cast<std::uint8_t>(0x80 + type);
    if (decode_reply({1, reply_type, body}, reply) == DecodeStatus::Ok) expect_same(reply);
  }
}

}  // namespace
}  // namespace drun::store::control
