#include "hang/nccl_ras.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/scripted_peer.hpp"

namespace drun::hang {
namespace {

using std::chrono::milliseconds;
using test::ScriptedConnection;
using test::ScriptedPeer;
using testing::HasSubstr;

constexpr milliseconds kLimit{10'000};
constexpr std::string_view kRequest =
    "CLIENT PROTOCOL 2\nTIMEOUT 5\nSET FORMAT json\nVERBOSE STATUS\n";

std::string refusal(std::string_view answer) {
  const ScriptedPeer service([&](ScriptedConnection& connection) {
    (void)connection.read(kRequest.size());
    connection.write(answer);
  });
  const auto status = ask_ras(service.endpoint(), kLimit);
  return status ? "an answer" : status.error().what();
}

TEST(AskRasTest, TheAnswerComesBehindTheRepliesInPieces) {
  std::string request;
  const ScriptedPeer service([&](ScriptedConnection& connection) {
    request = connection.read(kRequest.size());
    for (const char byte : std::string_view("SERVER PROTOCOL 2\nOK\nOK\n"
                                            R"({"communicators": [{"size": 7}]})"))
      connection.write(std::string(1, byte));
  });
  const auto status = ask_ras(service.endpoint(), kLimit);
  ASSERT_TRUE(status) << status.error().what();
  ASSERT_EQ(status->size(), 1U);
  EXPECT_EQ(status->front().size, 7);
  EXPECT_EQ(request, kRequest);
}

// Older NCCL has no JSON, and anybody may listen at that port.
TEST(AskRasTest, WhoSpeaksSomethingElseIsNotUnderstood) {
  EXPECT_THAT(refusal("SERVER PROTOCOL 2\nOK\nERROR: Unknown command SET FORMAT json\n"),
              HasSubstr("Unknown command"));
  EXPECT_EQ(refusal("SSH-2.0-\x1b[31mOpenSSH\n"), R"(it says 'SSH-2.0-\x1b[31mOpenSSH')");
  EXPECT_THAT(refusal("SERVER PROTOCOL 2\nOK\nOK\nrubbish"), HasSubstr("no JSON"));
  EXPECT_THAT(refusal(""), HasSubstr("does not speak the protocol"));
}

// Any user may listen at a port, and say what would have the job fail.
TEST(AskRasTest, AnotherUsersServiceIsNotBelieved) {
  constexpr uid_t kNobody = 65'534;
  const ScriptedPeer::Script script = [](ScriptedConnection& connection) {
    (void)connection.read(kRequest.size());
    connection.write("SERVER PROTOCOL 2\nOK\nOK\n{\"communicators\": []}");
  };
  if (::seteuid(kNobody) != 0) GTEST_SKIP() << "only root can make another user's socket";
  const ScriptedPeer others(script);
  ASSERT_EQ(::seteuid(0), 0);
  const auto status = ask_ras(others.endpoint(), kLimit);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what(), HasSubstr("user 65534 listens there"));
  const ScriptedPeer roots(script);
  ASSERT_EQ(::seteuid(kNobody), 0);
  EXPECT_TRUE(ask_ras(roots.endpoint(), kLimit));
  EXPECT_TRUE(ask_ras(others.endpoint(), kLimit));
  ASSERT_EQ(::seteuid(0), 0);
}

TEST(AskRasTest, ANameIsLookedUp) {
  const ScriptedPeer service([](ScriptedConnection& connection) {
    (void)connection.read(kRequest.size());
    connection.write("SERVER PROTOCOL 2\nOK\nOK\n{\"communicators\": []}");
  });
  EXPECT_TRUE(ask_ras({"localhost", service.endpoint().port}, kLimit));
}

TEST(AskRasTest, WhoGivesNoAnswerIsNotWaitedForLongerThanTheLimit) {
  const ScriptedPeer service([](ScriptedConnection& connection) { connection.wait_for_close(); });
  const auto status = ask_ras(service.endpoint(), milliseconds(200));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), std::errc::timed_out);
}

TEST(AskRasTest, NobodyThereIsAnErrorAtOnce) {
  Endpoint free;
  {
    const ScriptedPeer service([](ScriptedConnection&) {});
    free = service.endpoint();
  }
  EXPECT_FALSE(ask_ras(free, kLimit));
  EXPECT_FALSE(ask_ras({"no name at all", 28'028}, kLimit));
}

}  // namespace
}  // namespace drun::hang
