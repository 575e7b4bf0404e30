#include "store/client/client_calls.hpp"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace drun::store {
namespace {

using std::chrono::milliseconds;

TEST(QuoteBytesTest, ShowsTextAsItIsAndAllElseInHex) {
  using namespace std::string_view_literals;
  const struct {
    std::string_view bytes, expected;
  } cases[] = {
      {"", "''"},
      {"key ~1", "'key ~1'"},
      {"a\x7f", "0x617f"},
      {"\0\x01\xff"sv, "0x0001ff"},
      {"HTTP/1.1 400\r\nServer: x", "'HTTP/1.1 400'..."},
      {"\nline", "0x0a6c696e65"},
  };
  for (const auto& [bytes, expected] : cases)
    EXPECT_EQ(quote_bytes(bytes), expected);
  EXPECT_EQ(quote_bytes(std::string(80, 'x')), "'" + std::string(80, 'x') + "'");
  EXPECT_EQ(quote_bytes(std::string(81, 'x')), "'" + std::string(80, 'x') + "'...");
}

TEST(DurationTextTest, IsInMillisecondsBelowASecond) {
  EXPECT_EQ(to_text(milliseconds(-5)), "0 ms");
  EXPECT_EQ(to_text(milliseconds(0)), "0 ms");
  EXPECT_EQ(to_text(milliseconds(999)), "999 ms");
  EXPECT_EQ(to_text(milliseconds(1'000)), "1 s");
  EXPECT_EQ(to_text(milliseconds(1'049)), "1 s");
  EXPECT_EQ(to_text(milliseconds(1'050)), "1.1 s");
  EXPECT_EQ(to_text(milliseconds(61'500)), "61.5 s");
}

TEST(ClientCallsTest, AMessageNamesThreeKeysAtMost) {
  const ClientCalls calls(TcpStoreVersion::Torch2_2, {});
  EXPECT_EQ(calls.wait({}).call.about, "");
  EXPECT_EQ(calls.wait({"a", "b", "c"}).call.about, " 'a', 'b', 'c'");
  EXPECT_EQ(calls.wait({"a", "b", "c", "d", "e"}).call.about, " 'a', 'b', 'c' and 2 more");
}

// An old store has no handshake: it is asked how many keys it has.
TEST(HandshakeTest, ANumberOfKeysThatNobodyHasIsNoStores) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 40) - 1;
  const auto said = [](std::int64_t keys) {
    tcpstore::Reply reply;
    reply.integer = keys;
    const Status status = check_handshake(TcpStoreVersion::Torch1_13, 7, reply);
    return std::string(status ? "a store" : status.error().what());
  };
  EXPECT_EQ(said(0), "a store");
  EXPECT_EQ(said(kMost), "a store");
  EXPECT_EQ(said(kMost + 1), "this is not a TCPStore server: it answered 0x0000000000010000");
  EXPECT_EQ(said(-1), "this is not a TCPStore server: it answered 0xffffffffffffffff");
  std::int64_t http = 0;
  std::memcpy(&http, "HTTP/1.1", sizeof http);
  EXPECT_EQ(said(http), "this is not a TCPStore server: it answered 'HTTP/1.1'");
}

}  // namespace
}  // namespace drun::store
