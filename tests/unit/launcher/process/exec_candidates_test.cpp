#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "launcher/process/spawn.hpp"

namespace drun::process {
namespace {

TEST(ExecCandidatesTest, LooksAProgramUpAsAShellDoes) {
  using Paths = std::vector<std::string>;
  const struct {
    const char* program;
    const char* path;
    Paths expected;
  } cases[] = {
      {"ls", "/usr/bin:/bin", {"/usr/bin/ls", "/bin/ls"}},
      {"ls", "/usr/bin/", {"/usr/bin/ls"}},
      {"ls", "bin", {"bin/ls"}},
      {"./ls", "/usr/bin:/bin", {"./ls"}},
      {"a/b", "/usr/bin", {"a/b"}},
      {"/bin/ls", "/usr/bin", {"/bin/ls"}},
      {"ls", "", {"./ls"}},  // an empty element is the working directory
      {"ls", ":/bin", {"./ls", "/bin/ls"}},
      {"ls", "/bin:", {"/bin/ls", "./ls"}},
      {"ls", "/a::/b", {"/a/ls", "./ls", "/b/ls"}},
      {"", "/bin", {}},
  };
  for (const auto& c : cases)
    EXPECT_EQ(exec_candidates(c.program, c.path), c.expected) << c.program << " in " << c.path;
}

}  // namespace
}  // namespace drun::process
