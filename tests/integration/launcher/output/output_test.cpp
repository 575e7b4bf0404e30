#include "launcher/output/output.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "support/output_rig.hpp"

namespace drun::test {
namespace {

using namespace std::chrono_literals;
using launcher::WorkerStreams;
using testing::ElementsAre;
using testing::MatchesRegex;

constexpr std::size_t kTooMuch = 64U << 20U;

// Writes whole lines until the console is full and nothing has been taken for a while.
std::size_t write_until_held_up(int fd, int console) {
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  std::string lines;
  for (int i = 0; i < 64; ++i)
    lines += std::string(999, 'x') + '\n';
  std::size_t written = 0;
  pollfd room{fd, POLLOUT, 0};
  pollfd console_room{console, POLLOUT, 0};
  while (written < kTooMuch) {
    if (::poll(&room, 1, 300) == 0 && ::poll(&console_room, 1, 0) == 0) break;
    const ssize_t n = ::write(fd, lines.data(), lines.size());
    if (n > 0) written += static_cast<std::size_t>(n);
  }
  return written;
}

class OutputTest : public testing::Test, public OutputRig {};

TEST_F(OutputTest, PassesALineOnAtOnceAndUnchanged) {
  using namespace std::string_view_literals;
  start();
  WorkerStreams worker = open(0);
  constexpr auto kLine = "caf\xc3\xa9 \xff\xfe nul\0 \x1b[31m\r back\n"sv;
  write_all(worker.standard_output.get(), kLine);
  EXPECT_TRUE(shows(kLine));
}

TEST_F(OutputTest, ShowsAnUnfinishedLineAtOnce) {
  start();
  WorkerStreams worker = open(0);
  write_all(worker.standard_output.get(), "continue? ");
  EXPECT_TRUE(shows("continue? "));
  write_all(worker.standard_output.get(), "yes\n");
  EXPECT_TRUE(shows("continue? yes\n"));
}

TEST_F(OutputTest, KeepsStdoutAndStderrApart) {
  start();
  WorkerStreams worker = open(0);
  write_all(worker.standard_output.get(), "to out\n");
  write_all(worker.standard_error.get(), "to err\n");
  EXPECT_TRUE(shows("to out\n"));
  std::string errors;
  EXPECT_TRUE(read_until(err.read.get(), errors, [&] { return errors == "to err\n"; }));
}

TEST_F(OutputTest, AnUnfinishedLastLineGetsNoNewlineOfItsOwn) {
  start();
  {
    WorkerStreams worker = open(0);
    write_all(worker.standard_output.get(), "no end");
  }
  EXPECT_TRUE(output->drain(kPatience));
  EXPECT_EQ(finish(), "no end");
}

TEST_F(OutputTest, UnfinishedLastLinesOfSeveralWorkersStayApart) {
  start();
  for (int rank = 0; rank < 3; ++rank)
    write_all(open(rank).standard_output.get(), std::to_string(rank));
  EXPECT_TRUE(output->drain(kPatience));
  std::vector<std::string> lines;
  std::istringstream text(finish());
  for (std::string line; std::getline(text, line);)
    lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  EXPECT_THAT(lines, ElementsAre("0", "1", "2"));
}

// Four workers write 2 MB each in pieces that end anywhere.
TEST_F(OutputTest, NeverMixesLinesAndLosesNothing) {
  start();
  constexpr int kWorkers = 4;
  constexpr int kLines = 20'000;
  std::vector<std::thread> workers;
  std::map<char, std::string> written;
  for (int rank = 0; rank < kWorkers; ++rank) {
    const char name = static_cast<char>('a' + rank);
    std::string& text = written[name];
    for (int i = 0; i < kLines; ++i)
      text += name + std::to_string(i) +
              std::string(static_cast<std::size_t>((i * 7) % 200), name) + '\n';
  }
  for (int rank = 0; rank < kWorkers; ++rank) {
    workers.emplace_back(
        [stream = open(rank), &text = written[static_cast<char>('a' + rank)], rank] {
          std::size_t at = 0;
          for (std::size_t step = 1; at < text.size();
               step = (step * 31 + 7 + static_cast<std::size_t>(rank)) % 9000 + 1) {
            write_all(stream.standard_output.get(), std::string_view(text).substr(at, step));
            at += step;
          }
        });
  }
  std::size_t total = 0;
  for (const auto& [name, text] : written)
    total += text.size();
  EXPECT_TRUE(read_until(out.read.get(), shown, [&] { return shown.size() >= total; }));
  for (auto& worker : workers)
    worker.join();
  EXPECT_TRUE(output->drain(kPatience));
  std::map<char, std::string> seen;
  std::istringstream text(finish());
  for (std::string line; std::getline(text, line);)
    seen[line.empty() ? '?' : line[0]] += line + '\n';
  EXPECT_EQ(seen.size(), written.size());
  for (const auto& [name, expected] : written)
    EXPECT_TRUE(seen[name] == expected) << name;
}

TEST_F(OutputTest, AStalledReaderHoldsUpNeitherStderrNorTheTail) {
  start();
  WorkerStreams worker = open(0);
  const std::size_t written = write_until_held_up(worker.standard_output.get(), out.write.get());
  ASSERT_LT(written, kTooMuch);
  write_all(worker.standard_error.get(), "still here\n");
  std::string errors;
  EXPECT_TRUE(read_until(err.read.get(), errors, [&] { return errors == "still here\n"; }));
  EXPECT_THAT(output->tail(0, kPatience), ElementsAre("still here"));

  // The reader wakes up: nothing is lost.
  worker.standard_output.reset();
  EXPECT_TRUE(read_until(out.read.get(), shown, [&] { return shown.size() >= written; }));
  EXPECT_TRUE(output->drain(kPatience));
  EXPECT_EQ(shown.size(), written);
}

TEST_F(OutputTest, AReaderThatStallsForGoodDoesNotKeepUsFromEnding) {
  options.patience = 200ms;
  start();
  WorkerStreams worker = open(0);
  ASSERT_LT(write_until_held_up(worker.standard_output.get(), out.write.get()), kTooMuch);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(output->drain(100ms));
  output.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatience);
}

TEST_F(OutputTest, AReaderThatLeavesStopsNobody) {
  start();
  out.read.reset();
  WorkerStreams worker = open(0);
  for (int i = 0; i < 100; ++i)
    write_all(worker.standard_output.get(), std::string(99'999, 'x') + '\n');
  write_all(worker.standard_error.get(), "the end\n");
  EXPECT_THAT(output->tail(0, kPatience), ElementsAre("the end"));
  worker = {};
  EXPECT_TRUE(output->drain(kPatience));
  const std::string said =
      "drun: warning: nobody reads standard output any more; the workers run on, and what they "
      "print there is not shown\n";
  std::string errors;
  EXPECT_TRUE(read_until(err.read.get(), errors,
                         [&] { return errors.size() >= said.size() + 8 /* "the end\n" */; }));
  EXPECT_TRUE(errors == said + "the end\n" || errors == "the end\n" + said) << errors;
}

TEST_F(OutputTest, AQuietOneDoesNotSayThatItsReaderHasLeft) {
  options.quiet = true;
  start();
  out.read.reset();
  WorkerStreams worker = open(0);
  write_all(worker.standard_output.get(), "unheard\n");
  worker = {};
  EXPECT_TRUE(output->drain(kPatience));
  WorkerStreams next = open(1);
  write_all(next.standard_error.get(), "the end\n");
  std::string errors;
  EXPECT_TRUE(read_until(err.read.get(), errors, [&] { return !errors.empty(); }));
  EXPECT_EQ(errors, "the end\n");
}

TEST_F(OutputTest, TheTailHasWhatTheDeadWorkerWroteLast) {
  start();
  for (int round = 0; round < 50; ++round) {
    WorkerStreams worker = open(round);
    write_all(worker.standard_error.get(), "first\nlast words of " + std::to_string(round));
    worker = {};
    EXPECT_THAT(output->tail(static_cast<std::uint32_t>(round), kPatience),
                ElementsAre("first", "last words of " + std::to_string(round)));
  }
  EXPECT_TRUE(output->tail(99, 1s).empty());
}

TEST_F(OutputTest, OwnMessagesComeAfterTheWorkersWords) {
  options.standard_error = out.write.get();  // 2>&1
  start();
  {
    WorkerStreams worker = open(0);
    write_all(worker.standard_error.get(), "Killed");
  }
  EXPECT_TRUE(output->drain(kPatience));
  output->message("drun: job failed");
  EXPECT_EQ(finish(), "Killed\ndrun: job failed\n");
}

// The status line is no line of a log: it is written as it is. Messages are lines.
TEST_F(OutputTest, TheTimeStandsBeforeOwnMessagesAndNotInTheStatusLine) {
  options.choices.timestamps = true;
  start();
  std::string errors;
  const auto says = [&](std::size_t size) {
    return read_until(err.read.get(), errors, [&] { return errors.size() >= size; });
  };
  const std::string line = "\r\033[Kdrun: waiting";
  output->status(line);
  ASSERT_TRUE(says(line.size()));
  EXPECT_EQ(errors, line);
  output->status("\r\033[K\r");
  output->message("drun: over");
  ASSERT_TRUE(read_until(err.read.get(), errors, [&] { return errors.back() == '\n'; }));
  const std::string stamped = errors.substr(line.size() + 5);
  EXPECT_THAT(stamped, MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[^ ]* drun: over\n"));
}

TEST_F(OutputTest, KnowsWhenAWorkerWroteLast) {
  start();
  const auto begin = std::chrono::steady_clock::now();
  WorkerStreams worker = open(0);
  write_all(worker.standard_output.get(), "x\n");
  ASSERT_TRUE(shows("x\n"));
  const auto first = output->last_output(0);
  ASSERT_TRUE(first);
  EXPECT_GE(*first, begin);
  EXPECT_LE(*first, std::chrono::steady_clock::now());
  write_all(worker.standard_output.get(), "y\n");
  ASSERT_TRUE(shows("x\ny\n"));
  EXPECT_GT(*output->last_output(0), *first);
  EXPECT_FALSE(output->last_output(1)) << "there is none";
}

// The system has so many bytes for pipes; a worker that has ended needs none of them.
TEST_F(OutputTest, FullPipesAreEnlargedButNotMoreThanSomeAtATime) {
  constexpr int kMost = 64;
  constexpr std::size_t kUsual = 64 * 1024;
  const FileDescriptor nobody(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  options.standard_output = nobody.get();
  start();
  std::vector<WorkerStreams> workers;
  const std::string full = std::string(kUsual - 1, 'x') + "\n";
  const auto fill = [&](int rank) {
    workers.push_back(open(rank));
    write_all(workers.back().standard_output.get(), full);
    (void)output->tail(static_cast<std::uint32_t>(rank), kPatience);  // it is read by then
    return ::fcntl(workers.back().standard_output.get(), F_GETPIPE_SZ);
  };
  for (int rank = 0; rank < kMost; ++rank)
    EXPECT_EQ(fill(rank), 256 * 1024) << rank;
  EXPECT_EQ(fill(kMost), static_cast<int>(kUsual));
  workers.erase(workers.begin());
  (void)output->tail(0, kPatience);  // its end is read
  EXPECT_EQ(fill(kMost + 1), 256 * 1024);
  EXPECT_EQ(fill(kMost + 2), static_cast<int>(kUsual));
  output.reset();  // it may still write to `nobody`
}

TEST_F(OutputTest, NeverChangesTheFlagsOfSharedDescriptors) {
  start();
  WorkerStreams worker = open(0);
  write_all(worker.standard_output.get(), "x\n");
  EXPECT_TRUE(shows("x\n"));
  EXPECT_EQ(::fcntl(out.write.get(), F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace drun::test
