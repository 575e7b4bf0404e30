// What a worker starts with, and what is said when it cannot start.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "launcher/process/guardian.hpp"
#include "launcher/process/spawn_pool.hpp"
#include "support/guardian_driver.hpp"
#include "support/in_child.hpp"

namespace drun::process::test {
namespace {

using namespace std::chrono_literals;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char name[] = "/tmp/drun-spawn-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name, const std::string& text, mode_t mode) const {
    const std::string full = path + "/" + name;
    std::ofstream(full) << text;
    ::chmod(full.c_str(), mode);
    return full;
  }
  std::string path;
};

// Starts it, returns what it wrote.
std::string output_of(Driver& driver, SpawnRequest request) {
  Pipe out;
  request.standard_output = std::move(out.write);
  const WorkerId id = request.id;
  driver.guardian.spawn(std::move(request));
  if (!driver.await<Spawned>(id)) return "<not started>";
  return read_all(out.read.get());
}

TEST(SpawnTest, WorkerHasNoSignalBlockedIgnoredOrCaught) {
  // The agent's own dispositions and mask must not reach it.
  const int result = in_child([] {
    for (int signal = 1; signal < NSIG; ++signal)
      ::signal(signal, SIG_IGN);
    ::signal(SIGUSR1, [](int) {});
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    Driver driver;
    const auto text = output_of(driver, Driver::request(1, {"cat", "/proc/self/status"}));
    const bool clean = text.find(
                           "\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
                           "SigCgt:\t0000000000000000\n") != std::string::npos;
    if (!clean) std::fprintf(stderr, "%s", text.c_str());
    return clean ? 0 : 1;
  });
  EXPECT_EQ(result, 0);
}

TEST(SpawnTest, ADescriptorOfAServiceIsNumberThree) {
  Driver driver;
  int pair[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const drun::FileDescriptor mine(pair[0]);
  auto request = Driver::request(
      1, {"sh", "-c", "echo hello >&3; read answer <&3; echo $answer; ls /proc/$$/fd"});
  request.service.reset(pair[1]);
  ASSERT_EQ(::write(mine.get(), "again\n", 6), 6);
  EXPECT_EQ(output_of(driver, std::move(request)), "again\n0\n1\n2\n3\n");
  char heard[16] = {};
  EXPECT_EQ(::read(mine.get(), heard, sizeof heard), 6);
  EXPECT_STREQ(heard, "hello\n");
  // Others do not have it.
  EXPECT_EQ(output_of(driver, Driver::request(2, {"sh", "-c", "ls /proc/$$/fd"})), "0\n1\n2\n");
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> result;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) result.push_back(cpu);
  return result;
}

TEST(SpawnTest, WorkerRunsOnTheCpusItWasGivenAndTheGuardianWhereItDid) {
  Driver driver;
  const auto cpus = allowed_cpus();
  const std::vector<std::string> show{"grep", "Cpus_allowed_list", "/proc/self/status"};
  const auto before = output_of(driver, Driver::request(1, show));
  auto bound = Driver::request(2, show);
  // CPUs that do not exist are no obstacle.
  bound.cpu_affinity = {cpus.back(), 8191};
  EXPECT_EQ(output_of(driver, std::move(bound)),
            "Cpus_allowed_list:\t" + std::to_string(cpus.back()) + "\n");
  EXPECT_EQ(output_of(driver, Driver::request(3, show)), before);
}

TEST(SpawnTest, CpusOfWhichNoneExistsAreAnError) {
  Driver driver;
  auto request = Driver::request(1, {"true"});
  request.cpu_affinity = {8190, 8191};
  driver.guardian.spawn(std::move(request));
  const auto failed = driver.await<SpawnFailed>(1);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->error, EINVAL);
  EXPECT_EQ(failed->attempted, "bind to the chosen CPUs");
}

TEST(SpawnTest, WorkerPrefersTheMemoryOfItsNodes) {
  if (::access("/proc/self/numa_maps", R_OK) != 0)
    GTEST_SKIP() << "a kernel without NUMA: no /proc/self/numa_maps";
  if (in_child([] { return ::syscall(SYS_set_mempolicy, 0, nullptr, 0) == 0 ? 0 : 1; }) != 0)
    GTEST_SKIP() << "memory policies are not allowed here";
  Driver driver;
  auto request = Driver::request(1, {"cat", "/proc/self/numa_maps"});
  request.memory_nodes = {0};
  EXPECT_NE(output_of(driver, std::move(request)).find(" prefer"), std::string::npos);
  const auto plain = output_of(driver, Driver::request(2, {"cat", "/proc/self/numa_maps"}));
  EXPECT_EQ(plain.find(" prefer"), std::string::npos);
}

TEST(SpawnTest, MemoryNodesThatDoNotExistAreLeftOut) {
  Driver driver;
  auto request = Driver::shell(1, "echo ran");
  request.memory_nodes = {4000};
  EXPECT_EQ(output_of(driver, std::move(request)), "ran\n");
}

TEST(SpawnTest, WorkerInheritsNothingButTheThreeStreams) {
  Driver driver;
  const int leak = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  for (WorkerId id = 0; id < 3; ++id) {
    const auto text = output_of(driver, Driver::request(id, {"ls", "/proc/self/fd"}));
    EXPECT_EQ(text, "0\n1\n2\n3\n");  // 3 is the directory that ls reads
  }
  ::close(leak);
}

TEST(SpawnTest, WorkerDoesNotInheritWhatWasOpenWhenTheGuardianStarted) {
  const int leak = ::open("/dev/null", O_RDONLY);
  Driver driver;
  EXPECT_EQ(output_of(driver, Driver::request(1, {"ls", "/proc/self/fd"})), "0\n1\n2\n3\n");
  ::close(leak);
}

TEST(SpawnTest, WorkerLeadsAGroupInASessionThatIsNotTheAgents) {
  Driver driver;
  // Fields 5 and 6: group and session.
  const auto text = output_of(
      driver, Driver::shell(1,
                            "read -r pid name state parent group session rest </proc/$$/stat; "
                            "echo $$ $group $session"));
  int pid = 0;
  int group = 0;
  int session = 0;
  ASSERT_EQ(std::sscanf(text.c_str(), "%d %d %d", &pid, &group, &session), 3) << text;
  EXPECT_EQ(group, pid);
  EXPECT_EQ(session, driver.guardian.pid());
  EXPECT_NE(::getsid(0), driver.guardian.pid());
}

TEST(SpawnTest, RunsInTheAgentsDirectoryAndFindsRelativePathsThere) {
  const TemporaryDirectory directory;
  directory.file("tool", "#!/bin/sh\npwd\n", 0755);
  const int result = in_child([&] {
    if (::chdir(directory.path.c_str()) != 0) return 1;
    Driver driver;
    if (output_of(driver, Driver::request(1, {"./tool"})) != directory.path + "\n") return 2;
    auto by_empty_element = Driver::request(2, {"tool"});
    by_empty_element.environment = {"PATH=/usr/bin:"};
    return output_of(driver, std::move(by_empty_element)) == directory.path + "\n" ? 0 : 3;
  });
  EXPECT_EQ(result, 0);
}

TEST(SpawnTest, TheFirstExecutableInPathWins) {
  const TemporaryDirectory one;
  const TemporaryDirectory two;
  one.file("tool", "#!/bin/sh\necho one\n", 0644);  // there, but not executable
  two.file("tool", "#!/bin/sh\necho two\n", 0755);
  Driver driver;
  auto request = Driver::request(1, {"tool"});
  request.environment = {"PATH=/nowhere:" + one.path + ":/etc/passwd:" + two.path};
  EXPECT_EQ(output_of(driver, std::move(request)), "two\n");
}

TEST(SpawnTest, WithoutPathTheSystemsOwnIsUsed) {
  Driver driver;
  auto request = Driver::request(1, {"echo", "found"});
  request.environment = {"HOME=/"};
  EXPECT_EQ(output_of(driver, std::move(request)), "found\n");
}

TEST(SpawnTest, SharedEnvironmentComesBeforeTheWorkersOwnUntilItIsReplaced) {
  Driver driver;
  auto request = Driver::request(1, {"env"});
  request.environment = {"OWN=1"};
  driver.guardian.share_environment({"PATH=/usr/bin:/bin", "BIG=" + std::string(100'000, 'x')});
  EXPECT_EQ(output_of(driver, std::move(request)),
            "PATH=/usr/bin:/bin\nBIG=" + std::string(100'000, 'x') + "\nOWN=1\n");
  driver.guardian.share_environment({"PATH=/bin"});
  auto next = Driver::request(2, {"env"});
  next.environment = {"OWN=2"};
  EXPECT_EQ(output_of(driver, std::move(next)), "PATH=/bin\nOWN=2\n");
  driver.guardian.share_environment({});
  EXPECT_EQ(output_of(driver, Driver::request(3, {"env"})), "PATH=/usr/bin:/bin\n");
}

TEST(SpawnTest, AScriptWithoutAnInterpreterIsRunByTheShell) {
  const TemporaryDirectory directory;
  const auto script = directory.file("script", "echo \"$0 $#: $1\"\n", 0755);
  Driver driver;
  EXPECT_EQ(output_of(driver, Driver::request(1, {script, "a b", "c"})), script + " 2: a b\n");
}

TEST(SpawnTest, SaysWhatCannotBeRunAndWhy) {
  const TemporaryDirectory directory;
  const std::string plain = directory.file("plain", "#!/bin/sh\n", 0644);
  const std::string lost = directory.file("lost", "#! /no/such/interpreter -x\n", 0755);
  const std::string windows = directory.file("windows", "#!/bin/sh\r\necho\r\n", 0755);
  const std::string binary = directory.file("binary",
                                            std::string("\x7f"
                                                        "ELF\0\0\0",
                                                        7),
                                            0755);
  const std::string mainframe(
      "\x7f"
      "ELF\2\2\1\0\0\0\0\0\0\0\0\0\0\2\0\x16",
      20);
  const std::string foreign = directory.file("foreign", mainframe, 0755);
#if defined(__aarch64__)
  const std::string own = "arm64";
#else
  const std::string own = "x86-64";
#endif
  const struct {
    std::vector<std::string> argv;
    int error;
    std::string attempted;
  } cases[] = {
      {{"/no/such"}, ENOENT, "exec /no/such"},
      {{"no-such-program"}, ENOENT, "exec no-such-program"},
      {{""}, ENOENT, "exec ''"},
      {{plain}, EACCES, "exec " + plain},
      {{"plain"}, EACCES, "exec " + plain},
      {{directory.path}, EACCES, "exec " + directory.path},
      {{plain + "/x"}, ENOTDIR, "exec " + plain + "/x"},
      {{lost}, ENOENT, "exec " + lost + " (its interpreter '/no/such/interpreter')"},
      {{windows},
       ENOENT,
       "exec " + windows +
           " (its interpreter '/bin/sh\\r': the script has DOS line ends, dos2unix mends it)"},
      {{binary}, ENOEXEC, "exec " + binary + " (it is neither a program nor a script)"},
      {{foreign},
       ENOEXEC,
       "exec " + foreign + " (it is a program for s390x, this machine is " + own + ")"},
      {{"true", std::string(200'000, 'x')}, E2BIG, "exec /bin/true"},  // one string: 128 KiB
      {{}, EINVAL, "start a worker without a program"},
  };
  Driver driver;
  WorkerId id = 0;
  for (const auto& c : cases) {
    auto request = Driver::request(id, c.argv);
    request.environment = {"PATH=" + directory.path + ":/bin"};
    driver.guardian.spawn(std::move(request));
    const auto failed = driver.await<SpawnFailed>(id);
    ASSERT_TRUE(failed) << c.attempted;
    EXPECT_EQ(failed->error, c.error) << c.attempted << ": " << std::strerror(failed->error);
    EXPECT_EQ(failed->attempted, c.attempted);
    ++id;
  }
  // Failures leave nothing that a stop would wait for.
  driver.guardian.stop(SIGTERM, 600s);
  EXPECT_TRUE(driver.await<Stopped>());
}

TEST(SpawnTest, CommandLinesAndEnvironmentsOfAMegabyteArrive) {
  Driver driver;
  std::vector<std::string> argv{
      "/bin/sh", "-c", "echo $# ${#1} ${#V0}; env | wc -c; for a; do :; done; echo ${#a}", "sh"};
  for (int i = 0; i < 10; ++i)
    argv.emplace_back(100'000, 'x');
  auto request = Driver::request(1, std::move(argv));
  for (int i = 0; i < 8; ++i)
    request.environment.push_back("V" + std::to_string(i) + "=" + std::string(100'000, 'y'));
  const auto text = output_of(driver, std::move(request));
  int count = 0;
  int first = 0;
  int variable = 0;
  int environment = 0;
  int last = 0;
  ASSERT_EQ(
      std::sscanf(text.c_str(), "%d %d %d %d %d", &count, &first, &variable, &environment, &last),
      5)
      << text;
  EXPECT_EQ(count, 10);
  EXPECT_EQ(first, 100'000);
  EXPECT_EQ(variable, 100'000);
  EXPECT_GT(environment, 800'000);
  EXPECT_EQ(last, 100'000);
}

TEST(SpawnTest, HundredsOfWorkersRunAtOnce) {
  constexpr WorkerId kCount = 300;
  Driver driver;
  Pipe gate;
  for (WorkerId id = 0; id < kCount; ++id) {
    auto request = Driver::shell(id, "read -r line; exit " + std::to_string(id % 256));
    request.standard_input.reset(::fcntl(gate.read.get(), F_DUPFD_CLOEXEC, 0));
    request.standard_output.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    driver.guardian.spawn(std::move(request));
  }
  for (WorkerId id = 0; id < kCount; ++id)
    ASSERT_TRUE(driver.await<Spawned>(id)) << id;
  gate.write.reset();
  for (WorkerId id = 0; id < kCount; ++id) {
    const auto exited = driver.await<Exited>(id);
    ASSERT_TRUE(exited) << id;
    EXPECT_EQ(exited->status, (ExitStatus{static_cast<int>(id % 256), 0, false}));
  }
}

TEST(SpawnTest, EveryExitCodeAndSignalIsToldAsItWas) {
  Driver driver;
  for (int code = 0; code < 256; ++code)
    driver.guardian.spawn(
        Driver::shell(static_cast<WorkerId>(code), "exit " + std::to_string(code)));
  for (int code = 0; code < 256; ++code) {
    const auto exited = driver.await<Exited>(static_cast<WorkerId>(code));
    ASSERT_TRUE(exited) << code;
    EXPECT_EQ(exited->status, (ExitStatus{code, 0, false}));
  }
  for (int signal = 1; signal <= 64; ++signal) {
    const bool deadly = signal != SIGCHLD && signal != SIGCONT && signal != SIGURG &&
                        signal != SIGWINCH && signal != SIGSTOP && signal != SIGTSTP &&
                        signal != SIGTTIN && signal != SIGTTOU;
    if (!deadly) continue;
    const auto id = static_cast<WorkerId>(1000 + signal);
    driver.guardian.spawn(Driver::shell(id, "ulimit -c 0; exec sleep 1000"));
    const auto spawned = driver.await<Spawned>(id);
    ASSERT_TRUE(spawned);
    ::kill(spawned->pid, signal);
    const auto exited = driver.await<Exited>(id);
    ASSERT_TRUE(exited) << signal;
    EXPECT_EQ(exited->status.signal, signal);
  }
}

TEST(SpawnTest, AgentThatIsNotHeardDoesNotBlock) {
  Driver driver;
  ::kill(driver.guardian.pid(), SIGSTOP);
  const auto before = Clock::now();
  for (WorkerId id = 0; id < 50; ++id) {
    auto request = Driver::request(id, {"true"});
    request.environment.push_back("X=" + std::string(100'000, 'x'));
    driver.guardian.spawn(std::move(request));
  }
  EXPECT_LT(Clock::now() - before, kPatience);
  ::kill(driver.guardian.pid(), SIGCONT);
  for (WorkerId id = 0; id < 50; ++id)
    EXPECT_TRUE(driver.await<Exited>(id)) << id;
}

TEST(SpawnTest, WorkersGetTheLimitOfDescriptorsThatTheAgentHadFirst) {
  const int result = in_child([] {
    rlimit raised{};
    ::getrlimit(RLIMIT_NOFILE, &raised);
    GuardianOptions options;
    options.open_files = raised;
    options.open_files->rlim_cur = 123;
    Driver driver(options);
    return output_of(driver, Driver::shell(1, "ulimit -n")) == "123\n" ? 0 : 1;
  });
  EXPECT_EQ(result, 0);
}

TEST(SpawnTest, ManyWorkersNeedFewDescriptorsInTheGuardian) {
  const int result = in_child([] {
    GuardianOptions options;
    options.open_files.emplace();
    options.open_files->rlim_cur = 24;
    options.open_files->rlim_max = 24;
    Driver driver(options);
    for (WorkerId id = 0; id < 100; ++id) {
      auto request = Driver::request(id, {"sleep", "1000"});
      request.standard_input.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      request.standard_output.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
      request.standard_error.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
      driver.guardian.spawn(std::move(request));
    }
    for (WorkerId id = 0; id < 100; ++id)
      if (!driver.await<Spawned>(id)) return 1;
    return 0;
  });
  EXPECT_EQ(result, 0);
}

TEST(SpawnTest, DescriptorLimitThatIsReachedIsAnErrorAndNotTheEnd) {
  const int result = in_child([] {
    GuardianOptions options;
    options.open_files.emplace();
    options.open_files->rlim_cur = 8;  // the guardian's own and one more
    options.open_files->rlim_max = 8;
    options.use_cgroup = false;
    Driver driver(options);
    auto request = Driver::request(1, {"true"});
    request.standard_input.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    request.standard_output.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    request.standard_error.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    driver.guardian.spawn(std::move(request));
    const auto failed = driver.await<SpawnFailed>(1);
    if (!failed || failed->error != EMFILE || failed->attempted != "connect the standard streams")
      return 1;
    driver.guardian.spawn(Driver::request(2, {"true"}));
    return driver.await<Exited>(2) ? 0 : 2;
  });
  EXPECT_EQ(result, 0);
}

TEST(SpawnTest, ProcessLimitThatIsReachedIsAFailedFork) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs another user's process count: run as root";
  const int result = in_child([] {
    constexpr uid_t kUnused = 54321;  // nobody else runs as this user
    if (::setgid(kUnused) != 0 || ::setuid(kUnused) != 0) return 3;
    Driver driver;
    const rlimit few{3, 3};  // agent, watchdog and guardian
    ::prlimit(driver.guardian.pid(), RLIMIT_NPROC, &few, nullptr);
    driver.guardian.spawn(Driver::request(1, {"true"}));
    const auto failed = driver.await<SpawnFailed>(1);
    if (!failed || failed->error != EAGAIN || failed->attempted != "fork") return 1;
    return 0;
  });
  EXPECT_EQ(result, 0);
}

// A stop looks for the processes that are there.
TEST(SpawnPoolTest, KnowsAChildUntilItsResultIsTaken) {
  const int result = in_child([] {
    auto& pool = *new SpawnPool;  // it ends with the process
    char program[] = "sleep";
    char time[] = "1000";
    char path[] = "PATH=/usr/bin:/bin";
    SpawnPlan plan;
    plan.argv = {program, time};
    plan.environment = {path};
    plan.streams = {0, 1, 2};
    pool.spawn(7, std::move(plan));
    pollfd entry{pool.fd(), POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(kPatience.count())) != 1) return 1;
    const pid_t child = pool.child_of(7);
    const auto taken = pool.take();
    if (taken.size() != 1 || taken[0].spawned.pid == 0) return 2;
    ::kill(taken[0].spawned.pid, SIGKILL);
    if (child != taken[0].spawned.pid) return 3;
    return pool.child_of(7) == 0 ? 0 : 4;
  });
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace drun::process::test
