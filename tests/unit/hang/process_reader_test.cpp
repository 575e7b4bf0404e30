// Looks at real processes.
#include "hang/process_reader.hpp"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "hang/connections.hpp"
#include "hang/stillness.hpp"
#include "hang/wait_place.hpp"
#include "support/patience.hpp"
#include "support/pipe.hpp"
#include "support/process_state.hpp"
#include "support/temporary_directory.hpp"

namespace drun::hang {
namespace {

using test::eventually;

// A child that does what `work` says, until the end of the test.
class Child {
 public:
  explicit Child(const std::function<void()>& work) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::setpgid(0, 0);
    work();
    ::_exit(0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

void sleep_for_ever() {
  for (;;)
    ::pause();
}

void write_much(int file) {
  const std::vector<char> much(64U << 20);
  (void)!::write(file, much.data(), much.size());
}

// A connection to itself; -1: there is none.
std::array<int, 2> connected_pair() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const int near = ::socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0 || near < 0) return {-1, -1};
  const bool made = ::bind(listener, any, size) == 0 && ::listen(listener, 1) == 0 &&
                    ::getsockname(listener, any, &size) == 0 && ::connect(near, any, size) == 0;
  const int far = made ? ::accept(listener, nullptr, nullptr) : -1;
  return {far < 0 ? -1 : near, far};
}

void close_what_nobody_takes() {
  const int near = connected_pair()[0];
  if (near < 0) return;
  const std::vector<char> much(64U << 20);
  (void)!::send(near, much.data(), much.size(), MSG_DONTWAIT);
  const linger until_sent{1, 1'000};
  ::setsockopt(near, SOL_SOCKET, SO_LINGER, &until_sent, sizeof until_sent);
  ::close(near);
}

bool is_on_the_way(const Finding& finding) {
  return finding.activity == Activity::NobodyKnows &&
         finding.why.find("to or from a file") != std::string::npos;
}

class ProcessReaderTest : public testing::Test {
 protected:
  Finding look(const Child& child) {
    NodeLook now = look_at({{1, child.pid()}}, last_, 0);
    const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(now.at - last_.at);
    const Finding finding = compare(last_.ranks[1], now.ranks[1], elapsed);
    last_ = std::move(now);
    return finding;
  }
  bool is_found(const Child& child, Activity activity) {
    return eventually([&] { return look(child).activity == activity; });
  }

  WaitPlace where(const Child& child) {
    Connections connections(0);
    return wait_place(child.pid(), last_.ranks[1], connections);
  }

  NodeLook last_;
};

TEST_F(ProcessReaderTest, AProcessThatSleepsWaits) {
  const Child child(sleep_for_ever);
  EXPECT_TRUE(is_found(child, Activity::Waits));
  EXPECT_EQ(last_.ranks[1].processes.size(), 1U);
  EXPECT_EQ(look(child).activity, Activity::Waits);
}

TEST_F(ProcessReaderTest, AProcessThatComputesIsNotTakenForOneThatWaits) {
  const Child child([] {
    for (;;)
      __asm__ volatile("");
  });
  EXPECT_TRUE(is_found(child, Activity::NobodyKnows));
  for (int i = 0; i < 20; ++i)
    EXPECT_NE(look(child).activity, Activity::Waits);
}

TEST_F(ProcessReaderTest, AByteThatIsWrittenIsSeen) {
  const test::Pipe ends;
  const Child child([&] {
    char byte = 0;
    while (::read(ends.read.get(), &byte, 1) == 1) {
    }
  });
  ASSERT_TRUE(is_found(child, Activity::Waits));
  ASSERT_EQ(::write(ends.write.get(), "x", 1), 1);
  EXPECT_TRUE(is_found(child, Activity::MakesProgress));
  EXPECT_TRUE(is_found(child, Activity::Waits));
}

TEST_F(ProcessReaderTest, WhatAChildOfItDoesCounts) {
  const Child child([] {
    if (::fork() == 0) {
      for (;;)
        __asm__ volatile("");
    }
    sleep_for_ever();
  });
  ASSERT_TRUE(eventually([&] {
    (void)look(child);
    return last_.ranks[1].processes.size() == 2;
  }));
  EXPECT_TRUE(is_found(child, Activity::NobodyKnows));
  for (int i = 0; i < 20; ++i)
    EXPECT_NE(look(child).activity, Activity::Waits);
}

// Nothing else of it changes.
TEST_F(ProcessReaderTest, WhatBeginsAndEndsBetweenTwoLooksIsSeen) {
  for (const bool thread : {false, true}) {
    SCOPED_TRACE(thread ? "thread" : "child");
    const Child child([thread] {
      ::signal(SIGUSR1, [](int) {});
      for (;;) {
        ::pause();
        if (thread) {
          std::thread([] {}).join();
        } else if (const pid_t below = ::fork(); below == 0) {
          ::_exit(0);
        } else {
          ::waitpid(below, nullptr, 0);
        }
      }
    });
    ASSERT_TRUE(is_found(child, Activity::Waits));
    EXPECT_TRUE(eventually([&] {
      ::kill(child.pid(), SIGUSR1);
      return look(child).activity == Activity::MakesProgress;
    }));
  }
}

TEST_F(ProcessReaderTest, AStoppedProcessWaits) {
  const Child child([] {
    for (;;)
      __asm__ volatile("");
  });
  ASSERT_EQ(::kill(child.pid(), SIGSTOP), 0);
  EXPECT_TRUE(is_found(child, Activity::Waits));
}

TEST_F(ProcessReaderTest, OneThatHasEndedIsNotThere) {
  const Child child([] {});
  EXPECT_TRUE(eventually([&] {
    (void)look(child);
    return last_.ranks[1].processes.empty();
  }));
  EXPECT_EQ(look(child).activity, Activity::NobodyKnows);
  // It is one of those that must all wait, until somebody says that it does not run.
  EXPECT_TRUE(look_at({{1, child.pid()}}, last_, 0).ranks.contains(1));
}

TEST_F(ProcessReaderTest, WhatThreadsDoAfterTheMainThreadHasEndedCounts) {
  const Child child([] {
    std::thread([] {
      for (;;)
        __asm__ volatile("");
    }).detach();
    ::syscall(SYS_exit, 0);  // this thread alone
  });
  ASSERT_TRUE(eventually([&] { return test::state_of(child.pid()) == 'Z'; }));
  EXPECT_TRUE(is_found(child, Activity::NobodyKnows));
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(look(child).activity, Activity::NobodyKnows);
}

// The kernel shows its files only as those of the threads that go on.
TEST_F(ProcessReaderTest, OneWhoseMainThreadHasEndedWaitsIfItsOthersDo) {
  const Child child([] {
    const auto ends = connected_pair();
    std::thread([ends] {
      char byte = 0;
      (void)::recv(ends[0], &byte, 1, 0);
    }).detach();
    ::syscall(SYS_exit, 0);  // this thread alone
  });
  ASSERT_TRUE(eventually([&] { return test::state_of(child.pid()) == 'Z'; }));
  EXPECT_TRUE(is_found(child, Activity::Waits));
  EXPECT_TRUE(where(child).call.starts_with("recvfrom")) << where(child).call;
  EXPECT_NE(where(child).file.find(" from 127.0.0.1:"), std::string::npos) << where(child).file;
}

// The kernel counts its bytes when all have been taken.
TEST_F(ProcessReaderTest, ALongWriteThatGoesOnIsSeen) {
  test::Pipe ends;
  ::signal(SIGUSR1, [](int) {});
  const Child reader([&] {
    std::vector<char> taken(1U << 20);
    for (;;) {
      ::pause();
      (void)!::read(ends.read.get(), taken.data(), taken.size());
    }
  });
  const Child child([&] { write_much(ends.write.get()); });
  ends.read.reset();
  ends.write.reset();
  ASSERT_TRUE(is_found(child, Activity::Waits));
  EXPECT_TRUE(eventually([&] {
    ::kill(reader.pid(), SIGUSR1);
    const Finding finding = look(child);
    EXPECT_NE(finding.activity, Activity::MakesProgress) << finding.why;
    return is_on_the_way(finding);
  }));
  EXPECT_TRUE(is_found(child, Activity::Waits));
}

// Here the test is drun, and nobody reads what drun passes on.
TEST_F(ProcessReaderTest, OneWhoseOutputNobodyTakesIsNotTakenForOneThatWaits) {
  const test::Pipe output;
  const Child child([&] { write_much(output.write.get()); });
  EXPECT_TRUE(eventually([&] { return is_on_the_way(look(child)); }));
  EXPECT_TRUE(is_on_the_way(look(child)));
}

// As in fsync on some file systems, its wait can be interrupted.
TEST_F(ProcessReaderTest, OneThatWaitsUntilAllIsWrittenIsNotTakenForOneThatWaits) {
  const Child child(close_what_nobody_takes);
  EXPECT_TRUE(eventually([&] { return is_on_the_way(look(child)); }));
}

// Its bytes are counted nowhere.
TEST_F(ProcessReaderTest, OfOneThatUsesIoUringNobodyKnows) {
  io_uring_params params{};
  const FileDescriptor ring(static_cast<int>(::syscall(SYS_io_uring_setup, 1, &params)));
  if (!ring) GTEST_SKIP() << "this kernel has none, or forbids it";
  const Child child(sleep_for_ever);
  EXPECT_TRUE(eventually([&] { return look(child).why == "it uses io_uring"; }));
}

TEST_F(ProcessReaderTest, ThePlaceWhereItWaitsIsNamed) {
  const test::Pipe ends;
  const Child child([&] {
    char byte = 0;
    (void)!::read(ends.read.get(), &byte, 1);
  });
  ASSERT_TRUE(is_found(child, Activity::Waits));
  const WaitPlace place = where(child);
  EXPECT_EQ(place.call.substr(0, 4), "read") << place.call;
  EXPECT_NE(place.file.find(" of pipe:["), std::string::npos) << place.file;
}

// As on a file system that gives no answer.
TEST_F(ProcessReaderTest, ThePathIsNamedThatOneWaitsToOpen) {
  const test::TempDir folder;
  const std::string pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Child child([&] { (void)!::open(pipe.c_str(), O_RDONLY); });
  ASSERT_TRUE(is_found(child, Activity::Waits));
  EXPECT_TRUE(where(child).call.starts_with("open")) << where(child).call;
  EXPECT_EQ(where(child).file, " of " + pipe);
}

TEST_F(ProcessReaderTest, OneThatIsStoppedWaitsNowhere) {
  const Child child([] { sleep_for_ever(); });
  ASSERT_TRUE(is_found(child, Activity::Waits));
  ::kill(child.pid(), SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child.pid(), &status, WUNTRACED), child.pid());
  EXPECT_EQ(where(child), (WaitPlace{"", "", true}));
}

// As a shell does that has started the program.
TEST_F(ProcessReaderTest, OneThatOnlyWaitsForItsChildStandsForTheChild) {
  const Child child([] {
    const pid_t below = ::fork();
    if (below == 0) sleep_for_ever();
    ::waitpid(below, nullptr, 0);
  });
  ASSERT_TRUE(is_found(child, Activity::Waits));
  const WaitPlace place = where(child);
  EXPECT_TRUE(place.call.starts_with("pause") || place.call.starts_with("ppoll")) << place.call;
}

// As a rank does whose data loader hangs.
TEST_F(ProcessReaderTest, OneThatWaitsForWhatItsChildShouldBringIsKnownToWaitForThat) {
  const auto read_one = [](int from) {
    char byte = 0;
    (void)!::read(from, &byte, 1);
  };
  const auto poll_one = [&](int from) {
    pollfd entry{from, POLLIN, 0};
    (void)::poll(&entry, 1, -1);
  };
  const auto select_one = [](int from) {
    fd_set read;
    FD_ZERO(&read);
    FD_SET(from, &read);
    (void)::select(from + 1, &read, nullptr, nullptr, nullptr);
  };
  const auto epoll_one = [](int from) {
    const int all = ::epoll_create1(0);
    epoll_event event{EPOLLIN, {}};
    (void)::epoll_ctl(all, EPOLL_CTL_ADD, from, &event);
    (void)::epoll_wait(all, &event, 1, -1);
  };
  for (const auto& wait :
       std::vector<std::function<void(int)>>{read_one, poll_one, select_one, epoll_one}) {
    for (const bool socket : {false, true}) {
      last_ = {};
      const Child child([&] {
        int ends[2];
        if ((socket ? ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : ::pipe(ends)) != 0) return;
        if (::fork() == 0) {
          ::close(ends[0]);
          sleep_for_ever();
        }
        ::close(ends[1]);
        wait(ends[0]);
      });
      ASSERT_TRUE(is_found(child, Activity::Waits));
      ASSERT_TRUE(eventually([&] {
        (void)look(child);
        return where(child).whom == Awaited::Whom::OwnChild;
      })) << where(child).text();
      EXPECT_NE(where(child).text().find(" for its child process, which waits in p"),
                std::string::npos)
          << where(child).text();
    }
  }
}

TEST_F(ProcessReaderTest, OneThatWaitsForAConnectionIsKnownToWaitForOthers) {
  const Child child([] {
    const auto ends = connected_pair();
    char byte = 0;
    (void)::recv(ends[0], &byte, 1, 0);
  });
  ASSERT_TRUE(is_found(child, Activity::Waits));
  EXPECT_EQ(where(child).whom, Awaited::Whom::Others) << where(child).text();
  const Child threads([] {
    std::thread([] {
      const auto ends = connected_pair();
      char byte = 0;
      (void)::recv(ends[0], &byte, 1, 0);
    }).detach();
    sleep_for_ever();
  });
  EXPECT_TRUE(eventually([&] { return where(threads).whom == Awaited::Whom::Others; }));
}

}  // namespace
}  // namespace drun::hang
