#include "launcher/report/core_file.hpp"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

TEST(CorePathPatternTest, KnowsTheKernelsNames) {
  const CoreNames names{.pid = 4711,
                        .signal = 11,
                        .executable = "/opt/app/train",
                        .directory = "/srv/app",
                        .host = "node1"};
  struct Case {
    const char* pattern;
    bool uses_pid;
    const char* expected;
  };
  const Case cases[] = {
      {"core", false, "/srv/app/core"},
      {"core", true, "/srv/app/core.4711"},
      {"/var/cores/core.%p", false, "/var/cores/core.4711"},
      {"/var/cores/core.%p", true, "/var/cores/core.4711"},
      {"/c/%h/%e.%s.%t", false, "/c/node1/*.11.*"},
      {"/c/%f-%P%%", false, "/c/train-4711%"},
      {"/c/we[i]rd*", false, "/c/we\\[i]rd\\*"},
      {"/c/%z%", false, "/c/"},
      {"|/usr/lib/systemd/systemd-coredump %P", false, ""},
      {"", true, ""},
  };
  for (const Case& c : cases)
    EXPECT_EQ(core_path_pattern(c.pattern, c.uses_pid, names), c.expected) << c.pattern;
}

TEST(FindCoreTest, WithoutACoreItSaysHowToGetOneOrWhereItShouldBe) {
  std::string pattern;
  std::getline(std::ifstream("/proc/sys/kernel/core_pattern"), pattern);
  const bool taken = pattern.starts_with('|');
  CoreNames names;
  names.pid = 4711;
  names.directory = "/no/folder";
  if (!taken && !pattern.empty() && !pattern.starts_with('/')) {
    EXPECT_THAT(find_core(names), testing::StartsWith("not at /no/folder/"));
  }
  names.dumped = false;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_CORE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_CORE, &none), 0);
  EXPECT_EQ(find_core(names),
            taken ? "" : "none: the limit is 0; `ulimit -c unlimited` before drun allows one");
  const rlimit most{before.rlim_max, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_CORE, &most), 0);
  if (before.rlim_max > 4'096) {
    EXPECT_EQ(find_core(names), "");
    const rlimit too_low{4'095, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_CORE, &too_low), 0);
    EXPECT_THAT(find_core(names), testing::StartsWith(taken ? "" : "none: the limit is 4095; "));
  }
  ASSERT_EQ(::setrlimit(RLIMIT_CORE, &before), 0);
}

TEST(FindCoreTest, AFileThatIsThereIsNamed) {
  std::string pattern;
  std::getline(std::ifstream("/proc/sys/kernel/core_pattern"), pattern);
  std::string uses_pid;
  std::getline(std::ifstream("/proc/sys/kernel/core_uses_pid"), uses_pid);
  if (pattern.empty() || pattern.find_first_of("|/%") != std::string::npos)
    GTEST_SKIP() << "core files of this machine are elsewhere: " << pattern;
  const drun::test::TemporaryDirectory folder;
  CoreNames names;
  names.pid = 4711;
  names.directory = folder.file("work");
  const std::string core = core_path_pattern(pattern, uses_pid != "0", names);
  std::filesystem::create_directories(core);
  EXPECT_THAT(find_core(names), testing::StartsWith("not at ")) << "that is a folder";
  std::filesystem::remove(core);
  std::ofstream(core) << "core";
  EXPECT_EQ(find_core(names), core);
}

}  // namespace
}  // namespace drun::launcher
