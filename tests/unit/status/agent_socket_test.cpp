#include "status/agent_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"

namespace drun::status {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// As Linux prints it; the second line of an agent's is a caller that waits.
std::string table(const std::vector<std::string>& names) {
  std::string text = "Num       RefCount Protocol Flags    Type St Inode Path\n";
  for (const auto& name : names)
    text += "0000000000000000: 00000002 00000000 00010000 0001 01 101 @" + name +
            "\n0000000000000000: 00000002 00000000 00000000 0001 02 0 @" + name + "\n";
  return text +
         "0000000000000000: 00000002 00000000 00010000 0001 01 104 /run/drun/agent/1000/d/e\n"
         "0000000000000000: 00000003 00000000 00000000 0001 03 105\n";
}

TEST(AgentSocketTest, AUserFindsTheirOwnAndRootAll) {
  const std::string train = new_socket_name(1000, "train");
  const std::string other = new_socket_name(1000, "other");
  const std::string hundred = new_socket_name(100, "train");
  const std::string all = table({train, other, hundred, "else"});
  EXPECT_THAT(sockets_in(all, {1000, "train"}), ElementsAre(train));
  EXPECT_THAT(sockets_in(all, {1000, {}}), UnorderedElementsAre(train, other));
  EXPECT_THAT(sockets_in(all, {100, {}}), ElementsAre(hundred));
  EXPECT_THAT(sockets_in(all, {7, {}}), IsEmpty());
  EXPECT_THAT(sockets_in(all, {0, {}}), UnorderedElementsAre(train, other, hundred));
  EXPECT_THAT(sockets_in(all, {0, "train"}), UnorderedElementsAre(train, hundred));
  EXPECT_THAT(sockets_in("", {0, {}}), IsEmpty());
}

TEST(AgentSocketTest, AnAgentWhoseCallersAreListedElsewhereIsFoundOnce) {
  const std::string one = new_socket_name(1000, "train");
  const std::string other = new_socket_name(1000, "train");
  EXPECT_THAT(sockets_in(table({one, other, one, other}), {1000, {}}),
              UnorderedElementsAre(one, other));
}

TEST(AgentSocketTest, EachAgentHasANameOfItsOwnThatAnAddressTakes) {
  const std::string name = new_socket_name(4'294'967'294, std::string(1'000, 'x'));
  EXPECT_TRUE(name.starts_with("drun/agent/4294967294/")) << name;
  EXPECT_NE(name, new_socket_name(4'294'967'294, std::string(1'000, 'x')));
  EXPECT_LT(name.size(), 107U);
}

// Of the stacks and the job: what root runs is not for others to see.
TEST(AgentSocketTest, AnAgentTellsItsOwnUserAndRoot) {
  EXPECT_TRUE(may_ask(1000, 1000));
  EXPECT_TRUE(may_ask(1000, 0));
  EXPECT_TRUE(may_ask(0, 0));
  EXPECT_FALSE(may_ask(1000, 1001));
  EXPECT_FALSE(may_ask(0, 65534));
  EXPECT_FALSE(may_ask(0, static_cast<uid_t>(-1)));
}

TEST(AgentSocketTest, RootBelievesTheAgentsOfAll) {
  EXPECT_TRUE(may_answer(1000, 1000));
  EXPECT_TRUE(may_answer(1000, 0));
  EXPECT_TRUE(may_answer(0, 65534));
  EXPECT_FALSE(may_answer(1000, 1001));
  EXPECT_FALSE(may_answer(1000, static_cast<uid_t>(-1)));
}

TEST(AgentSocketTest, NobodyThereIsAnError) {
  const auto answer =
      ask(new_socket_name(1, "j"), std::chrono::steady_clock::now() + std::chrono::seconds(5));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().what(), "connect: Connection refused");
}

TEST(AgentSocketTest, KeysHaveNamesOfTheirOwn) {
  const std::string train = new_key_socket_name(1000, "train");
  const std::string other = new_key_socket_name(1000, "other");
  const std::string all = table({train, new_socket_name(1000, "train"), other});
  EXPECT_THAT(key_sockets_in(all, {1000, "train"}), ElementsAre(train));
  EXPECT_THAT(key_sockets_in(all, {1000, {}}), UnorderedElementsAre(train, other));
  EXPECT_THAT(key_sockets_in(all, {100, {}}), IsEmpty());
  EXPECT_THAT(sockets_in(all, {1000, "other"}), IsEmpty());
}

// A key, and the place beside it, are believed: also root takes them from nobody else.
TEST(AgentSocketTest, RootTakesKeysFromRootAlone) {
  const std::string own = new_key_socket_name(0, "train");
  const std::string all = table({own, new_key_socket_name(1000, "train")});
  EXPECT_THAT(key_sockets_in(all, {0, {}}), ElementsAre(own));
  EXPECT_THAT(key_sockets_in(all, {0, "train"}), ElementsAre(own));
}

// Listens at such a name.
FileDescriptor listener_at(const std::string& name, int waiting = 16) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(socket.get(), waiting), 0);
  return socket;
}

// The silent ones answer only once the other has been asked, which is the last.
TEST(AgentSocketTest, ThoseThatStandStillHideNoOther) {
  std::vector<std::string> names;
  std::vector<FileDescriptor> listeners;
  for (int i = 0; i < 4; ++i) {
    names.push_back(new_key_socket_name(::geteuid(), "train"));
    listeners.push_back(listener_at(names.back()));
  }
  std::thread agents([&] {
    FileDescriptor last(::accept4(listeners.back().get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_EQ(::send(last.get(), "last", 4, MSG_NOSIGNAL), 4);
    last.reset();
    for (std::size_t i = 0; i + 1 < listeners.size(); ++i) {
      const FileDescriptor each(::accept4(listeners[i].get(), nullptr, nullptr, SOCK_CLOEXEC));
      EXPECT_EQ(::send(each.get(), "late", 4, MSG_NOSIGNAL), 4);
    }
  });
  const auto answers = ask_all(names, std::chrono::steady_clock::now() + std::chrono::seconds(60));
  agents.join();
  ASSERT_EQ(answers.size(), names.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i]) << answers[i].error().what();
    EXPECT_EQ(*answers[i], i + 1 < answers.size() ? "late" : "last");
  }
}

// Any user may listen at names that look like this user's, as often as they like.
TEST(AgentSocketTest, ThousandsThatLetNobodyInTakeNoThreads) {
  const std::string full_name = new_key_socket_name(::geteuid(), "train");
  FileDescriptor full = listener_at(full_name, 0);
  const auto connected = [&] {
    FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(full_name.begin(), full_name.end(), address.sun_path + 1);
    const auto size =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + full_name.size());
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
      socket.reset();
    return socket;
  };
  std::vector<FileDescriptor> those_who_wait;
  while (FileDescriptor next = connected())
    those_who_wait.push_back(std::move(next));
  std::vector<std::string> names(500, full_name);
  names.push_back(new_key_socket_name(::geteuid(), "train"));
  FileDescriptor good = listener_at(names.back());
  std::ptrdiff_t threads = 0;
  std::thread agent([&] {
    FileDescriptor caller(::accept4(good.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    threads = std::distance(begin(tasks), end(tasks));
    EXPECT_EQ(::send(caller.get(), "key", 3, MSG_NOSIGNAL), 3);
    full.reset();
  });
  const auto answers = ask_all(names, std::chrono::steady_clock::now() + std::chrono::seconds(60));
  agent.join();
  EXPECT_LT(threads, 100);
  ASSERT_TRUE(answers.back()) << answers.back().error().what();
  EXPECT_EQ(*answers.back(), "key");
  EXPECT_EQ(answers.front().error().what(), "connect: Connection refused");
}

TEST(AgentSocketTest, AnotherUsersSocketIsNotWaitedFor) {
  const std::string name = new_key_socket_name(::geteuid() + 1, "train");
  const FileDescriptor silent = listener_at(name);
  const auto answer = ask(name, std::chrono::steady_clock::now() + std::chrono::hours(1));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().what(), "another user's process");
}

TEST(AgentSocketTest, MoreThanAreAskedAtATimeAreAskedAll) {
  const std::string name = new_key_socket_name(::geteuid(), "train");
  const FileDescriptor listener = listener_at(name);
  constexpr int kMany = 300;
  const std::vector<std::string> names(kMany, name);
  std::thread agent([&] {
    for (int i = 0; i < kMany; ++i) {
      const FileDescriptor each(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      EXPECT_EQ(::send(each.get(), "key", 3, MSG_NOSIGNAL), 3);
    }
  });
  const auto answers = ask_all(names, std::chrono::steady_clock::now() + std::chrono::seconds(60));
  agent.join();
  for (const auto& answer : answers)
    ASSERT_TRUE(answer && *answer == "key");
}

TEST(AgentSocketTest, AProcessOfTheSameContainerMayKnow) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  EXPECT_TRUE(may_know(ends[0]));
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_FALSE(may_know(-1)) << "nobody is there";
}

}  // namespace
}  // namespace drun::status
