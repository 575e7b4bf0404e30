#include "launcher/look/trusted_tool.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::launcher {
namespace {

class TrustedToolTest : public testing::Test {
 protected:
  std::string place() const { return folder_.path().string(); }
  std::string real(const std::string& path) const {
    return std::filesystem::canonical(path).string();
  }

  const test::TempDir folder_;
  const std::string tool_ = folder_.write("tool", "#!/bin/sh\n", true);
};

TEST_F(TrustedToolTest, FindsItsOwn) {
  EXPECT_EQ(find_trusted_tool("tool", "/nowhere:" + place()), real(tool_));
  EXPECT_EQ(find_trusted_tool("other", place()), "");
  EXPECT_EQ(find_trusted_tool("tool", ""), "");
}

TEST_F(TrustedToolTest, FollowsLinks) {
  std::filesystem::create_symlink(tool_, folder_.path() / "link");
  EXPECT_EQ(find_trusted_tool("link", place()), real(tool_));
}

TEST_F(TrustedToolTest, PassesOverWhatOthersMayWrite) {
  for (const mode_t mode : {0777U, 0775U, 0757U}) {
    ASSERT_EQ(::chmod(tool_.c_str(), mode), 0);
    EXPECT_EQ(find_trusted_tool("tool", place()), "") << mode;
  }
  ASSERT_EQ(::chmod(tool_.c_str(), 0755), 0);
  EXPECT_EQ(find_trusted_tool("tool", place()), real(tool_));
}

TEST_F(TrustedToolTest, PassesOverAFolderThatOthersMayWrite) {
  ASSERT_EQ(::chmod(place().c_str(), 0777), 0);
  EXPECT_EQ(find_trusted_tool("tool", place()), "");
  ASSERT_EQ(::chmod(place().c_str(), 01777), 0);  // nobody can replace it there
  EXPECT_EQ(find_trusted_tool("tool", place()), real(tool_));
}

TEST_F(TrustedToolTest, PassesOverAnotherUsersProgram) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown(tool_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(find_trusted_tool("tool", place()), "");
}

TEST_F(TrustedToolTest, PassesOverAFolderOfThePathThatIsRelative) {
  EXPECT_EQ(find_trusted_tool("tool", ".:"), "");
}

}  // namespace
}  // namespace drun::launcher
