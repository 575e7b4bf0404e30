// Before a restart drun waits until the GPUs have given back the memory of the dead; a stand-in for
// NVIDIA's library says whose they list.
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class GpuReleaseDrunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::error_code none;
    if (std::filesystem::read_symlink("/proc/self/ns/pid", none) != "pid:[4026531836]")
      GTEST_SKIP() << "in a container with process numbers of its own nobody is asked";
  }
  // The worker is listed at GPU 1, fails a while after drun has found the GPUs, and says in the
  // next round what is listed then.
  Launch launch(bool driver) const {
    Launch result;
    result.environment = {"LD_LIBRARY_PATH=" FAKE_NVML_FOLDER,
                          "FAKE_NVML_PROCESSES=" + list().string()};
    if (driver) result.environment.emplace_back("FAKE_NVML=GPU-a@0:1:0 GPU-b@0:2:0");
    return result;
  }
  Arguments job(int tries = 1'000) const {
    return {"--max-restarts", "1", "sh", "-c", R"(
if test $TORCHELASTIC_RESTART_COUNT = 1; then echo "listed: $(cat "$0")."; exit 0; fi
echo "1 $$" > "$0"
for i in $(seq $1); do test -e "$0.asked" && break; sleep 0.1; done
sleep 1
exit 7)", list().string(), std::to_string(tries)};
  }
  [[nodiscard]] std::filesystem::path list() const { return folder_.path() / "processes"; }

  TempDir folder_;
};

TEST_F(GpuReleaseDrunTest, TheNewWorkersStartWhenTheDeadAreListedNoMore) {
  DrunProcess drun(job(), launch(true));
  ASSERT_TRUE(drun.wait_for_err("restart 1/1 after rank 0")) << drun.err();
  std::ofstream(list()) << "";  // the driver is done with it
  const Finished finished = drun.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.out, "listed: .\n");
  EXPECT_THAT(finished.err, Not(HasSubstr("not given back")));
}

TEST_F(GpuReleaseDrunTest, TheyAreNotWaitedForForEver) {
  const Finished finished = run_drun(job(), launch(true));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("listed: 1 "));
  EXPECT_THAT(finished.err, HasSubstr("drun: warning: GPU 1 has not given back the memory of "
                                      "process "));
  EXPECT_THAT(finished.err, HasSubstr(" of the last round within 10.0 s; the new workers start "
                                      "without it\n"));
}

TEST_F(GpuReleaseDrunTest, ADriverThatGivesNoAnswerAnyMoreIsTold) {
  const Finished finished = run_drun({"--max-restarts", "1", "sh", "-c", R"(
test $TORCHELASTIC_RESTART_COUNT = 1 && exit 0
echo "1 $$" > "$0"
for i in $(seq 1000); do test -e "$0.asked" && break; sleep 0.1; done
sleep 1
echo dies > "$0"
exit 7)",
                                      list().string()},
                                     launch(true));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(
      finished.err,
      HasSubstr("drun: warning: the GPUs' driver does not say any more whether it has given "
                "back the memory of the last round; "));
  EXPECT_THAT(finished.err, Not(HasSubstr("until the GPUs had")));
}

TEST_F(GpuReleaseDrunTest, WithoutADriverNobodyWaits) {
  const Finished finished = run_drun(job(40), launch(false));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("listed: 1 "));
  EXPECT_THAT(finished.err, Not(HasSubstr("GPU")));
}

}  // namespace
}  // namespace drun::test
