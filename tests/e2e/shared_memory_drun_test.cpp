// What drun removes of /dev/shm when its workers are gone.
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// As libraries call theirs. No other test makes such a file: the digits are this process's.
std::string scratch(char kind) {
  char digits[9];
  std::snprintf(digits, sizeof digits, "%c%07x", kind, static_cast<unsigned>(::getpid()));
  return std::string("psm_") + digits;
}

class SharedMemoryDrunTest : public ::testing::Test {
 protected:
  ~SharedMemoryDrunTest() override {
    for (const char kind : {'a', 'b', 'c'})
      std::filesystem::remove(path(kind));
  }
  static std::string path(char kind) { return "/dev/shm/" + scratch(kind); }

  // Rank 1 makes the files and is in their way when it is told to stop; rank 0 fails then, once.
  static Arguments job() {
    return {"sh", "-c", R"(
test $TORCHELASTIC_RESTART_COUNT = 0 || { ls /dev/shm | grep -c -e "$1" -e "$2"; exit 0; }
if test $RANK = 0; then
  while ! test -e "$0"; do sleep 0.05; done
  exit 7
fi
trap '' TERM
exec 8<>/dev/shm/$1 9<>/dev/shm/$2
: > "$0"
while :; do sleep 1; done)"};
  }
};

TEST_F(SharedMemoryDrunTest, WhatKilledWorkersLeaveIsRemovedBeforeTheRestart) {
  const TempDir folder;
  const Finished finished =
      run_drun(Arguments{"--nproc-per-node", "2", "--max-restarts", "1", "--shutdown-timeout", "3",
                         "--keep-shm", "psm_b*"} +
               job() + Arguments{(folder.path() / "made").string(), scratch('a'), scratch('b')});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.out, "1\n1\n") << "the new workers find the kept one alone";
  EXPECT_THAT(finished.err, HasSubstr("drun: removed 1 file (0 B) that the workers left in "
                                      "/dev/shm: " +
                                      scratch('a') + "\n"));
  EXPECT_FALSE(std::filesystem::exists(path('a')));
  EXPECT_TRUE(std::filesystem::exists(path('b'))) << "kept at the end of the job, too";
}

TEST_F(SharedMemoryDrunTest, TheEndOfTheJobSweepsAsWell) {
  const TempDir folder;
  const Finished finished =
      run_drun(Arguments{"--nproc-per-node", "2", "--shutdown-timeout", "3"} + job() +
               Arguments{(folder.path() / "made").string(), scratch('a'), scratch('b')});
  EXPECT_EQ(finished.code, 7) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("drun: removed 2 files (0 B) that the workers left in "));
  EXPECT_FALSE(std::filesystem::exists(path('a')));
  EXPECT_FALSE(std::filesystem::exists(path('b')));
}

// As workers do that find at once that something is missing. Nobody is told to stop, so only a look
// while they run finds the file: they give it the time.
TEST_F(SharedMemoryDrunTest, WhatWorkersLeaveThatFailSoonAfterTheirStartIsRemoved) {
  const Finished finished =
      run_drun(Arguments{"sh", "-c", "exec 8<>/dev/shm/$0 && sleep 4; exit 7", scratch('a')});
  EXPECT_EQ(finished.code, 7) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("drun: removed 1 file (0 B) that the workers left in "));
  EXPECT_FALSE(std::filesystem::exists(path('a')));
}

// Its libraries had the time to clean up. It has the file for longer than drun takes for its first
// look.
TEST_F(SharedMemoryDrunTest, WhatASuccessfulJobLeavesIsMeantForSomebody) {
  const Finished finished = run_drun(
      Arguments{"sh", "-c", "exec 8<>/dev/shm/$0 && sleep 3 && echo result >&8", scratch('a')});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(std::filesystem::exists(path('a')));
  EXPECT_THAT(finished.err, Not(HasSubstr("/dev/shm")));
}

TEST_F(SharedMemoryDrunTest, WithAStarNothingIsTouched) {
  const TempDir folder;
  const Finished finished =
      run_drun(Arguments{"--nproc-per-node", "2", "--shutdown-timeout", "3", "--keep-shm", "*"} +
               job() + Arguments{(folder.path() / "made").string(), scratch('a'), scratch('b')});
  EXPECT_EQ(finished.code, 7) << finished.err;
  EXPECT_TRUE(std::filesystem::exists(path('a')));
  EXPECT_THAT(finished.err, Not(HasSubstr("/dev/shm")));
}

}  // namespace
}  // namespace drun::test
