#include "launcher/views/status_page.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <asio/buffer.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.hpp"
#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using drun::test::kPatience;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;

constexpr const char* kToken = "the-right-token-of-all";

class StatusPageTest : public testing::Test {
 protected:
  StatusPageTest() {
    log::configure("drun", log::Level::Info);
    log::redirect([this](std::string line) { said_.push_back(std::move(line)); });
    options_.status_socket = path_;
  }
  ~StatusPageTest() override {
    log::redirect({});
    log::configure("drun", log::Level::Warning);
  }
  void use_token() {
    options_.token = secure::Token::from(kToken).value();
    options_.tls = secure::TlsContext::of(*options_.token).value();
  }
  std::unique_ptr<StatusPage> page() {
    return std::make_unique<StatusPage>(
        io_, options_, "node7", [] { return status::AgentStatus(); }, events_,
        [this](PageStacks::Done done) { looks_.push_back(std::move(done)); });
  }
  bool until(const std::function<bool()>& condition) {
    const auto deadline = Clock::now() + kPatience;
    io_.restart();
    while (!condition())
      if (io_.run_one_until(deadline) == 0) return false;
    return true;
  }
  bool until_said(const std::string& what) {
    return until([&] { return !said_.empty() && said_.back().find(what) != std::string::npos; });
  }
  struct Caller {
    explicit Caller(asio::io_context& io) : socket(io) {}
    asio::local::stream_protocol::socket socket;
    std::string request;
    std::string answer;
    bool over = false;
  };
  std::shared_ptr<Caller> call(const std::string& line, const std::string& headers = "") {
    auto caller = std::make_shared<Caller>(io_);
    caller->socket.connect(asio::local::stream_protocol::endpoint(path_));
    caller->request = line + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
    asio::write(caller->socket, asio::buffer(caller->request));
    asio::async_read(caller->socket, asio::dynamic_buffer(caller->answer),
                     [caller](asio::error_code, std::size_t) { caller->over = true; });
    return caller;
  }
  // What comes for it; empty: nothing does.
  std::string answer(const std::string& line) {
    const auto caller = call(line);
    return until([&] { return caller->over; }) ? caller->answer : "";
  }

  const drun::test::TemporaryDirectory folder_;
  const std::string path_ = folder_.file("page");
  asio::io_context io_{1};
  Options options_;
  EventMemory events_;
  std::vector<PageStacks::Done> looks_;
  std::vector<std::string> said_;
};

TEST_F(StatusPageTest, ItIsServedWhereTheUserWantsIt) {
  auto page = this->page();
  page->open();
  ASSERT_TRUE(until_said("the job's status is at unix:" + path_));
  EXPECT_THAT(answer("GET /healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer("GET /status.json"), HasSubstr("application/json"));
  EXPECT_THAT(answer("GET /nothing"), StartsWith("HTTP/1.1 404"));
  page->close();
  io_.run();
  page.reset();
  EXPECT_FALSE(std::filesystem::exists(path_)) << "nothing is left behind";
}

TEST_F(StatusPageTest, OnlyWithATokenAreThereStacks) {
  auto page = this->page();
  page->open();
  ASSERT_TRUE(until_said(path_));
  EXPECT_THAT(answer("POST /stacks"), StartsWith("HTTP/1.1 405"));
  page.reset();
  io_.restart();
  io_.poll();
  use_token();
  page = this->page();
  said_.clear();
  page->open();
  ASSERT_TRUE(until_said(path_));
  EXPECT_THAT(answer("POST /stacks"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(answer("POST /healthz"), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(looks_, IsEmpty());
  const auto caller =
      call("POST /stacks", "Authorization: Bearer " + options_.tls->page_key() + "\r\n");
  ASSERT_TRUE(until([&] { return looks_.size() == 1; }));
  looks_.front()(std::string("rank 0 waits"));
  ASSERT_TRUE(until([&] { return caller->over; }));
  EXPECT_THAT(caller->answer, HasSubstr("rank 0 waits"));
  page.reset();
}

TEST_F(StatusPageTest, APlaceThatIsTakenIsAWarning) {
  const auto first = page();
  first->open();
  ASSERT_TRUE(until_said(path_));
  const auto second = page();
  second->open();
  ASSERT_TRUE(until_said("without a status page"));
  EXPECT_THAT(said_.back(), StartsWith("drun: warning: --status-listen: cannot "));
  second->close();
  EXPECT_THAT(answer("GET /healthz"), HasSubstr("200")) << "the first still has it";
}

TEST_F(StatusPageTest, OfTheAgentsOfAMachineAnotherTakesThePlaceThatIsFree) {
  options_.local_node = 0;
  auto first = page();
  first->open();
  ASSERT_TRUE(until_said(path_));
  Options other = options_;
  other.local_node = 1;
  StatusPage second(
      io_, other, "node7", [] { return status::AgentStatus(); }, events_,
      [](const PageStacks::Done&) {});
  second.open();
  said_.clear();
  io_.restart();
  io_.run_for(std::chrono::milliseconds(1'200));  // once a second it tries, and says nothing of it
  EXPECT_THAT(said_, IsEmpty());
  first.reset();
  ASSERT_TRUE(until_said("the job's status is at"));
  EXPECT_THAT(answer("GET /healthz"), HasSubstr("200"));
  second.close();
}

TEST_F(StatusPageTest, OfTheAgentsOfAMachineOnlyTheFirstTakesAnyPort) {
  options_.status_socket.clear();
  options_.status_endpoint = Endpoint{"127.0.0.1", 0};
  options_.local_node = 1;
  const auto second = page();
  second->open();
  io_.run();
  EXPECT_THAT(said_, IsEmpty());
  options_.local_node = 0;
  const auto first = page();
  first->open();
  ASSERT_TRUE(until_said("the job's status is at http://127.0.0.1:"));
  first->close();
}

TEST_F(StatusPageTest, ATokenThatANetworkCanReadIsAWarning) {
  options_.status_socket.clear();
  use_token();
  options_.status_endpoint = Endpoint{"127.0.0.1", 0};
  const auto own = page();
  own->open();
  ASSERT_TRUE(until_said("the job's status is at"));
  own->close();
  options_.status_endpoint = Endpoint{"0.0.0.0", 0};
  const auto all = page();
  all->open();
  ASSERT_TRUE(until_said("who can read the network reads a key"));
  all->close();
}

}  // namespace
}  // namespace drun::launcher
