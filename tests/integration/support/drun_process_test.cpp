// The helper that the end-to-end tests stand on: it must see what a program leaves behind.
#include "support/drun_process.hpp"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_directory.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Launch shell(const std::string& script) {
  Launch launch;
  launch.argv = {"/bin/sh", "-c", script};
  return launch;
}

TEST(DrunProcessTest, CollectsBothStreamsAndTheExitCode) {
  DrunProcess process(shell("echo out; echo err >&2; exit 7"));
  const Finished finished = process.finish();
  EXPECT_EQ(finished.code, 7);
  EXPECT_EQ(finished.out, "out\n");
  EXPECT_EQ(finished.err, "err\n");
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(DrunProcessTest, GivesASignalAsAShellDoes) {
  DrunProcess process(shell("kill -SEGV $$"));
  EXPECT_EQ(process.finish().code, 128 + SIGSEGV);
}

TEST(DrunProcessTest, CollectsMoreThanAPipeHolds) {
  DrunProcess process(shell("head -c 1000000 /dev/zero"));
  EXPECT_THAT(process.finish().out, SizeIs(1'000'000));
}

TEST(DrunProcessTest, WaitsForAText) {
  DrunProcess process(shell("echo ready; read -r never; exec sleep 100"));
  EXPECT_TRUE(process.wait_for_out("ready"));
  EXPECT_FALSE(process.wait_for_err("never", milliseconds(10)));
}

TEST(DrunProcessTest, SaysWhenTheDeadlinePassed) {
  DrunProcess process(shell("exec sleep 100"));
  EXPECT_EQ(process.finish(milliseconds(50)).code, -1);
}

TEST(DrunProcessTest, FindsASurvivorInItsOwnSession) {
  // Ends when the survivor has become what is looked for.
  DrunProcess process(
      shell("setsid sleep 100 <&- >&- 2>&- & "
            "until [ \"$(tr '\\0' ' ' </proc/$!/cmdline)\" = 'sleep 100 ' ]; do :; done"));
  const Finished finished = process.finish();
  ASSERT_THAT(finished.survivors, SizeIs(1));
  EXPECT_THAT(finished.survivors.front(), HasSubstr("sleep 100"));
  EXPECT_FALSE(process.survivors_gone(milliseconds(20)));
}

TEST(DrunProcessTest, SeesASurvivorGo) {
  const TemporaryDirectory directory;
  const std::string stay = directory.file("stay");
  std::ofstream(stay).close();
  DrunProcess process(
      shell("(while [ -e " + stay + " ]; do sleep 0.02; done <&- >&- 2>&-) & exit 0"));
  EXPECT_THAT(process.finish().survivors, SizeIs(testing::Ge(1U)));
  std::filesystem::remove(stay);
  EXPECT_TRUE(process.survivors_gone(kPatience));
}

TEST(DrunProcessTest, KeepsTheCallersJobVariablesOut) {
  ::setenv("PET_NNODES", "7", 1);
  ::setenv("MASTER_PORT", "1", 1);
  Launch launch = shell("echo [$PET_NNODES$MASTER_PORT$GIVEN]");
  launch.environment = {"GIVEN=yes"};
  EXPECT_EQ(DrunProcess(launch).finish().out, "[yes]\n");
  ::unsetenv("PET_NNODES");
  ::unsetenv("MASTER_PORT");
}

// Else scripts/mutants would try none of those in programs that tests start.
TEST(DrunProcessTest, TellsTheProgramWhichMutantIsSwitchedOn) {
  const char* const before = ::getenv("DRUN_TEST_MUTANT");
  const std::string number = before != nullptr ? before : "0";
  ::setenv("DRUN_TEST_MUTANT", number.c_str(), 1);
  EXPECT_EQ(DrunProcess(shell("echo $DRUN_TEST_MUTANT")).finish().out, number + "\n");
  if (before == nullptr) ::unsetenv("DRUN_TEST_MUTANT");
}

TEST(DrunProcessTest, SaysWhatCouldNotBeStarted) {
  Launch launch;
  launch.argv = {"/no/such/program"};
  EXPECT_THROW(DrunProcess process(launch), std::system_error);
}

TEST(ReservedPortTest, CanBeBoundByAProgramThatReusesAddresses) {
  const ReservedPort port;
  const FileDescriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(server.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port.number()));
  EXPECT_EQ(::bind(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(server.get(), 1), 0);
}

TEST(TempDirTest, IsGoneAfterwards) {
  std::filesystem::path path;
  {
    const TempDir directory;
    path = directory.path();
    EXPECT_EQ(read_file(directory.write("file", "text")), "text");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace drun::test
