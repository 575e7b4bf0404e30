// drun can always be ended, and tells why it ends, whatever hangs: a program, a folder.
#include <signal.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/expect_end.hpp"
#include "support/hung_folder.hpp"

namespace drun::test {
namespace {

using testing::EndsWith;

class HangTest : public testing::Test {
 protected:
  HangTest() : path_(make_folder()), hung_(path_) {}
  void SetUp() override {
    if (!hung_.hangs()) GTEST_SKIP() << "may not mount a file system of its own";
  }
  // A script that is there, but not what runs it.
  [[nodiscard]] std::string script() const {
    return directory_.write("script", "#!" + path_ + "/python3\n", true);
  }

  const TempDir directory_;
  const std::string path_;

 private:
  [[nodiscard]] std::string make_folder() const {
    const auto folder = directory_.path() / "hung";
    std::filesystem::create_directory(folder);
    return folder.string();
  }
  const HungFolder hung_;
};

TEST_F(HangTest, OneSignalEndsAJobWhoseProgramHangs) {
  DrunProcess process({"--shutdown-timeout", "600", "--nproc-per-node", "2", script()});
  // Two helpers, and what is to become the first worker.
  ASSERT_TRUE(eventually([&] { return process.survivors().size() >= 3; }));
  process.signal(SIGTERM);
  expect_end(process, 128 + SIGTERM);
  EXPECT_THAT(process.err(), EndsWith("drun: stopped: received SIGTERM\n"));
}

TEST_F(HangTest, OneSignalEndsAgentsWhoseProgramsHang) {
  DrunProcess process({"--shutdown-timeout", "600", "--local-nodes", "2", script()});
  // Two agents with their helpers and what is to become a worker.
  ASSERT_TRUE(eventually([&] { return process.survivors().size() >= 7; }));
  process.signal(SIGTERM);
  expect_end(process, 128 + SIGTERM);
}

}  // namespace
}  // namespace drun::test
