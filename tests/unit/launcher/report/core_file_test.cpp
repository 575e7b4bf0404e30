#include "launcher/report/core_file.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace drun::launcher
