// What the ranks have of GPUs; a stand-in for NVIDIA's library says which processes are on them.
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random_bytes.hpp"
#include "support/drun_process.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class GpuUsageDrunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::error_code none;
    if (std::filesystem::read_symlink("/proc/self/ns/pid", none) != "pid:[4026531836]")
      GTEST_SKIP() << "in a container with process numbers of its own nobody is asked";
  }
  Launch launch() const {
    Launch result;
    result.environment = {"LD_LIBRARY_PATH=" FAKE_NVML_FOLDER, "FAKE_NVML=GPU-a@0:1:0 GPU-b@0:2:0",
                          "FAKE_NVML_PROCESSES=" + list()};
    return result;
  }
  // Two ranks, until there is a file "end": the first is on one GPU, and a process below the other
  // one on both.
  Arguments job(const Arguments& flags) const {
    return Arguments{"--rdzv-id", job_, "--nproc-per-node", "2"} + flags +
           Arguments{"sh", "-c", R"(
if test $RANK = 0; then echo "0 $$ 2048 30" >> "$0"; exec sh -c "$1"; fi
sh -c 'printf "1 $$ 3072 80\n0 $$ 1024 40\n" >> "$0"; '"$1" "$0")",
                     list(), "until test -e '" + end() + "'; do sleep 0.05; done"};
  }
  Finished status(const Arguments& flags) const {
    Launch launch;
    launch.argv = Arguments{places::program("drunctl"), "status", job_} + flags;
    return DrunProcess(launch).finish();
  }
  // Samples are taken before both have their lines, too.
  void await_both() const {
    const auto both = [this] {
      const Finished said = status({"--json"});
      return said.out.find(kFirst) != std::string::npos &&
             said.out.find(kSecond) != std::string::npos;
    };
    EXPECT_TRUE(eventually(both)) << status({"--json"}).out;
  }
  [[nodiscard]] std::string list() const { return (folder_.path() / "processes").string(); }
  [[nodiscard]] std::string end() const { return (folder_.path() / "end").string(); }

  static constexpr const char* kFirst = R"("gpu_peak_kib":2048,"gpu_percent":30})";
  static constexpr const char* kSecond = R"("gpu_peak_kib":4096,"gpu_percent":60})";
  TempDir folder_;
  // Other tests run jobs on this machine, too.
  const std::string job_ = "gpus-" + random_name(12);
};

TEST_F(GpuUsageDrunTest, EventsSummaryAndStatusTellWhatEachRankHas) {
  const auto events = folder_.path() / "events";
  DrunProcess drun(job({"--events", events.string(), "--summary"}), launch());
  await_both();
  EXPECT_THAT(status({}).out, HasSubstr("  GPU memory          2.0 MiB"));
  std::ofstream(end()) << "";
  const Finished finished = drun.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.survivors, IsEmpty());
  EXPECT_THAT(finished.err, HasSubstr("drun:   GPU use             30% "));
  EXPECT_THAT(finished.err,
              HasSubstr("drun:   rank 1 used 2.0 times the median's GPU use: 60%, not 30%\n"));
  const std::string lines = read_file(events);
  EXPECT_THAT(lines, HasSubstr(kFirst));
  EXPECT_THAT(lines, HasSubstr(kSecond));
}

TEST_F(GpuUsageDrunTest, WithoutAFlagTheDriverIsAskedWhenSomebodyWantsToKnow) {
  DrunProcess drun(job({}), launch());
  await_both();
  std::ofstream(end()) << "";
  const Finished finished = drun.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST_F(GpuUsageDrunTest, ALibraryThatHangsOrDiesHarmsNothing) {
  for (const char* how : {"hangs", "dies"}) {
    std::ofstream(list()) << how;
    const auto asked = list() + ".asked";
    const auto events = folder_.path() / how;
    std::filesystem::remove(asked);
    const Finished finished = run_drun(
        {"--events", events.string(), "--summary", "sh", "-c",
         R"(for i in $(seq 1000); do test -e "$0" && break; sleep 0.1; done; exit 7)", asked},
        launch());
    EXPECT_EQ(finished.code, 7) << finished.err;
    EXPECT_TRUE(std::filesystem::exists(asked)) << how;
    EXPECT_THAT(finished.survivors, IsEmpty()) << how;
    EXPECT_THAT(read_file(events), HasSubstr(R"("gpu_peak_kib":-1,"gpu_percent":-1})")) << how;
    EXPECT_THAT(finished.err, HasSubstr("drun:   context switches ")) << how;
    EXPECT_THAT(finished.err, Not(HasSubstr("GPU use"))) << how;
  }
}

}  // namespace
}  // namespace drun::test
