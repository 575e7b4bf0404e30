// Starting workers at the limits of the system: many, long command lines, no directory, no
// descriptors; and what a worker inherits.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// drun below a shell that first does `before`.
Finished run_after(const std::string& before, const Arguments& arguments) {
  Launch launch;
  launch.argv = {"/bin/sh", "-c", before + "; exec \"$@\"", "sh", drun_path()};
  launch.argv.insert(launch.argv.end(), arguments.begin(), arguments.end());
  DrunProcess process(launch);
  return process.finish(4 * kPatience);
}

TEST(SpawningTest, HundredsOfWorkersBeyondTheSoftLimitOfDescriptors) {
  const Finished finished = run_after("ulimit -S -n 200", {"--nproc-per-node", "400", "sh", "-c",
                                                           "echo $RANK; [ $(ulimit -n) = 200 ]"});
  EXPECT_EQ(finished.code, 0) << finished.err.substr(0, 1000);
  const auto lines = split_lines(finished.out);
  EXPECT_THAT(std::set<std::string>(lines.begin(), lines.end()), SizeIs(400));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(SpawningTest, TheHardLimitOfDescriptorsIsNamed) {
  const Finished finished =
      run_after("ulimit -n 64", {"--nproc-per-node", "100", "sh", "-c", "sleep 1000"});
  EXPECT_EQ(finished.code, 125);
  EXPECT_THAT(finished.err,
              AllOf(HasSubstr("an agent with 100 workers needs "), HasSubstr("ulimit -n")));
  EXPECT_THAT(split_lines(finished.err), SizeIs(1)) << finished.err;
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(SpawningTest, AHardLimitOfVeryFewDescriptorsIsNamedOrEnough) {
#if defined(DRUN_ASAN) || defined(DRUN_TSAN)
  GTEST_SKIP() << "a sanitizer needs descriptors of its own";
#endif
  constexpr int kNeeded = 40;
  for (int limit = 8; limit <= kNeeded; limit += 2) {
    const Finished finished =
        run_after("ulimit -n " + std::to_string(limit), {"sh", "-c", "exit 0"});
    EXPECT_THAT(finished.survivors, IsEmpty());
    EXPECT_EQ(finished.code, limit < kNeeded ? 125 : 0) << limit;
    if (finished.code == 0) continue;
    EXPECT_THAT(finished.err, HasSubstr("an agent with 1 worker needs 40 open descriptors, and"));
    EXPECT_THAT(finished.err, HasSubstr("ulimit -n"));
    EXPECT_THAT(split_lines(finished.err), SizeIs(1)) << limit << ": " << finished.err;
  }
}

TEST(SpawningTest, TheLimitOfProcessesIsNamed) {
#ifdef DRUN_TSAN
  GTEST_SKIP() << "ThreadSanitizer needs a thread of its own in each process";
#endif
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become a user without processes";
  const TempDir directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms::all);
  const std::string copy = (directory.path() / "drun").string();
  std::filesystem::copy_file(drun_path(), copy);
  Launch launch;
  // A user id that nobody has; three of its processes are drun's own, and two threads.
  launch.argv = {"/usr/bin/setpriv",
                 "--reuid=64123",
                 "--clear-groups",
                 "/usr/bin/prlimit",
                 "--nproc=12",
                 copy,
                 "--nproc-per-node",
                 "30",
                 "sleep",
                 "1000"};
  launch.directory = directory.path();
  DrunProcess process(launch);
  const Finished finished = process.finish();
  EXPECT_EQ(finished.code, 125) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("fork: Resource temporarily unavailable"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(SpawningTest, AMegabyteOfArgumentsAndOfEnvironment) {
  Launch launch;
  Arguments arguments{"--nproc-per-node",
                      "3",
                      "sh",
                      "-c",
                      "for a; do printf %s \"$a\"; done | wc -c; printf %s $V1$V2$V3$V4$V5 | wc -c",
                      "sh"};
  for (int i = 0; i < 8; ++i)
    arguments.push_back(std::string(125'000, static_cast<char>('a' + i)));
  for (int i = 1; i < 6; ++i)
    launch.environment.push_back("V" + std::to_string(i) + "=" + std::string(100'000, 'v'));
  const Finished finished = run_drun(arguments, launch);
  EXPECT_EQ(finished.code, 0) << finished.err.substr(0, 1000);
  std::multiset<std::string> expected;
  for (int i = 0; i < 3; ++i) {
    expected.insert("1000000");
    expected.insert("500000");
  }
  const auto lines = split_lines(finished.out);
  EXPECT_EQ(std::multiset<std::string>(lines.begin(), lines.end()), expected);
}

// Each worker's list is as long as drun's own and some variables more: there are lengths with which
// drun starts and its workers do not. Sought between one that is short enough and one that is not.
TEST(SpawningTest, AnArgumentListThatIsTooLongIsNamed) {
  int short_enough = 1'900'000;
  int too_long = 2'200'000;
  bool refused = false;
  bool own_limit = false;  // the test could not start drun
  while (!refused && too_long - short_enough > 50) {
    const int length = (short_enough + too_long) / 2;
    Launch launch;
    launch.argv = {drun_path(), "true"};
    for (int left = length; left > 0; left -= 100'000)
      launch.argv.emplace_back(static_cast<std::size_t>(std::min(left, 100'000)), 'x');
    try {
      DrunProcess process(launch);
      const Finished finished = process.finish();
      if (finished.code == 0) {
        short_enough = length;
        continue;
      }
      refused = true;
      EXPECT_EQ(finished.code, 126) << finished.err.substr(0, 1000);
      EXPECT_THAT(finished.err, HasSubstr("Argument list too long"));
    } catch (const std::exception&) {
      own_limit = true;
      too_long = length;
    }
  }
  if (!refused && own_limit) GTEST_SKIP() << "the test's own limit was reached first";
  EXPECT_TRUE(refused);
}

TEST(SpawningTest, AWorkingDirectoryThatVanishedIsNoReasonToFail) {
  const TempDir directory;
  const std::string gone = (directory.path() / "gone").string();
  const std::string leave = "mkdir " + gone + "; cd " + gone + "; rmdir " + gone;
  const Finished absolute = run_after(leave, {"/bin/echo", "here"});
  EXPECT_EQ(absolute.code, 0) << absolute.err;
  EXPECT_EQ(absolute.out, "here\n");
  const Finished relative = run_after(leave, {"./train"});
  EXPECT_EQ(relative.code, 127);
  EXPECT_THAT(relative.err, AllOf(HasSubstr("./train"), HasSubstr("No such file or directory")));
  const Finished logs = run_after(leave, {"--log-dir", "logs", "--tee", "3", "/bin/true"});
  EXPECT_EQ(logs.code, 125);
  EXPECT_THAT(split_lines(logs.err), SizeIs(1)) << logs.err;
  EXPECT_THAT(logs.err, HasSubstr("No such file or directory"));
}

// As the command of a container: drun is process 1, the kernel gives it every orphan, and a signal
// reaches it only because it handles it.
TEST(SpawningTest, TheFirstProcessOfAContainerRestartsStopsAndLeavesNothing) {
  Launch launch;
  launch.argv = {"/usr/bin/unshare",
                 "--pid",
                 "--fork",
                 "--mount-proc",
                 drun_path(),
                 "--max-restarts",
                 "1",
                 "sh",
                 "-c",
                 "setsid sh -c 'sleep 1000 &'; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 3; "
                 "kill -TERM 1; sleep 1000"};
  DrunProcess process(launch);
  const Finished finished = process.finish();
  if (finished.err.starts_with("unshare"))
    GTEST_SKIP() << "no right to make namespaces here: " << finished.err;
  EXPECT_EQ(finished.code, 128 + SIGTERM) << finished.err;
  EXPECT_THAT(finished.err,
              AllOf(HasSubstr("restart 1/1 after rank 0"), HasSubstr("received SIGTERM")));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(SpawningTest, AClosedStreamWithoutDevNullIsAnError) {
  Launch launch;
  launch.argv = {"/usr/bin/unshare",
                 "--mount",
                 "/bin/sh",
                 "-c",
                 "mount -t tmpfs none /dev || exit 99; exec \"$@\" <&-",
                 "sh",
                 drun_path(),
                 "true"};
  DrunProcess process(launch);
  const Finished finished = process.finish();
  if (finished.code == 99 || finished.err.starts_with("unshare"))
    GTEST_SKIP() << "no right to mount here: " << finished.err;
  EXPECT_EQ(finished.code, 125);
  EXPECT_EQ(finished.err, "drun: error: open /dev/null: No such file or directory\n");
}

TEST(SpawningTest, NothingIsInheritedButTheThreeStreams) {
  Launch launch;
  launch.argv = {"/bin/sh",
                 "-c",
                 "exec 7< /dev/null 8> /dev/null; exec \"$@\"",
                 "sh",
                 "/usr/bin/env",
                 "--ignore-signal=PIPE,USR1,INT",
                 "--block-signal=USR2,WINCH",
                 drun_path(),
                 "--nproc-per-node",
                 "2",
                 "sh",
                 "-c",
                 "ls /proc/$$/fd; cat /proc/self/status | grep -E '^Sig(Blk|Ign|Cgt)'"};
  DrunProcess process(launch);
  const Finished finished = process.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  const std::string none = "0000000000000000";
  const auto lines = split_lines(finished.out);
  for (const auto& line : {"0", "1", "2"})
    EXPECT_EQ(std::count(lines.begin(), lines.end(), line), 2) << finished.out;
  for (const auto& name : {"SigBlk:\t", "SigIgn:\t", "SigCgt:\t"})
    EXPECT_EQ(std::count(lines.begin(), lines.end(), name + none), 2) << finished.out;
  EXPECT_THAT(lines, SizeIs(12)) << finished.out;
}

}  // namespace
}  // namespace drun::test
