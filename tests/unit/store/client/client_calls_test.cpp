#include "store/client/client_calls.hpp"

#include <chrono>
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

}  // namespace
}  // namespace drun::store
