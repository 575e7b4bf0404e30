#include "launcher/process/exit_status.hpp"

#include <signal.h>

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace drun::process {
namespace {

TEST(ExitStatusTest, NamesSignalsAsTheManualDoes) {
  EXPECT_EQ(signal_name(SIGHUP), "SIGHUP");
  EXPECT_EQ(signal_name(SIGKILL), "SIGKILL");
  EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(signal_name(SIGABRT), "SIGABRT");
  EXPECT_EQ(signal_name(SIGCHLD), "SIGCHLD");
  EXPECT_EQ(signal_name(SIGIO), "SIGIO");
  EXPECT_EQ(signal_name(SIGSYS), "SIGSYS");
  EXPECT_EQ(signal_name(SIGRTMIN), "SIGRTMIN");
  EXPECT_EQ(signal_name(SIGRTMIN + 3), "SIGRTMIN+3");
  EXPECT_EQ(signal_name(SIGRTMAX - 1), "SIGRTMAX-1");
  EXPECT_EQ(signal_name(SIGRTMAX), "SIGRTMAX");
}

TEST(ExitStatusTest, GivesTheNumberOfASignalWithoutAName) {
  EXPECT_EQ(signal_name(32), "signal 32");
  EXPECT_EQ(signal_name(33), "signal 33");
  EXPECT_EQ(signal_name(77), "signal 77");
  EXPECT_EQ(signal_name(0), "signal 0");
  EXPECT_EQ(signal_name(-4), "signal -4");
}

TEST(ExitStatusTest, EverySignalHasItsOwnNameThatReadsBack) {
  std::set<std::string> names;
  for (int signal = 1; signal <= 64; ++signal) {
    const std::string name = signal_name(signal);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(parse_signal(std::to_string(signal)), signal);
    if (signal == 32 || signal == 33) continue;  // the C library's own
    EXPECT_EQ(name.find("signal"), std::string::npos) << name;
    EXPECT_EQ(parse_signal(name), signal) << name;
    EXPECT_EQ(parse_signal(name.substr(3)), signal) << name;
  }
}

TEST(ExitStatusTest, ReadsSignalsAsUsersWriteThem) {
  const struct {
    const char* text;
    int signal;
  } cases[] = {
      {"TERM", SIGTERM},
      {"SIGTERM", SIGTERM},
      {"sigterm", SIGTERM},
      {"term", SIGTERM},
      {"15", SIGTERM},
      {"1", SIGHUP},
      {"64", 64},
      {"IOT", SIGABRT},
      {"CLD", SIGCHLD},
      {"POLL", SIGPOLL},
      {"RTMIN", SIGRTMIN},
      {"SIGRTMIN+1", SIGRTMIN + 1},
      {"rtmin+0", SIGRTMIN},
      {"RTMAX", SIGRTMAX},
      {"SIGRTMAX-2", SIGRTMAX - 2},
      {"", 0},
      {"0", 0},
      {"65", 0},
      {"-1", 0},
      {"15 ", 0},
      {" 15", 0},
      {"0x0f", 0},
      {"SIG", 0},
      {"NOPE", 0},
      {"SIGSIGTERM", 0},
      {"RTMIN+", 0},
      {"RTMIN-1", 0},
      {"RTMAX+1", 0},
      {"RTMIN+99", 0},
      {"RTMIN+-1", 0},
      {"99999999999999", 0},
      {"TERMINATE", 0},
      {"RTMIN+1x", 0},
  };
  for (const auto& c : cases)
    EXPECT_EQ(parse_signal(c.text), c.signal) << "'" << c.text << "'";
}

TEST(ExitStatusTest, DescribesHowAProcessEnded) {
  EXPECT_EQ(describe({0, 0, false}), "exit code 0");
  EXPECT_EQ(describe({7, 0, false}), "exit code 7");
  EXPECT_EQ(describe({0, SIGSEGV, false}), "killed by SIGSEGV");
  EXPECT_EQ(describe({0, SIGABRT, true}), "killed by SIGABRT (core dumped)");
}

TEST(ExitStatusTest, ShellCodeIsTheCodeOr128PlusTheSignal) {
  EXPECT_TRUE(ExitStatus{}.success());
  EXPECT_FALSE((ExitStatus{1, 0, false}).success());
  EXPECT_FALSE((ExitStatus{0, SIGTERM, false}).success());
  EXPECT_EQ((ExitStatus{255, 0, false}).shell_code(), 255);
  EXPECT_EQ((ExitStatus{0, SIGKILL, false}).shell_code(), 137);
}

}  // namespace
}  // namespace drun::process
