// What a sheet says of a made-up machine.
#include "facts/gather.hpp"

#include <sys/resource.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/addresses.hpp"
#include "support/file_tree.hpp"

namespace drun::facts {
namespace {

using test::FileTree;
using testing::HasSubstr;
using testing::Not;

TEST(GatherTest, KnowsThisMachine) {
  const Sheet sheet = gather({});
  for (const char* key : {"kernel", "glibc", "drun", "boot", "shm", "memory", "cpus", "nofile",
                          "memlock", "stack", "core"})
    EXPECT_TRUE(sheet.contains(key)) << key;
}

TEST(GatherTest, ReadsTheDriversFolder) {
  FileTree files;
  files.write(
      "/proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 2024\nGCC 12\n");
  files.write("/proc/driver/nvidia/gpus/0000:01:00.0/information",
              "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 1\n");
  files.write("/proc/driver/nvidia/gpus/0000:02:00.0/information",
              "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 2\n");
  FactsQuery question;
  question.root = files.root();
  const Sheet sheet = gather(question);
  EXPECT_EQ(sheet.at("driver"), "550.54.15");
  EXPECT_EQ(sheet.at("gpus"), "2 x NVIDIA H100 80GB HBM3");
}

TEST(GatherTest, ReadsTheLimitOfTheCgroupAndThoseAboveIt) {
  FileTree files;
  files.write("/proc/self/cgroup", "0::/a/b\n");
  files.write("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  files.write("/proc/meminfo", "MemFree: 1 kB\nMemTotal:       67108864 kB\n");
  files.write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  files.write("/sys/fs/cgroup/a/memory.max", "34359738368\n");
  FactsQuery question;
  question.root = files.root();
  EXPECT_EQ(gather(question).at("memory"), "32 GiB");
  files.remove("/sys/fs/cgroup/a");
  EXPECT_EQ(gather(question).at("memory"), "64 GiB");
}

TEST(GatherTest, FindsVersionsByFile) {
  FileTree files;
  files.write("/venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
  files.write("/usr/bin/python3.11", "");
  files.link("/venv/bin/python", "/usr/bin/python3.11");
  const std::string packages = "/venv/lib/python3.11/site-packages";
  files.write(packages + "/torch/version.py",
              "from typing import Optional\n__all__ = ['__version__']\n"
              "__version__ = '2.4.0+cu121'\ndebug = False\ncuda: Optional[str] = '12.1'\n");
  files.write(packages + "/nvidia_nccl_cu12-2.20.5.dist-info/METADATA", "");
  FactsQuery question;
  question.root = files.root();
  question.interpreter = files.root() + "/venv/bin/python";
  const Sheet sheet = gather(question);
  EXPECT_EQ(sheet.at("python"), "3.11");
  EXPECT_EQ(sheet.at("torch"), "2.4.0+cu121");
  EXPECT_EQ(sheet.at("cuda"), "12.1");
  EXPECT_EQ(sheet.at("nccl"), "2.20.5");
}

TEST(GatherTest, PythonPathComesBeforeThePackagesOfTheInterpreter) {
  FileTree files;
  files.write("/usr/bin/python3.11", "");
  files.write("/usr/lib/python3/dist-packages/torch/version.py", "__version__ = '1.13.1'\n");
  files.write("/mine/torch/version.py", "__version__ = \"2.8.0\"\n");
  FactsQuery question;
  question.root = files.root();
  question.interpreter = files.root() + "/usr/bin/python3.11";
  EXPECT_EQ(gather(question).at("torch"), "1.13.1");
  question.environment = {"PYTHONPATH=" + files.root() + "/none:" + files.root() + "/mine"};
  EXPECT_EQ(gather(question).at("torch"), "2.8.0");
}

TEST(GatherTest, FindsLibrariesByTheNamesThatLinksLeadTo) {
  FileTree files;
  files.write("/usr/lib/x86_64-linux-gnu/libnccl.so.2.21.5", "");
  files.link("/usr/lib/x86_64-linux-gnu/libnccl.so.2",
             "/usr/lib/x86_64-linux-gnu/libnccl.so.2.21.5");
  files.write("/usr/local/cuda-12.4/version.json", "{}");
  files.link("/usr/local/cuda", "/usr/local/cuda-12.4");
  FactsQuery question;
  question.root = files.root();
  const Sheet sheet = gather(question);
  EXPECT_EQ(sheet.at("nccl"), "2.21.5");
  EXPECT_EQ(sheet.at("cuda"), "12.4");
}

TEST(GatherTest, NoValueOfAVariableAndNoWordOfTheProgramIsInTheSheet) {
  FileTree files;
  files.write("/train.py", "password = 'hunter2'\n");
  FactsQuery question;
  question.files = {files.root() + "/train.py"};
  question.environment = {"NCCL_DEBUG=hunter2", "SECRET=hunter2", "CUDA_VISIBLE_DEVICES=3"};
  question.salt = "job";
  const Sheet sheet = gather(question);
  EXPECT_THAT(encode(sheet), Not(HasSubstr("hunter2")));
  EXPECT_TRUE(sheet.contains("env NCCL_DEBUG"));
  EXPECT_FALSE(sheet.contains("env SECRET"));
  EXPECT_FALSE(sheet.contains("env CUDA_VISIBLE_DEVICES"));
  question.salt = "another job";
  EXPECT_NE(gather(question).at("program"), sheet.at("program"));
  EXPECT_NE(gather(question).at("env NCCL_DEBUG"), sheet.at("env NCCL_DEBUG"));
}

TEST(GatherTest, TellsProgramsApartByTheirLastByte) {
  FileTree files;
  const std::string body(700'000, 'x');
  files.write("/a", body + "1");
  files.write("/b", body + "2");
  files.write("/c", body + "1");
  const auto digest = [&](const std::string& name) {
    FactsQuery question;
    question.files = {files.root() + name};
    return gather(question).at("program");
  };
  EXPECT_NE(digest("/a"), digest("/b"));
  EXPECT_EQ(digest("/a"), digest("/c"));
}

TEST(GatherTest, AProgramThatIsNotThereHasNoDigest) {
  FactsQuery question;
  question.files = {"/nonexistent/train.py", "/tmp"};
  EXPECT_FALSE(gather(question).contains("program"));
}

TEST(GatherTest, TakesTheWorkersLimitOfOpenFiles) {
  FactsQuery question;
  question.open_files = rlimit{1234, 5000};
  EXPECT_EQ(gather(question).at("nofile"), "1234");
}

// The node that others meet at by a name is known by that name.
TEST(GatherTest, ItsNetworkIsFoundByANameToo) {
  FactsQuery question;
  question.address = "node0.cluster";
  question.look_up = [](const std::string&) { return std::vector<std::string>{}; };
  EXPECT_FALSE(gather(question).contains("mtu"));
  bool tried = false;
  for (const Interface& interface : own_interfaces()) {
    for (const std::string& address : interface.addresses) {
      if (is_loopback_address(address) || mtu_at(address) == 0) continue;
      question.look_up = [&address](const std::string& name) {
        EXPECT_EQ(name, "node0.cluster");
        return std::vector<std::string>{"127.0.1.1", "192.0.2.99", address};
      };
      EXPECT_EQ(gather(question).at("mtu"), std::to_string(mtu_at(address)));
      tried = true;
    }
  }
  if (!tried) GTEST_SKIP() << "this machine has a loopback interface alone";
}

}  // namespace
}  // namespace drun::facts
