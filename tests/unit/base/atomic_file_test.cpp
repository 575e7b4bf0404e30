#include "base/atomic_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "base/read_answer.hpp"
#include "support/full_pipe.hpp"
#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

namespace drun {
namespace {

class AtomicFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return folder_.file(name); }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::string pipe() const {
    EXPECT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    return path("pipe");
  }
  [[nodiscard]] auto files() const {
    const std::filesystem::directory_iterator all(path("."));
    return std::distance(begin(all), end(all));
  }

 private:
  const test::TemporaryDirectory folder_;
};

TEST_F(AtomicFileTest, AFileIsReplacedWholeAndLeavesNothingBeside) {
  EXPECT_TRUE(write_whole_file(path("report"), "one"));
  EXPECT_TRUE(write_whole_file(path("report"), "two"));
  EXPECT_EQ(read("report"), "two");
  EXPECT_FALSE(write_whole_file(path("x/report"), "one"));
  EXPECT_TRUE(write_whole_file("/dev/null", "one"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, AFileThatDoesNotFitLeavesTheOldOne) {
  ASSERT_TRUE(write_whole_file(path("report"), "one"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{1'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const Status written = write_whole_file(path("report"), std::string(2'000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().what(), "write " + path("report") + ": File too large");
  EXPECT_EQ(read("report"), "one");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, WhatIsOpenAlreadyIsAddedTo) {
  const FileDescriptor file(
      ::open(path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  for (const char* folder : {"/dev/fd/", "/proc/self/fd/"}) {
    const std::string name = folder + std::to_string(file.get());
    EXPECT_TRUE(is_written_in_place(name)) << name;
    EXPECT_TRUE(write_whole_file(name, "+")) << name;
  }
  EXPECT_EQ(read("log"), "++");
  EXPECT_FALSE(is_written_in_place(path("log")));
  EXPECT_FALSE(is_written_in_place(path("none")));
}

// Files like any others, in memory.
TEST_F(AtomicFileTest, AFileInSharedMemoryIsReplaced) {
  std::string name = "/dev/shm/drun-test-XXXXXX";
  const FileDescriptor file(::mkstemp(name.data()));
  if (!file) GTEST_SKIP() << "no /dev/shm that can be written";
  EXPECT_FALSE(is_written_in_place(name));
  ::unlink(name.c_str());
}

TEST_F(AtomicFileTest, APipeIsWrittenToWhereSomebodyReadsIt) {
  const std::string fifo = pipe();
  const auto status = write_whole_file(fifo, "one");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what(), "write " + fifo + ": nobody reads this pipe");
  const FileDescriptor reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(write_whole_file(fifo, "two"));
  char text[8] = {};
  EXPECT_EQ(::read(reader.get(), text, sizeof text), 3);
  EXPECT_STREQ(text, "two");
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
}

TEST_F(AtomicFileTest, AReaderThatComesLateGetsAll) {
  const std::string fifo = pipe();
  const FileDescriptor reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  FileDescriptor full(::open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  const std::size_t before = test::fill_pipe(full.get(), std::string(4'096, '-'));
  ASSERT_GT(before, 0U);
  const std::string text(1 << 20, 'x');  // many times what the pipe holds
  Status written = Done{};
  std::thread writer([&] {
    written = write_whole_file(fifo, text);
    full.reset();  // the end of it
  });
  const auto deadline = std::chrono::steady_clock::now() + test::kPatience;
  const auto got = read_answer(reader.get(), 2 * text.size(), deadline);
  writer.join();
  EXPECT_TRUE(written) << written.error().what();
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->substr(before) == text);
}

}  // namespace
}  // namespace drun
