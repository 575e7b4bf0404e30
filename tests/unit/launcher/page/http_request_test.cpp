#include "launcher/page/http_request.hpp"

#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

constexpr const char* kHost = "Host: localhost:9000\r\n";

// 0: more is needed; 200: a request; else the status of the refusal.
int status_of(const HttpReader::Step& step) {
  if (std::holds_alternative<std::monostate>(step)) return 0;
  const auto* refused = std::get_if<HttpRefusal>(&step);
  return refused != nullptr ? refused->status : 200;
}

int status_of(const std::string& bytes) {
  return status_of(HttpReader().take(bytes));
}

HttpRequest read(const std::string& bytes) {
  const auto step = HttpReader().take(bytes);
  EXPECT_EQ(status_of(step), 200) << bytes;
  return status_of(step) == 200 ? std::get<HttpRequest>(step) : HttpRequest();
}

TEST(HttpRequestTest, ARequestIsItsPathQueryAndWhatTheAnswerDependsOn) {
  const HttpRequest request = read(
      "GET /metrics?ranks=1&x HTTP/1.1\r\nhOST: \tlocalhost:9000 \r\n"
      "Accept: text/plain;q=0.5\r\nUser-Agent: \xc3\xa9\r\nAccept: */*\r\n\r\n");
  EXPECT_FALSE(request.head);
  EXPECT_EQ(request.path, "/metrics");
  EXPECT_EQ(request.query, "ranks=1&x");
  EXPECT_EQ(request.host, "localhost:9000");
  EXPECT_EQ(request.accept, "text/plain;q=0.5,*/*");
  EXPECT_TRUE(has_part(request.query, "ranks=1"));
  EXPECT_FALSE(has_part(request.query, "ranks"));
  EXPECT_FALSE(has_part("", ""));
  EXPECT_TRUE(read("HEAD / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n").head);
  EXPECT_EQ(read("GET / HTTP/1.0\r\n\r\n").host, "");
}

TEST(HttpRequestTest, WhoAsksForSomethingSaysWhoAsks) {
  const HttpRequest request = read(
      "POST /stacks HTTP/1.1\r\nHost: h:1\r\nOrigin: http://h:1\r\nContent-Length: 0\r\n"
      "Authorization:  Bearer abc \r\n\r\n");
  EXPECT_TRUE(request.post);
  EXPECT_FALSE(request.head);
  EXPECT_EQ(request.path, "/stacks");
  EXPECT_EQ(request.origin, "http://h:1");
  EXPECT_EQ(request.authorization, "Bearer abc");
  const HttpRequest plain = read("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_FALSE(plain.post);
  EXPECT_EQ(plain.origin + plain.authorization, "");
}

// As to a proxy. Who looks at the host, to keep foreign pages out, must look at this one.
TEST(HttpRequestTest, ATargetMayHaveTheHostWhichCountsThen) {
  const HttpRequest request =
      read("GET http://localhost:9000/metrics?ranks=1 HTTP/1.1\r\nHost: else\r\n\r\n");
  EXPECT_EQ(request.host, "localhost:9000");
  EXPECT_EQ(request.path, "/metrics");
  EXPECT_EQ(request.query, "ranks=1");
  const HttpRequest bare = read("GET HTTP://h?x HTTP/1.1\r\nHost: else\r\n\r\n");
  EXPECT_EQ(bare.host + bare.path + bare.query, "h/x");
  EXPECT_EQ(read("GET http://h HTTP/1.1\r\nHost: h\r\n\r\n").path, "/");
}

// However the bytes come, and whatever comes after them.
TEST(HttpRequestTest, EverySplitOfTheBytesIsTheSameRequest) {
  const std::string bytes = "GET /a HTTP/1.1\r\nHost: h\r\nAccept: x\r\n\r\n";
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    HttpReader reader;
    EXPECT_EQ(status_of(reader.take(bytes.substr(0, at))), 0) << at;
    EXPECT_EQ(status_of(reader.take(bytes.substr(at) + "GET /b")), 200) << at;
  }
  HttpReader reader;
  for (std::size_t at = 0; at + 1 < bytes.size(); ++at)
    EXPECT_EQ(status_of(reader.take(bytes.substr(at, 1))), 0) << at;
  EXPECT_EQ(status_of(reader.take(bytes.substr(bytes.size() - 1))), 200);
}

TEST(HttpRequestTest, WhatTwoReadersCouldTakeDifferentlyIsRefused) {
  const std::string line = "GET / HTTP/1.1\r\n";
  struct Case {
    int status;
    std::string bytes;
  };
  for (const auto& [status, bytes] :
       std::vector<Case>{{405, std::string("PUT / HTTP/1.1\r\n") + kHost + "\r\n"},
                         {405, std::string("OPTIONS / HTTP/1.1\r\n") + kHost + "\r\n"},
                         {413, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"},
                         {400, line + kHost + "Origin: a\r\nOrigin: a\r\n\r\n"},
                         {400, line + kHost + "Authorization: a\r\nauthorization: b\r\n\r\n"},
                         {405, std::string("CONNECT /x HTTP/1.1\r\n") + kHost + "\r\n"},
                         {400, std::string("get / HTTP/1.1\r\n") + kHost + "\r\n"},
                         {505, std::string("GET / HTTP/2.0\r\n") + kHost + "\r\n"},
                         {400, std::string("GET / HTTQ/1.1\r\n") + kHost + "\r\n"},
                         {400, std::string("GET /\r\n") + kHost + "\r\n"},
                         {400, std::string("GET  / HTTP/1.1\r\n") + kHost + "\r\n"},
                         {400, std::string("GET / HTTP/1.1 \r\n") + kHost + "\r\n"},
                         {400, std::string(" GET / HTTP/1.1\r\n") + kHost + "\r\n"},
                         {400, std::string("GET http:///x HTTP/1.1\r\n") + kHost + "\r\n"},
                         {400, std::string("GET http://a@h/ HTTP/1.1\r\n") + kHost + "\r\n"},
                         {400, std::string("GET https://h/ HTTP/1.1\r\n") + kHost + "\r\n"},
                         {400, "GET http://h/ HTTP/1.1\r\n\r\n"},
                         {400, std::string("GET * HTTP/1.1\r\n") + kHost + "\r\n"},
                         {400, std::string("GET /#x HTTP/1.1\r\n") + kHost + "\r\n"},
                         {400, std::string("GET /\xc3\xa9 HTTP/1.1\r\n") + kHost + "\r\n"},
                         {400, std::string("GET /\x01 HTTP/1.1\r\n") + kHost + "\r\n"},
                         {400, line + "\r\n"},
                         {400, line + kHost + kHost + "\r\n"},
                         {400, line + kHost + "No colon\r\n\r\n"},
                         {400, line + kHost + ": empty\r\n\r\n"},
                         {400, line + kHost + "Name : x\r\n\r\n"},
                         {400, line + kHost + "A: x\r\n folded\r\n\r\n"},
                         {400, line + kHost + "A: x\ry\r\n\r\n"},
                         {400, line + kHost + "A: x\ny\r\n\r\n"},
                         {400, line + kHost + std::string("A: \0\r\n\r\n", 8)},
                         {400, "GET / HTTP/1.1\n"},
                         {413, line + kHost + "Content-Length: 5\r\n\r\nhello"},
                         {413, line + kHost + "Content-Length: 0\r\nContent-Length: 00\r\n\r\n"},
                         {413, line + kHost + "Transfer-Encoding: chunked\r\n\r\n"}})
    EXPECT_EQ(status_of(bytes), status) << bytes;
}

TEST(HttpRequestTest, WhatIsNoHttpIsRefusedAtOnce) {
  EXPECT_EQ(status_of(std::string("\x16\x03\x01\x02", 4)), 400) << "TLS";
  EXPECT_EQ(status_of(std::string("\0\0", 2)), 400);
  EXPECT_EQ(status_of("AVERYLONGMETHODINDEED"), 400);
  EXPECT_EQ(status_of("\r\n"), 400);
  EXPECT_EQ(status_of(""), 0);
}

TEST(HttpRequestTest, NothingGrowsWithoutALimit) {
  HttpReader reader;
  int status = status_of(reader.take("GET /"));
  std::size_t sent = 5;
  for (; status == 0 && sent < 100'000; ++sent)
    status = status_of(reader.take("a"));
  EXPECT_EQ(status, 431);
  EXPECT_EQ(sent, HttpReader::kLongest + 1);
  EXPECT_EQ(status_of("GET /" + std::string(1 << 20, 'a')), 431);
  const auto with_headers = [](int count) {
    std::string bytes = "GET / HTTP/1.1\r\n";
    bytes += kHost;
    for (int i = 1; i < count; ++i)
      bytes += "A: b\r\n";
    return bytes + "\r\n";
  };
  EXPECT_EQ(status_of(with_headers(HttpReader::kMostHeaders)), 200);
  EXPECT_EQ(status_of(with_headers(HttpReader::kMostHeaders + 1)), 431);
  // The last that fits.
  std::string longest = "GET / HTTP/1.1\r\nHost: h\r\nA: ";
  longest += std::string(HttpReader::kLongest - longest.size() - 4, 'x') + "\r\n\r\n";
  EXPECT_EQ(status_of(longest), 200);
  EXPECT_EQ(status_of(longest.insert(longest.size() - 4, "x")), 431);
}

}  // namespace
}  // namespace drun::launcher
