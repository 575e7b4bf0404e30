// Workers' pseudo-terminals when drun's own stdout is a terminal.
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/output_rig.hpp"

namespace drun::test {
namespace {

using namespace std::chrono_literals;
using launcher::WorkerStreams;
using testing::ElementsAre;

class OutputTerminalTest : public testing::Test, public OutputRig {
 protected:
  OutputTerminalTest() {
    winsize size{};
    size.ws_row = 33;
    size.ws_col = 101;
    int master = -1;
    int slave = -1;
    if (::openpty(&master, &slave, nullptr, nullptr, &size) != 0) return;
    screen_.reset(master);
    terminal_.reset(slave);
    termios mode{};
    ::tcgetattr(slave, &mode);
    mode.c_oflag &= ~static_cast<tcflag_t>(OPOST);  // what is written is what is read
    ::tcsetattr(slave, TCSANOW, &mode);
    options.standard_output = options.standard_error = slave;
    options.terminal = true;
  }
  bool screen_shows(std::string_view expected) {
    return read_until(screen_.get(), shown, [&] { return shown.size() >= expected.size(); }) &&
           shown == expected;
  }
  static std::pair<int, int> size_of(int fd) {
    winsize size{};
    ::ioctl(fd, TIOCGWINSZ, &size);
    return {size.ws_row, size.ws_col};
  }

  FileDescriptor screen_;
  FileDescriptor terminal_;
};

TEST_F(OutputTerminalTest, WorkersSeeATerminalOfTheSameSize) {
  start();
  WorkerStreams worker = open(0);
  EXPECT_TRUE(::isatty(worker.standard_output.get()));
  EXPECT_TRUE(::isatty(worker.standard_error.get()));
  EXPECT_EQ(size_of(worker.standard_output.get()), std::pair(33, 101));
}

// A bar as wide as the worker's terminal still fits on a line.
TEST_F(OutputTerminalTest, TheTimeBeforeEachLineTakesItsWidthFromTheWorkers) {
  options.choices.timestamps = true;
  start();
  WorkerStreams worker = open(0);
  EXPECT_EQ(size_of(worker.standard_output.get()), std::pair(33, 71));
  winsize narrow{};
  narrow.ws_row = 33;
  narrow.ws_col = 59;
  ASSERT_EQ(::ioctl(screen_.get(), TIOCSWINSZ, &narrow), 0);
  output->resize();
  EXPECT_EQ(size_of(worker.standard_output.get()), std::pair(33, 59));
}

TEST_F(OutputTerminalTest, BytesComeOutAsTheyWentIn) {
  start();
  WorkerStreams worker = open(0);
  write_all(worker.standard_output.get(), "one\n\ttwo\r\n\x1b[31mred\x1b[0m \x04\x03\x1a\xff\n");
  EXPECT_TRUE(screen_shows("one\n\ttwo\r\n\x1b[31mred\x1b[0m \x04\x03\x1a\xff\n"));
}

TEST_F(OutputTerminalTest, ProgressBarsMove) {
  start();
  WorkerStreams worker = open(0);
  std::string expected;
  for (const char* step : {"\r 10%", "\r 20%", "\r100%\n"}) {
    write_all(worker.standard_error.get(), step);
    expected += step;
    EXPECT_TRUE(screen_shows(expected));
  }
}

TEST_F(OutputTerminalTest, StdoutAndStderrOfOneTerminalShareItsLines) {
  start();
  WorkerStreams first = open(0);
  WorkerStreams second = open(1);
  write_all(first.standard_output.get(), "beginning");
  EXPECT_TRUE(screen_shows("beginning"));
  write_all(second.standard_error.get(), "error\n");
  EXPECT_TRUE(screen_shows("beginning\nerror\n"));
}

TEST_F(OutputTerminalTest, ANewWindowSizeReachesTheWorkers) {
  start();
  WorkerStreams worker = open(0);
  winsize size{};
  size.ws_row = 50;
  size.ws_col = 132;
  ASSERT_EQ(::ioctl(screen_.get(), TIOCSWINSZ, &size), 0);
  output->resize();
  // The thread takes commands in order.
  EXPECT_THAT(output->tail(0, kPatience), ElementsAre());
  EXPECT_EQ(size_of(worker.standard_output.get()), std::pair(50, 132));
  EXPECT_EQ(size_of(worker.standard_error.get()), std::pair(50, 132));
}

TEST_F(OutputTerminalTest, TheLastWordsOfADeadWorkerAreThere) {
  start();
  std::string expected;
  for (int i = 0; i < 20; ++i) {
    WorkerStreams worker = open(i);
    write_all(worker.standard_error.get(), "one\ntwo");
    worker = {};
    EXPECT_THAT(output->tail(static_cast<std::uint32_t>(i), kPatience), ElementsAre("one", "two"));
    EXPECT_TRUE(output->drain(kPatience));
    expected += (i == 0 ? "" : "\n") + std::string("one\ntwo");
  }
  EXPECT_TRUE(screen_shows(expected));
}

TEST_F(OutputTerminalTest, AFloodPassesWhole) {
  start();
  std::string text;
  for (int i = 0; i < 20'000; ++i)
    text += "line number " + std::to_string(i) + "\n";
  std::thread writer([worker = open(0), &text] { write_all(worker.standard_output.get(), text); });
  EXPECT_TRUE(read_until(screen_.get(), shown, [&] { return shown.size() >= text.size(); }));
  writer.join();
  EXPECT_TRUE(shown == text);
}

TEST_F(OutputTerminalTest, OnlyTheStreamThatIsATerminalBecomesOne) {
  options.standard_error = err.write.get();
  start();
  WorkerStreams worker = open(0);
  EXPECT_TRUE(::isatty(worker.standard_output.get()));
  EXPECT_FALSE(::isatty(worker.standard_error.get()));
}

TEST_F(OutputTerminalTest, AStoppedTerminalHoldsUpOnlyTheWorkers) {
  options.patience = 200ms;
  start();
  WorkerStreams worker = open(0);
  ASSERT_EQ(::tcflow(terminal_.get(), TCOOFF), 0);  // Ctrl-S
  write_all(worker.standard_error.get(), "held back\n");
  EXPECT_THAT(output->tail(0, kPatience), ElementsAre("held back"));
  ASSERT_EQ(::tcflow(terminal_.get(), TCOON), 0);
  EXPECT_TRUE(screen_shows("held back\n"));
}

}  // namespace
}  // namespace drun::test
