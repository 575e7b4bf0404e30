#include "launcher/process/clean_spawn.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "base/pipe.hpp"
#include "base/poll_until.hpp"
#include "base/read_answer.hpp"
#include "base/whole_number.hpp"

namespace drun::process {
namespace {

CleanSpawn shell(const std::string& script) {
  CleanSpawn how;
  how.file = "sh";
  how.arguments = {"sh", "-c", script};
  return how;
}

// What it says on its standard output.
std::string said_by(CleanSpawn how) {
  Pipe pipe = make_pipe("make a pipe for a test");
  how.output = pipe.write.get();
  const auto child = spawn_clean(how, "start it");
  if (!child) return child.error().what();
  pipe.write.reset();
  auto said = read_answer(pipe.read.get(), 100'000, kNoDeadline);
  ::waitpid(*child, nullptr, 0);
  return said ? *said : said.error().what();
}

// The set of signals that a line of /proc/PID/status has, without the two that the C library keeps
// for itself: those are left as they are.
std::optional<std::uint64_t> signals_of(std::string_view status, std::string_view name) {
  const auto at = status.find(name);
  if (at == status.npos) return std::nullopt;
  const auto set = whole_number<std::uint64_t>(status.substr(at + name.size(), 16), 16);
  return set ? std::optional(*set & ~(std::uint64_t{3} << 31U)) : std::nullopt;
}

TEST(CleanSpawnTest, HasNothingOfOurSignals) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto ignored = ::signal(SIGUSR1, SIG_IGN);
  CleanSpawn cat;
  cat.file = "cat";
  cat.arguments = {"cat", "/proc/self/status"};
  const std::string said = said_by(cat);
  ::signal(SIGUSR1, ignored);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(signals_of(said, "\nSigBlk:\t"), 0U) << said;
  EXPECT_EQ(signals_of(said, "\nSigIgn:\t"), 0U) << said;
}

TEST(CleanSpawnTest, AStreamThatIsNotGivenIsNothing) {
  EXPECT_EQ(said_by(shell("readlink /proc/$$/fd/0 /proc/$$/fd/2")), "/dev/null\n/dev/null\n");
  Pipe input = make_pipe("make a pipe for a test");
  ASSERT_EQ(::write(input.write.get(), "a line\n", 7), 7);
  CleanSpawn how = shell("read line; echo \"$line\" >&2");
  how.input = input.read.get();
  Pipe error = make_pipe("make a pipe for a test");
  how.error = error.write.get();
  EXPECT_EQ(said_by(how), "");
  error.write.reset();
  EXPECT_EQ(read_answer(error.read.get(), 100, kNoDeadline).value_or(""), "a line\n");
}

TEST(CleanSpawnTest, IsInAGroupOfItsOwnOrInOurs) {
  for (const bool own : {true, false}) {
    Pipe gate = make_pipe("make a pipe for a test");
    CleanSpawn how = shell("read line");
    how.input = gate.read.get();
    how.own_group = own;
    const auto child = spawn_clean(how, "start it");
    ASSERT_TRUE(child) << child.error().what();
    EXPECT_EQ(::getpgid(*child), own ? *child : ::getpgrp());
    gate.write.reset();
    ::waitpid(*child, nullptr, 0);
  }
}

TEST(CleanSpawnTest, GetsNoOtherDescriptorIfItIsToHaveItsStreamsOnly) {
  const FileDescriptor here(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const FileDescriptor inherited(::fcntl(here.get(), F_DUPFD, 100));
  CleanSpawn how =
      shell("test -e /proc/$$/fd/" + std::to_string(inherited.get()) + " && echo has it");
  EXPECT_EQ(said_by(how), "has it\n");
  how.only_streams = true;
  EXPECT_EQ(said_by(how), "");
}

TEST(CleanSpawnTest, HasTheEnvironmentThatItIsGiven) {
  std::string variable = "DRUN_TEST_CLEAN=yes";
  char* const environment[] = {variable.data(), nullptr};
  CleanSpawn how = shell("echo \"$DRUN_TEST_CLEAN,$HOME\"");
  how.environment = environment;
  EXPECT_EQ(said_by(how), "yes,\n");
}

TEST(CleanSpawnTest, SaysWhyItCannotBeStarted) {
  CleanSpawn how;
  how.file = "no-such-program-of-drun";
  how.arguments = {how.file};
  const auto child = spawn_clean(how, "start it");
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code(), std::errc::no_such_file_or_directory);
  EXPECT_EQ(child.error().what(), "start it: No such file or directory");
}

}  // namespace
}  // namespace drun::process
