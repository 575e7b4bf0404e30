#include "launcher/page/http_answer.hpp"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(HttpAnswerTest, TheHeadSaysWhatFollowsAndKeepsOthersOut) {
  const auto time = std::chrono::system_clock::from_time_t(784'111'777);
  const std::string head = head_of(plain_answer(200, "ok"), time);
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"
                               "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                               "Content-Type: text/plain; charset=utf-8\r\n"
                               "Content-Length: 3\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nContent-Security-Policy: default-src 'none'; "));
  EXPECT_THAT(head, Not(HasSubstr("Access-Control")));
  EXPECT_THAT(head, ::testing::EndsWith("\r\n\r\n"));
  EXPECT_THAT(head_of(refusal(405), time), HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Allow")));
  EXPECT_THAT(head_of({401, "text/plain", share("no"), "WWW-Authenticate: Bearer\r\n"}, time),
              ::testing::AllOf(StartsWith("HTTP/1.1 401 Unauthorized\r\n"),
                               HasSubstr("\r\nWWW-Authenticate: Bearer\r\nCache-Control")));
  EXPECT_THAT(head_of(refusal(431), time),
              StartsWith("HTTP/1.1 431 Request Header Fields Too Large\r\n"));
}

TEST(HttpAnswerTest, OpenMetricsIsForThoseWhoPreferIt) {
  const std::string open = "application/openmetrics-text";
  EXPECT_TRUE(
      prefers_open_metrics(open + ";version=1.0.0," + open +
                           ";version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"));
  EXPECT_TRUE(prefers_open_metrics("Application/OpenMetrics-Text"));
  EXPECT_TRUE(prefers_open_metrics(open + "; q=0.5, text/plain; q=0.5"));
  EXPECT_FALSE(prefers_open_metrics("text/plain;q=0.6," + open + ";q=0.5"));
  EXPECT_FALSE(prefers_open_metrics("text/plain;q=0.5," + open + ";q=0.25"));
  EXPECT_FALSE(prefers_open_metrics(open + ";q=0"));
  EXPECT_FALSE(prefers_open_metrics(open + ";q=x"));
  EXPECT_FALSE(prefers_open_metrics("text/html,*/*;q=0.8"));
  EXPECT_FALSE(prefers_open_metrics(""));
}

// Whoever gets a browser to resolve a name of theirs to this machine reads nothing.
TEST(HttpAnswerTest, OnlyOwnNamesLeadHere) {
  for (const char* host : {"", "localhost", "localhost:80", "LOCALHOST", "127.0.0.1:9000",
                           "[::1]:9000", "::1", "10.1.2.3", "Node7", "node7:9000"})
    EXPECT_TRUE(is_own_host(host, "node7")) << host;
  for (const char* host :
       {"evil.example", "evil.example:9000", "127.0.0.1.evil.example", "localhost.evil.example:80",
        "node7.evil.example", "node70", "a b", "localhost:x", "127.0.0.1@evil.example"})
    EXPECT_FALSE(is_own_host(host, "node7")) << host;
}

TEST(HttpAnswerTest, OthersPagesAskForNothing) {
  EXPECT_TRUE(is_own_origin("", "localhost:9000")) << "no browser";
  EXPECT_TRUE(is_own_origin("http://localhost:9000", "LocalHost:9000"));
  EXPECT_TRUE(is_own_origin("https://node0.cluster", "node0.cluster"));
  EXPECT_TRUE(is_own_origin("http://[::1]:9000", "[::1]:9000"));
  for (const char* origin : {"null", "http://evil.example", "http://localhost", "localhost:9000",
                             "http://localhost:9001", "http://localhost:9000/", "file://", " "})
    EXPECT_FALSE(is_own_origin(origin, "localhost:9000")) << origin;
  EXPECT_FALSE(is_own_origin("http://localhost:9000", ""));
}

TEST(HttpAnswerTest, ATokenStandsBehindItsScheme) {
  EXPECT_EQ(bearer_of("Bearer abc=="), "abc==");
  EXPECT_EQ(bearer_of("bearer  abc"), "abc");
  for (const char* none : {"", "Bearer", "Bearer ", "Basic abc", "abc", "Bearerabc"})
    EXPECT_EQ(bearer_of(none), std::nullopt) << none;
}

// As scrape targets are written, where hosts know their own domain.
TEST(HttpAnswerTest, AnOwnNameMayStandAlone) {
  for (const char* host : {"node0:9000", "Node0", "node0.cluster:9000"})
    EXPECT_TRUE(is_own_host(host, "node0.cluster")) << host;
  for (const char* host :
       {"node0.evil.com", "node0.", "node:9000", "cluster", "node0.cluster.evil"})
    EXPECT_FALSE(is_own_host(host, "node0.cluster")) << host;
}

}  // namespace
}  // namespace drun::launcher
