// With LD_LIBRARY_PATH at a stand-in for NVIDIA's library, which is loaded in a child.
#include "launcher/devices/nvml_processes.hpp"

#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>

#include <gtest/gtest.h>

#include "base/child_answer.hpp"
#include "support/file_tree.hpp"

namespace drun::launcher {
namespace {

constexpr std::chrono::seconds kPatience{60};

class NvmlProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::error_code none;
    if (std::filesystem::read_symlink("/proc/self/ns/pid", none) != "pid:[4026531836]")
      GTEST_SKIP() << "in a container with process numbers of its own nobody is asked";
    ::setenv("FAKE_NVML", "GPU-aa@0:1b:0 lost@0:0:0 GPU-cc@0:1d:0", 1);
    tree_.write("/processes", "0 11 2048 30\n0 12\n2 13 - -\n");
    ::setenv("FAKE_NVML_PROCESSES", (tree_.root() + "/processes").c_str(), 1);
  }
  void TearDown() override { ::unsetenv("FAKE_NVML_PROCESSES"); }

  static std::string in_child(const std::function<std::string(const NvmlProcesses&)>& ask) {
    return answer_of_child(
               [&]() -> std::optional<std::string> {
                 const auto nvml = NvmlProcesses::load();
                 return nvml ? ask(*nvml) : "no library";
               },
               kPatience)
        .value_or("no answer");
  }

  test::FileTree tree_;
};

TEST_F(NvmlProcessesTest, EachHasItsGpuAndItsMemoryIfThatIsKnown) {
  EXPECT_EQ(in_child([](const NvmlProcesses& nvml) {
              std::string text;
              const auto all = nvml.list().value();
              for (const GpuProcess& each : all)
                text += std::to_string(each.gpu) + " " + std::to_string(each.pid) + " " +
                        std::to_string(each.memory_kib) + " " + std::to_string(each.percent) + "\n";
              return text;
            }),
            "0 11 2048 -1\n0 12 1024 -1\n2 13 -1 -1\n");
}

// Of its samples the old and the absurd do not count.
TEST_F(NvmlProcessesTest, HowBusyAGpuWasIsToldSinceTheLastSample) {
  EXPECT_EQ(in_child([](const NvmlProcesses& nvml) {
              std::string text;
              std::uint64_t since = 1;
              for (int i = 0; i < 2; ++i) {
                const std::uint64_t before = since;
                const auto all = nvml.busy(0, since).value();
                for (const auto& [pid, percent] : all)
                  text += std::to_string(pid) + " " + std::to_string(percent) + "\n";
                text += since > before ? "later\n" : "";
              }
              return text;
            }),
            "11 30\nlater\n11 30\nlater\n");
}

TEST_F(NvmlProcessesTest, AGpuOnWhichNobodyRanAndOneThatDoesNotTell) {
  tree_.write("/processes", "0 11\n2 13 - -\n");
  EXPECT_EQ(in_child([](const NvmlProcesses& nvml) {
              std::uint64_t since = 1;
              const auto idle = nvml.busy(0, since);
              return std::string(idle && idle->empty() ? "idle" : "busy") +
                     (nvml.busy(1, since) || nvml.busy(2, since) ? " told" : " not told");
            }),
            "idle not told");
}

}  // namespace
}  // namespace drun::launcher
