#include "launcher/event_sinks/event_sink.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "support/full_pipe.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using testing::HasSubstr;
using Kind = EventTarget::Kind;

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class EventSinkTest : public testing::Test {
 protected:
  std::unique_ptr<EventSink> file_sink(std::uint64_t max_size = 0) const {
    return make_event_sink({}, path_, max_size);
  }
  static std::unique_ptr<EventSink> command_sink(std::string command) {
    return make_event_sink({Kind::Command, std::move(command), -1}, "", 0);
  }
  test::TemporaryDirectory folder_;
  const std::string path_ = folder_.file("events.jsonl");
};

TEST_F(EventSinkTest, AFileKeepsWhatItHas) {
  std::ofstream(path_) << "before\n";
  const auto sink = file_sink();
  const auto result = sink->write(std::vector<std::string>{"one\n", "two\n"});
  EXPECT_EQ(result.taken, 2U);
  EXPECT_EQ(result.written, 2U);
  EXPECT_EQ(result.why, "");
  EXPECT_EQ(content(path_), "before\none\ntwo\n");
}

TEST_F(EventSinkTest, AFullDiskLosesLinesAndSaysSo) {
  const auto sink = make_event_sink({}, "/dev/full", 0);
  const auto result = sink->write(std::vector<std::string>{"one\n", "two\n"});
  EXPECT_EQ(result.taken, 2U);
  EXPECT_EQ(result.written, 0U);
  EXPECT_EQ(result.why, "write /dev/full: No space left on device");
  const auto nowhere = make_event_sink({}, folder_.file("no/events"), 0);
  EXPECT_THAT(nowhere->write(std::vector<std::string>{"one\n"}).why,
              HasSubstr("No such file or directory"));
}

TEST_F(EventSinkTest, AFileThatWouldGrowTooLargeIsPutAside) {
  const auto sink = file_sink(8);
  for (const char* line : {"1111\n", "2222\n", "a longer line\n", "3333\n"})
    EXPECT_EQ(sink->write(std::vector<std::string>{line}).written, 1U);
  EXPECT_EQ(content(path_), "3333\n");
  EXPECT_EQ(content(path_ + ".1"), "a longer line\n");
  EXPECT_EQ(content(path_ + ".2"), "2222\n");
  EXPECT_EQ(content(path_ + ".3"), "1111\n");
}

// Several agents of one machine may share a file.
TEST_F(EventSinkTest, WhoSharesAFileTearsNoLineOfAnother) {
  constexpr int kWriters = 4;
  constexpr int kLines = 500;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      // None is put aside twice over: five files hold all lines.
      const auto sink = file_sink(100'000);
      const std::string line(99, static_cast<char>('a' + writer));
      for (int i = 0; i < kLines; ++i)
        EXPECT_EQ(sink->write(std::vector<std::string>{line + "\n"}).written, 1U);
    });
  }
  for (auto& writer : writers)
    writer.join();
  std::string all = content(path_);
  for (int piece = 1; piece <= 4; ++piece)
    all += content(path_ + "." + std::to_string(piece));
  std::istringstream lines(all);
  std::string line;
  int count = 0;
  while (std::getline(lines, line)) {
    ++count;
    EXPECT_EQ(line, std::string(99, line.empty() ? ' ' : line.front()));
  }
  EXPECT_EQ(count, kWriters * kLines);
}

TEST_F(EventSinkTest, AReaderThatTakesNothingIsNotWaitedForLong) {
  const test::FullPipe pipe;
  const auto sink = make_event_sink({Kind::Descriptor, "", pipe.fd()}, "", 0);
  const auto result = sink->write(std::vector<std::string>{"one\n"});
  EXPECT_EQ(result.taken, 0U);
  EXPECT_EQ(result.why, "");
}

TEST_F(EventSinkTest, AReaderThatHasGoneLosesLines) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  FileDescriptor reader(ends[0]);
  const FileDescriptor writer(ends[1]);
  const auto sink = make_event_sink({Kind::Descriptor, "", writer.get()}, "", 0);
  EXPECT_EQ(sink->write(std::vector<std::string>{"one\n"}).written, 1U);
  reader.reset();
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  EXPECT_THAT(sink->write(std::vector<std::string>{"two\n"}).why, HasSubstr("Broken pipe"));
  std::signal(SIGPIPE, before);
}

TEST_F(EventSinkTest, ACommandReadsTheLinesToTheirEnd) {
  const auto sink = command_sink("cat >" + path_);
  EXPECT_EQ(sink->write(std::vector<std::string>{"one\n", "two\n"}).written, 2U);
  EXPECT_EQ(sink->end(), "");
  EXPECT_EQ(content(path_), "one\ntwo\n");
}

TEST_F(EventSinkTest, ACommandThatFailsIsTold) {
  const auto sink = command_sink("cat >/dev/null; exit 7");
  (void)sink->write(std::vector<std::string>{"one\n"});
  EXPECT_EQ(sink->end(), "exit code 7");
}

TEST_F(EventSinkTest, ACommandThatIsNeverUsedIsNotRun) {
  EXPECT_EQ(command_sink("touch " + path_)->end(), "");
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace drun::launcher
