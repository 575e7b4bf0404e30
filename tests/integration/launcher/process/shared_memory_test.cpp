// What is removed of /dev/shm, with real files and processes that have them.
#include "launcher/process/shared_memory.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "support/file_holder.hpp"

namespace drun::process {
namespace {

using drun::test::Has;
using drun::test::Holder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SharedMemoryTest : public ::testing::Test {
 protected:
  SharedMemoryTest() {
    std::string name = "/dev/shm/drun-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    folder_ = name;
  }
  ~SharedMemoryTest() override { std::filesystem::remove_all(folder_); }

  std::string make(const std::string& name) const {
    std::ofstream(folder_ + "/" + name) << std::string(8192, 'x');
    return folder_ + "/" + name;
  }
  [[nodiscard]] bool is_there(const std::string& name) const {
    return std::filesystem::exists(folder_ + "/" + name);
  }
  [[nodiscard]] SharedMemory begun(std::vector<std::string> keep = {}) const {
    SharedMemory memory(std::move(keep), folder_);
    memory.begin();
    return memory;
  }

  std::string folder_;
};

TEST_F(SharedMemoryTest, WhatAWorkerHadIsRemovedWhenItIsGone) {
  for (const Has has : {Has::Open, Has::OpenToRead, Has::Mapped}) {
    SharedMemory memory = begun();
    Holder worker(make("psm_0a1b2c3d"), has);
    EXPECT_EQ(memory.look(::getpid()), 1U);
    EXPECT_THAT(memory.sweep().names, IsEmpty()) << "the worker lives";
    EXPECT_TRUE(is_there("psm_0a1b2c3d"));
    worker.end();
    const auto swept = memory.sweep();
    EXPECT_THAT(swept.names, ElementsAre("psm_0a1b2c3d"));
    EXPECT_EQ(swept.bytes, 8192U);
    EXPECT_FALSE(is_there("psm_0a1b2c3d"));
    EXPECT_THAT(memory.sweep().names, IsEmpty()) << "once";
  }
}

TEST_F(SharedMemoryTest, OthersFilesAreNeverRemoved) {
  struct Case {
    const char* why;
    const char* name;
    bool before = false;     // it was there before the workers
    bool kept = false;       // --keep-shm
    bool unseen = false;     // no worker had it when drun looked
    bool linked = false;     // it has another name
    bool elsewhere = false;  // another process has it
  };
  for (const Case& each :
       {Case{.why = "the user's name", .name = "checkpoint"},
        Case{.why = "there before", .name = "nccl-Ab12Cd", .before = true},
        Case{.why = "kept", .name = "nccl-Ab12Cd", .kept = true},
        Case{.why = "not the workers'", .name = "nccl-Ab12Cd", .unseen = true},
        Case{.why = "two names", .name = "nccl-Ab12Cd", .linked = true},
        Case{.why = "somebody else has it, too", .name = "nccl-Ab12Cd", .elsewhere = true}}) {
    SharedMemory memory({each.kept ? "nccl-[A-Z]*" : "psm_*"}, folder_);
    if (!each.before) memory.begin();
    const std::string path = make(each.name);
    if (each.before) memory.begin();
    {
      Holder worker(path, Has::Mapped);
      if (!each.unseen) (void)memory.look(::getpid());
    }
    FileDescriptor elsewhere;
    if (each.elsewhere) elsewhere.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (each.linked) std::filesystem::create_hard_link(path, path + "-too");
    EXPECT_THAT(memory.sweep().names, IsEmpty()) << each.why;
    EXPECT_TRUE(is_there(each.name)) << each.why;
    elsewhere.reset();
    EXPECT_EQ(memory.sweep().names.size(), each.elsewhere ? 1U : 0U) << "later: " << each.why;
    std::filesystem::remove(path);
    std::filesystem::remove(path + "-too");
  }
}

TEST_F(SharedMemoryTest, WhatWasThereWithTwoNamesStaysWhenOneGoes) {
  const std::string path = make("nccl-Ab12Cd");
  std::filesystem::create_hard_link(path, path + "-too");
  SharedMemory memory = begun();
  std::filesystem::remove(path + "-too");
  {
    const Holder worker(path, Has::Open);
    EXPECT_EQ(memory.look(::getpid()), 0U);
  }
  EXPECT_THAT(memory.sweep().names, IsEmpty());
  EXPECT_TRUE(is_there("nccl-Ab12Cd"));
}

// Only what is below the given process is the job's: here that is a process with no children.
TEST_F(SharedMemoryTest, AProcessOfAnotherJobDoesNotCount) {
  SharedMemory memory = begun();
  const Holder childless(make("psm_00000001"), Has::Open);
  Holder other(make("psm_00000002"), Has::Open);
  EXPECT_EQ(memory.look(childless.pid()), 0U);
  other.end();
  EXPECT_THAT(memory.sweep().names, IsEmpty());
}

TEST_F(SharedMemoryTest, AFileOfTheSameNameIsAnother) {
  SharedMemory memory = begun();
  {
    Holder worker(make("torch_12_345_0"), Has::Open);
    ASSERT_EQ(memory.look(::getpid()), 1U);
  }
  // Its number is not used again while it is open.
  const FileDescriptor old(::open((folder_ + "/torch_12_345_0").c_str(), O_PATH | O_CLOEXEC));
  std::filesystem::remove(folder_ + "/torch_12_345_0");
  make("torch_12_345_0");
  EXPECT_THAT(memory.sweep().names, IsEmpty());
  EXPECT_TRUE(is_there("torch_12_345_0"));
}

TEST_F(SharedMemoryTest, WhatTheProgramRemovesItselfIsForgotten) {
  SharedMemory memory = begun();
  Holder worker(make("sem.mp-abc_12xy"), Has::Open);
  ASSERT_EQ(memory.look(::getpid()), 1U);
  std::filesystem::remove(folder_ + "/sem.mp-abc_12xy");
  EXPECT_EQ(memory.look(::getpid()), 0U);
}

// They are somebody else's, and who looks for their holders reads what all workers have mapped.
TEST_F(SharedMemoryTest, FilesThatNobodyHasAreLookedForSevenTimes) {
  SharedMemory memory = begun();
  make("psm_0a1b2c3d");
  for (int i = 0; i < 7; ++i)
    EXPECT_EQ(memory.look(::getpid()), 0U);
  Holder late(folder_ + "/psm_0a1b2c3d", Has::Open);
  EXPECT_EQ(memory.look(::getpid()), 0U);
}

TEST_F(SharedMemoryTest, AFolderThatIsNotThereHasNothing) {
  SharedMemory memory({}, folder_ + "/none");
  memory.begin();
  EXPECT_EQ(memory.look(::getpid()), 0U);
  EXPECT_THAT(memory.sweep().names, IsEmpty());
}

}  // namespace
}  // namespace drun::process
