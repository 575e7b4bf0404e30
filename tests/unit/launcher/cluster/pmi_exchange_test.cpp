// A launcher that serves PMI-1, played by the test, and the tasks that talk to it.
#include "launcher/cluster/pmi_exchange.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"

namespace drun::launcher::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

struct Told {
  Result<PmiAnswer> answer;
  std::vector<std::string> asked;
  bool closed = false;
};

// `answers`: to the task's lines, one after the other; then the launcher goes.
Told conversation(bool first, const std::vector<std::string>& answers, bool goes = true,
                  std::chrono::milliseconds patience = std::chrono::seconds(20)) {
  int pair[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  FileDescriptor launcher(pair[0]);
  Told told;
  std::thread server([&] {
    std::string line;
    std::size_t next = 0;
    char byte = 0;
    while ((next < answers.size() || !goes) && ::read(launcher.get(), &byte, 1) == 1) {
      if (byte != '\n') {
        line += byte;
        continue;
      }
      told.asked.push_back(std::exchange(line, ""));
      if (next == answers.size()) continue;
      // In two pieces. The task may have gone, if it does not like the first.
      const std::string& answer = answers[next++];
      const auto half = answer.size() / 2;
      (void)::send(launcher.get(), answer.data(), half, MSG_NOSIGNAL);
      (void)::send(launcher.get(), answer.data() + half, answer.size() - half, MSG_NOSIGNAL);
    }
    if (goes) launcher.reset();
  });
  told.answer = exchange_by_pmi(pair[1], first, "n1", in(patience));
  told.closed = ::fcntl(pair[1], F_GETFD) < 0;
  server.join();
  return told;
}

const std::vector<std::string> kAnswers{
    "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
    "cmd=my_kvsname kvsname=kvs_17_0\n",
    "cmd=put_result rc=0 msg=success\n",
    "cmd=barrier_out\n",
    "cmd=get_result rc=0 msg=success value=n1\n",
    "cmd=finalize_ack\n",
};

TEST(PmiExchangeTest, RankZeroTellsAllOthers) {
  const Told zero = conversation(true, kAnswers);
  ASSERT_TRUE(zero.answer) << zero.answer.error().what();
  EXPECT_EQ(zero.answer->text, "n1");
  EXPECT_EQ(zero.answer->space, "kvs_17_0");
  EXPECT_TRUE(zero.closed);
  EXPECT_THAT(zero.asked,
              ElementsAre("cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_my_kvsname",
                          "cmd=put kvsname=kvs_17_0 key=drun-host value=n1", "cmd=barrier_in",
                          "cmd=get kvsname=kvs_17_0 key=drun-host", "cmd=finalize"));
  auto answers = kAnswers;
  answers.erase(answers.begin() + 2);
  const Told other = conversation(false, answers);
  ASSERT_TRUE(other.answer) << other.answer.error().what();
  EXPECT_EQ(other.answer->text, "n1");
  EXPECT_EQ(other.asked.size(), 5U);
}

TEST(PmiExchangeTest, WhatIsNoAnswerIsAnError) {
  const auto why = [](std::size_t at, const std::string& answer) {
    auto answers = kAnswers;
    answers.resize(at);
    if (!answer.empty()) answers.push_back(answer);
    const Told told = conversation(true, answers);
    EXPECT_FALSE(told.answer);
    return told.answer.error().what();
  };
  EXPECT_EQ(why(3, ""), "PMI_FD: the launcher has closed it");
  EXPECT_EQ(why(0, "cmd=response_to_init rc=-1\n"),
            "PMI_FD: 'cmd=response_to_init rc=-1' is no answer to cmd=init");
  EXPECT_EQ(why(3, "cmd=\x1b[2J\n"), "PMI_FD: 'cmd=\\x1b[2J' is no answer to cmd=barrier_in");
  EXPECT_THAT(why(4, std::string(10'000, 'x')), HasSubstr("a line of more than"));
  const Told late = conversation(true, {kAnswers[0]}, false, std::chrono::milliseconds(20));
  EXPECT_EQ(late.answer.error().what(), "PMI_FD: not all tasks of the launcher came in time");
  EXPECT_EQ(exchange_by_pmi(1'000'000, true, "n1", in(std::chrono::seconds(1))).error().what(),
            "PMI_FD: this descriptor is not open");
}

}  // namespace
}  // namespace drun::launcher::cluster
