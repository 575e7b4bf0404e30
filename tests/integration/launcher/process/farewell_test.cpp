// The farewell: said for an agent that was killed, by whoever is left, when its workers are gone.
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "launcher/process/descendants.hpp"
#include "launcher/process/excuse.hpp"
#include "launcher/process/guardian_loop.hpp"
#include "launcher/process/wire.hpp"
#include "secure/tls_engine.hpp"
#include "support/guardian_driver.hpp"
#include "support/tls_peer.hpp"

namespace drun::process::test {
namespace {

// Bytes that a C string could not hold.
const std::string kWords("\xD5 the end\0 of it", 16);

// Where the farewell is said.
class Listener {
 public:
  explicit Listener(int backlog = 8) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    socklen_t size = sizeof address_;
    if (::bind(socket_.get(), address, size) != 0 || ::listen(socket_.get(), backlog) != 0 ||
        ::getsockname(socket_.get(), address, &size) != 0)
      std::abort();
  }

  [[nodiscard]] Farewell farewell() const { return {address(), kWords, {}}; }
  [[nodiscard]] std::string address() const {
    return {reinterpret_cast<const char*>(&address_), sizeof address_};
  }
  [[nodiscard]] FileDescriptor dial() const {
    FileDescriptor caller(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(caller.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_) != 0)
      std::abort();
    return caller;
  }
  [[nodiscard]] bool was_called() const {
    pollfd entry{socket_.get(), POLLIN, 0};
    return ::poll(&entry, 1, 0) > 0;
  }
  // Waits for a caller, and does not close the connection before the caller's end of it is closed.
  [[nodiscard]] FileDescriptor await_call() const {
    pollfd entry{socket_.get(), POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(kPatience.count())) <= 0) return {};
    return FileDescriptor(::accept(socket_.get(), nullptr, nullptr));
  }
  // Waits for a caller, and closes with what it says unread: a reset.
  void break_call() const {
    const auto call = await_call();
    (void)eventually([&] {
      char byte = 0;
      return ::recv(call.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
    });
  }

 private:
  FileDescriptor socket_;
  sockaddr_in address_{};
};

enum class Ending { Lives, Drops, TakesBackAndDrops };

struct Job {
  pid_t agent = 0;
  pid_t guardian = 0;
  pid_t worker = 0;
};

// The agent is a process of its own, with one worker that ignores SIGTERM.
Job start_agent(const Farewell& farewell, Ending ending) {
  Pipe report;
  Job job;
  job.agent = ::fork();
  if (job.agent != 0) {
    report.write.reset();
    job.guardian = std::atoi(read_line(report.read.get()).c_str());
    job.worker = std::atoi(read_line(report.read.get()).c_str());
    return job;
  }
  {
    Driver driver;
    driver.guardian.say_at_end({"", "replaced", {}});
    driver.guardian.say_at_end(farewell);
    Pipe out;
    const std::string worker = driver.start(1, "trap '' TERM; echo $$; exec sleep 1000", out);
    if (ending == Ending::TakesBackAndDrops) driver.guardian.say_at_end({});
    const std::string told = std::to_string(driver.guardian.pid()) + "\n" + worker + "\n";
    if (::write(report.write.get(), told.data(), told.size()) < 0) ::_exit(1);
    if (ending == Ending::Lives) ::pause();
  }
  ::_exit(0);
}

// Where nobody listens.
Farewell nobody() {
  const Listener closed;
  return closed.farewell();
}

class FarewellTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  void TearDown() override {
    ASSERT_TRUE(kill_descendants(kPatience, [](const Reaped&) {}));
  }
  // Everything that the agent has started is gone, its helpers too.
  static bool all_gone() {
    return eventually([] { return !reap_children([](const Reaped&) {}); });
  }
  void expect_words_of_the_dead(const Job& job) const {
    const auto call = listener.await_call();
    ASSERT_TRUE(call) << "nothing was said";
    EXPECT_TRUE(gone(job.worker) || !alive(job.worker)) << "said before the worker was gone";
    EXPECT_EQ(read_all(call.get()), kWords);
  }

  Listener listener;
};

TEST_F(FarewellTest, IsSaidForAKilledAgentWhenItsWorkersAreGone) {
  const Job job = start_agent(listener.farewell(), Ending::Lives);
  ::kill(job.agent, SIGKILL);
  expect_words_of_the_dead(job);
  EXPECT_TRUE(all_gone());
}

TEST_F(FarewellTest, IsSaidByTheGuardianIfTheWatchdogIsGone) {
  const Job job = start_agent(listener.farewell(), Ending::Lives);
  const pid_t watchdog = parent_of(job.guardian);
  ::kill(watchdog, SIGKILL);
  ASSERT_TRUE(eventually([&] { return !alive(watchdog); }));
  EXPECT_FALSE(listener.was_called()) << "the agent lives";
  ::kill(job.agent, SIGKILL);
  expect_words_of_the_dead(job);
  EXPECT_TRUE(all_gone());
}

TEST_F(FarewellTest, IsSaidByTheWatchdogIfTheGuardianIsGone) {
  const Job job = start_agent(listener.farewell(), Ending::Lives);
  ::kill(job.guardian, SIGKILL);
  ASSERT_TRUE(eventually([&] { return !alive(job.worker); }));
  EXPECT_FALSE(listener.was_called()) << "the agent lives";
  ::kill(job.agent, SIGKILL);
  expect_words_of_the_dead(job);
  EXPECT_TRUE(all_gone());
}

TEST_F(FarewellTest, IsSaidForAnAgentThatLeavesWithoutAWord) {
  const Job job = start_agent(listener.farewell(), Ending::Drops);
  expect_words_of_the_dead(job);
  EXPECT_TRUE(all_gone());
}

// The guardian takes a while until it is ready; it cannot say so to a dead agent.
TEST_F(FarewellTest, IsSaidForAnAgentThatWasKilledBeforeItsGuardianWasReady) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  FileDescriptor ours(ends[0]);
  FileDescriptor theirs(ends[1]);
  const std::string words = wire::encode(listener.farewell());
  ASSERT_EQ(::send(ours.get(), words.data(), words.size(), 0), std::ssize(words));
  ours.reset();
  const Excuse excuse;
  if (::fork() == 0) {
    ::setpgid(0, 0);
    guardian_main(std::move(theirs), {}, {}, ::getppid() + 1, excuse);  // it has no watchdog
  }
  theirs.reset();
  const auto call = listener.await_call();
  ASSERT_TRUE(call) << "nothing was said";
  EXPECT_EQ(read_all(call.get()), kWords);
}

TEST_F(FarewellTest, IsNotSaidIfItWasTakenBack) {
  const Job job = start_agent(listener.farewell(), Ending::TakesBackAndDrops);
  EXPECT_GT(job.worker, 0);
  EXPECT_TRUE(all_gone());
  EXPECT_FALSE(listener.was_called());
}

TEST_F(FarewellTest, LongWordsAreSaidByTheWatchdogToo) {
  Farewell farewell = listener.farewell();
  farewell.bytes = std::string(9'000, 'x');
  const Job job = start_agent(farewell, Ending::Lives);
  ::kill(job.guardian, SIGKILL);
  ASSERT_TRUE(eventually([&] { return !alive(job.worker); }));
  ::kill(job.agent, SIGKILL);
  const auto call = listener.await_call();
  ASSERT_TRUE(call);
  EXPECT_EQ(read_all(call.get()).size(), farewell.bytes.size());
}

// The first is gone. Which of the others is the one to know is not known: one of them never
// answers, and reads it later.
TEST_F(FarewellTest, TheOthersAreToldThoughTheFirstIsGone) {
  const Listener silent;
  Farewell farewell = nobody();
  farewell.others = {{nobody().address, "no"}, {silent.address(), "a"}, {listener.address(), "b"}};
  const Job job = start_agent(farewell, Ending::Lives);
  ::kill(job.agent, SIGKILL);
  auto call = listener.await_call();
  ASSERT_TRUE(call);
  EXPECT_EQ(read_all(call.get()), "b");
  call.reset();  // taken
  EXPECT_TRUE(all_gone());
  const auto late = silent.await_call();
  ASSERT_TRUE(late);
  EXPECT_EQ(read_all(late.get()), "a");
}

TEST_F(FarewellTest, ThereMayBeOthersAndNoFirst) {
  Farewell farewell;
  farewell.others = {{listener.address(), "alone"}};
  const Job job = start_agent(farewell, Ending::Lives);
  ::kill(job.agent, SIGKILL);
  auto call = listener.await_call();
  ASSERT_TRUE(call);
  EXPECT_EQ(read_all(call.get()), "alone");
  call.reset();
  EXPECT_TRUE(all_gone());
}

// It may be lost before it can tell the next one.
TEST_F(FarewellTest, TheOthersAreToldThoughTheFirstHasTakenIt) {
  const Listener other;
  Farewell farewell = listener.farewell();
  farewell.others = {{other.address(), "too"}};
  std::thread reader([this] {
    const auto call = listener.await_call();
    (void)read_all(call.get());
  });
  say(farewell);
  reader.join();
  const auto late = other.await_call();
  ASSERT_TRUE(late);
  EXPECT_EQ(read_all(late.get()), "too");
}

// It takes a second until its kernel has room for the connection. One of the others was quicker.
TEST_F(FarewellTest, TheFirstHasItsTimeThoughAnotherHasTakenIt) {
  const Listener full(1);
  const Listener other;
  std::vector<FileDescriptor> queue;
  while (queue.size() < 2)
    queue.push_back(full.dial());
  Farewell farewell = full.farewell();
  farewell.others = {{other.address(), "quick"}};
  std::thread reader([&] {
    const auto call = other.await_call();
    (void)read_all(call.get());
  });
  std::thread room([&] {
    reader.join();
    for (std::size_t i = 0; i < queue.size(); ++i)
      (void)full.await_call();
    const auto call = full.await_call();
    ASSERT_TRUE(call);
    EXPECT_EQ(read_all(call.get()).size(), farewell.bytes.size());
  });
  say(farewell);
  room.join();
}

// It was killed before it had read all.
TEST_F(FarewellTest, TheOthersAreToldIfTheFirstBreaksTheConnection) {
  const Listener other;
  Farewell farewell = listener.farewell();
  farewell.others = {{other.address(), "now"}};
  std::thread readers([&] {
    listener.break_call();
    const auto second = other.await_call();
    EXPECT_EQ(read_all(second.get()), "now");
  });
  say(farewell);
  readers.join();
}

// One store ends there unheard, and the next one begins.
TEST_F(FarewellTest, OneOfTheOthersThatBreaksTheConnectionIsToldAgain) {
  Farewell farewell;
  farewell.others = {{listener.address(), "again"}};
  std::thread reader([&] {
    listener.break_call();
    const auto second = listener.await_call();
    EXPECT_EQ(read_all(second.get()), "again");
  });
  say(farewell);
  reader.join();
}

TEST_F(FarewellTest, AStoreWithATokenHearsItOverTls) {
  const auto tls = drun::test::tls_of(drun::test::kToken);
  Farewell farewell = listener.farewell();
  farewell.key = tls->secret();
  std::string heard;
  std::thread store([&] {
    const auto call = listener.await_call();
    secure::TlsEngine engine(tls, secure::TlsEngine::Role::Server);
    char bytes[4096];
    for (ssize_t got = 1; got > 0;) {
      got = ::recv(call.get(), bytes, sizeof bytes, 0);
      if (got > 0) engine.receive({bytes, static_cast<std::size_t>(got)}, heard);
      const std::string answer = std::exchange(engine.output(), {});
      if (!answer.empty()) (void)::send(call.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  });
  say(farewell);
  store.join();
  EXPECT_EQ(heard, kWords);
}

TEST_F(FarewellTest, ASuccessorThatBreaksOffBeforeItHasShownTheTokenIsCalledAgain) {
  const auto tls = drun::test::tls_of(drun::test::kToken);
  Farewell farewell;
  farewell.others = {{listener.address(), "again"}};
  farewell.key = tls->secret();
  std::string heard;
  std::thread reader([&] {
    listener.break_call();
    const auto second = listener.await_call();
    secure::TlsEngine engine(tls, secure::TlsEngine::Role::Server);
    char bytes[4096];
    for (ssize_t got = 1; got > 0;) {
      got = ::recv(second.get(), bytes, sizeof bytes, 0);
      if (got > 0) engine.receive({bytes, static_cast<std::size_t>(got)}, heard);
      const std::string answer = std::exchange(engine.output(), {});
      if (!answer.empty()) (void)::send(second.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  });
  say(farewell);
  reader.join();
  EXPECT_EQ(heard, "again");
}

// Who has the place of the store does not get the words that end a session.
TEST_F(FarewellTest, NobodyElseHearsIt) {
  Farewell farewell = listener.farewell();
  farewell.key = drun::test::tls_of(drun::test::kToken)->secret();
  std::string heard;
  std::thread stranger([&] {
    const auto call = listener.await_call();
    secure::TlsEngine engine(drun::test::tls_of(drun::test::kOtherToken),
                             secure::TlsEngine::Role::Server);
    char bytes[4096];
    for (ssize_t got = 1; got > 0;) {
      got = ::recv(call.get(), bytes, sizeof bytes, 0);
      if (got > 0) heard.append(bytes, static_cast<std::size_t>(got));
      if (got > 0) engine.receive({bytes, static_cast<std::size_t>(got)}, heard);
      const std::string answer = std::exchange(engine.output(), {});
      if (!answer.empty()) (void)::send(call.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  });
  say(farewell);
  stranger.join();
  EXPECT_NE(heard, "");
  EXPECT_EQ(heard.find("the end"), std::string::npos);
}

TEST_F(FarewellTest, NobodyThereEndsTheHelpersAtOnce) {
  const Job job = start_agent(nobody(), Ending::Lives);
  ::kill(job.agent, SIGKILL);
  EXPECT_TRUE(all_gone());
}

}  // namespace
}  // namespace drun::process::test
