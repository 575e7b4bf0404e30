#include "launcher/job_stacks/page_stacks.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

constexpr const char* kRight = "the-right-token-of-all";
constexpr const char* kWrong = "the-wrong-token-of-all";

class PageStacksTest : public ::testing::Test {
 protected:
  using Time = std::chrono::steady_clock::time_point;
  using Got = std::shared_ptr<std::optional<HttpAnswer>>;

  static HttpRequest post(const std::string& authorization) {
    HttpRequest request;
    request.post = true;
    request.path = PageStacks::kPath;
    request.host = "localhost:9000";
    request.authorization = authorization;
    return request;
  }
  Got ask(const HttpRequest& request) {
    auto got = std::make_shared<std::optional<HttpAnswer>>();
    stacks_.serve(
        request, [got](HttpAnswer answer) { *got = std::move(answer); }, now_);
    return got;
  }
  Got ask() { return ask(post(std::string("Bearer ") + kRight)); }
  // 0: none yet.
  static int status(const Got& got) { return *got ? (*got)->status : 0; }

  asio::io_context io_{1};
  Time now_ = std::chrono::steady_clock::now();
  std::vector<PageStacks::Done> looks_;
  const secure::Token token_ = secure::Token::from(kRight).value();
  PageStacks stacks_{io_, token_, false,
                     [this](PageStacks::Done done) { looks_.push_back(std::move(done)); }};
};

TEST_F(PageStacksTest, WhoHasTheTokenGetsTheStacks) {
  const Got got = ask();
  EXPECT_EQ(status(got), 0);
  ASSERT_EQ(looks_.size(), 1U);
  looks_[0](std::string("job j: <b>main</b>\n"));
  ASSERT_EQ(status(got), 200);
  EXPECT_EQ(*(*got)->body, "job j: <b>main</b>\n");
  EXPECT_EQ((*got)->type, "text/plain; charset=utf-8");
}

TEST_F(PageStacksTest, NobodyElseStartsALook) {
  HttpRequest get = post(std::string("Bearer ") + kRight);
  get.post = false;
  const Got seen = ask(get);
  EXPECT_EQ(status(seen), 405);
  EXPECT_EQ((*seen)->headers, "Allow: POST\r\n");
  for (const char* origin : {"http://evil.example", "null", "http://localhost:9001"}) {
    HttpRequest foreign = post(std::string("Bearer ") + kRight);
    foreign.origin = origin;
    EXPECT_EQ(status(ask(foreign)), 403) << origin;
  }
  for (const std::string wrong : {"", "Bearer", "Basic dXNlcjpwYXNz", kRight}) {
    const Got none = ask(post(wrong));
    EXPECT_EQ(status(none), 401) << wrong;
    EXPECT_EQ((*none)->headers, "WWW-Authenticate: Bearer\r\n");
  }
  EXPECT_EQ(status(ask(post(std::string("Bearer ") + kWrong))), 401);
  EXPECT_TRUE(looks_.empty());
  HttpRequest own = post(std::string("Bearer ") + kRight);
  own.origin = "http://localhost:9000";
  EXPECT_EQ(status(ask(own)), 0);
  EXPECT_EQ(looks_.size(), 1U);
}

TEST_F(PageStacksTest, WhoGuessesIsSlowedDown) {
  for (int i = 0; i < secure::TokenGate::kFree; ++i)
    EXPECT_EQ(status(ask(post(std::string("Bearer ") + kWrong))), 401);
  const Got later = ask();
  EXPECT_EQ(status(later), 429) << "the right one, too";
  EXPECT_EQ((*later)->headers, "Retry-After: 2\r\n");
  EXPECT_EQ(status(ask(post(""))), 401) << "that is no guess";
  EXPECT_TRUE(looks_.empty());
  now_ += secure::TokenGate::kEach;
  EXPECT_EQ(status(ask()), 0);
  EXPECT_EQ(looks_.size(), 1U);
}

TEST_F(PageStacksTest, WhoAsksMeanwhileGetsTheSame) {
  const Got first = ask();
  const Got second = ask();
  ASSERT_EQ(looks_.size(), 1U);
  looks_[0](std::string("stacks"));
  EXPECT_EQ(status(first), 200);
  EXPECT_EQ(status(second), 200);
  const Got third = ask();
  ASSERT_EQ(looks_.size(), 2U);
  looks_[1](Error(std::make_error_code(std::errc::timed_out), "no workers run"));
  ASSERT_EQ(status(third), 503);
  EXPECT_EQ(*(*third)->body, "no workers run\n");
}

TEST_F(PageStacksTest, ALookThatHangsIsGivenUp) {
  now_ -= PageStacks::kLimit;  // it is over when the loop runs
  const Got got = ask();
  io_.run();
  EXPECT_EQ(status(got), 503);
  io_.restart();
  now_ += PageStacks::kLimit + std::chrono::hours(1);
  const Got next = ask();
  ASSERT_EQ(looks_.size(), 2U);
  looks_[0](std::string("too late"));
  EXPECT_EQ(status(next), 0);
  looks_[1](std::string("stacks"));
  EXPECT_EQ(status(next), 200);
}

TEST_F(PageStacksTest, OnceItIsCancelledNobodyIsToldAnything) {
  const Got got = ask();
  stacks_.cancel();
  looks_[0](std::string("stacks"));
  io_.run();
  EXPECT_EQ(status(got), 0);
}

}  // namespace
}  // namespace drun::launcher
