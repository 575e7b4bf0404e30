// Mistakes of the user: one clear line, the exit code of the design, no trace of ours, nothing
// left.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

constexpr int kUsage = 2;
constexpr int kTimeLimit = 124;
constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;

void expect_clean(const Finished& finished) {
  EXPECT_THAT(finished.survivors, IsEmpty());
  EXPECT_THAT(finished.err, Not(AnyOf(HasSubstr("terminate called"), HasSubstr("what()"),
                                      HasSubstr("Assertion"), HasSubstr("Sanitizer"))));
}

struct Mistake {
  const char* name;
  std::vector<std::string> arguments;
  std::vector<std::string> named;  // what the message must contain
};

class UsageTest : public testing::TestWithParam<Mistake> {};

TEST_P(UsageTest, IsOneLineAndExitCode2) {
  const Finished finished = run_drun(GetParam().arguments);
  EXPECT_EQ(finished.code, kUsage);
  EXPECT_THAT(finished.out, IsEmpty());
  const auto lines = split_lines(finished.err);
  ASSERT_THAT(lines, SizeIs(1)) << finished.err;
  EXPECT_THAT(lines.front(), StartsWith("drun: "));
  for (const auto& text : GetParam().named)
    EXPECT_THAT(lines.front(), HasSubstr(text));
  expect_clean(finished);
}

// The agents meet there, and were told so by no flag of the user's.
TEST(HostsTest, AFirstHostWhoseNameNobodyKnowsIsNamedWithItsFlag) {
  const Finished finished = run_drun({"-H", "nowhere.invalid,127.0.0.1", "--launcher",
                                      "env H={host}", "--rdzv-conf", "join_timeout=1", "true"});
  EXPECT_EQ(finished.code, kTimeLimit);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("cannot resolve 'nowhere.invalid': "),
                                  HasSubstr("or the first host of -H")));
  expect_clean(finished);
}

// What can be read of the command line counts; an unknown flag may take the next word.
TEST(UsageTimeTest, DrunsOwnLineHasTheTimeThatIsAskedFor) {
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--nproc-per-node", "x", "true"}, {"./nowhere"}}) {
    std::vector<std::string> arguments{"--timestamps"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = run_drun(arguments);
    EXPECT_THAT(finished.err,
                testing::MatchesRegex("[-0-9]+[T ][0-9:]+[.,][0-9]+[^ ]* drun: error: .*\n"));
    expect_clean(finished);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, UsageTest,
    testing::Values(
        Mistake{"UnknownFlag", {"--no-such-flag", "/bin/true"}, {"--no-such-flag"}},
        Mistake{"NoNodes", {"--nnodes", "0", "/bin/true"}, {"nnodes", "0"}},
        Mistake{"MoreAtLeastThanAtMost", {"--nnodes", "3:2", "/bin/true"}, {"nnodes", "3:2"}},
        Mistake{"NodesNotANumber", {"--nnodes", "two", "/bin/true"}, {"nnodes", "two"}},
        Mistake{"NoWorkers", {"--nproc-per-node", "0", "/bin/true"}, {"nproc", "0"}},
        Mistake{"NegativeRestarts", {"--max-restarts", "-1", "/bin/true"}, {"max-restarts", "-1"}},
        Mistake{"EndpointPortTooLarge",
                {"--rdzv-endpoint", "127.0.0.1:70000", "/bin/true"},
                {"rdzv-endpoint", "70000"}},
        Mistake{"MasterPortTooLarge",
                {"--master-port", "70000", "/bin/true"},
                {"master-port", "70000"}},
        Mistake{"UnknownBackend",
                {"--rdzv-backend", "carrier-pigeon", "/bin/true"},
                {"carrier-pigeon"}},
        Mistake{"UnknownConfKey",
                {"--rdzv-endpoint", "127.0.0.1:1", "--rdzv-conf", "jion_timeout=1", "/bin/true"},
                {"jion_timeout"}},
        Mistake{"NoProgram", {"--nnodes", "1"}, {"program"}}),
    [](const auto& mistake) { return mistake.param.name; });

TEST(BadInputTest, AVariableIsCheckedLikeItsFlag) {
  Launch launch;
  launch.environment = {"PET_NNODES=3:2"};
  const Finished finished = run_drun({"/bin/true"}, launch);
  EXPECT_EQ(finished.code, kUsage);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("PET_NNODES"), HasSubstr("3:2")));
  EXPECT_THAT(split_lines(finished.err), SizeIs(1));
}

TEST(BadInputTest, AProgramThatDoesNotExistIs127BeforeAnythingStarts) {
  const std::string missing = ": No such file or directory";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"/no/such/program"}, missing},
      {{"no-such-program-in-path"}, missing + " in PATH"},
      {{"--local-nodes", "2", "/no/such/program"}, missing},
  };
  for (const auto& [program, reason] : cases) {
    std::vector<std::string> arguments = {"--nproc-per-node", "4"};
    arguments.insert(arguments.end(), program.begin(), program.end());
    const Finished finished = run_drun(arguments);
    EXPECT_EQ(finished.code, kNotFound) << program.back();
    EXPECT_EQ(finished.err, "drun: error: cannot exec " + program.back() + reason + "\n");
    expect_clean(finished);
  }
}

TEST(BadInputTest, AFileOfTheWorkingDirectoryMayHaveBeenMeant) {
  const TempDir directory;
  (void)directory.write("no-such-program-in-path", "#!/bin/sh\n", true);
  Launch launch;
  launch.directory = directory.path();
  const Finished finished = run_drun({"no-such-program-in-path"}, launch);
  EXPECT_EQ(finished.code, kNotFound);
  EXPECT_THAT(finished.err, HasSubstr(" in PATH; did you mean ./no-such-program-in-path?\n"));
  EXPECT_EQ(run_drun({"./no-such-program-in-path"}, launch).code, 0);
}

TEST(BadInputTest, AProgramThatMayNotBeExecutedIs126) {
  const TempDir directory;
  const std::string program = directory.write("data.txt", "not a program\n");
  const Finished finished = run_drun({"--nproc-per-node", "4", program});
  EXPECT_EQ(finished.code, kCannotRun);
  EXPECT_EQ(finished.err, "drun: error: cannot exec " + program +
                              ": Permission denied; chmod +x makes it a program\n");
  expect_clean(finished);
}

TEST(BadInputTest, ADirectoryIsNotAProgram) {
  const TempDir directory;
  const Finished finished = run_drun({directory.path().string()});
  EXPECT_EQ(finished.code, kCannotRun);
  EXPECT_THAT(finished.err, HasSubstr(directory.path().string()));
  expect_clean(finished);
}

TEST(BadInputTest, APythonFileThatDoesNotExistIs127BeforeAnythingStarts) {
  const std::vector<std::vector<std::string>> cases = {
      {"/no/such/train.py"},
      {"--nproc-per-node", "4", "/no/such/train.py"},
      {"--local-nodes", "2", "/no/such/train.py"},
      {"--run-path", "/no/such/train.py"},
      {"--nproc-per-node", "2", "/no/such/train${local_rank}.py"},
  };
  for (const auto& arguments : cases) {
    const Finished finished = run_drun(arguments);
    EXPECT_EQ(finished.code, kNotFound) << arguments.back();
    EXPECT_THAT(split_lines(finished.err), SizeIs(1));
    EXPECT_THAT(finished.err, AllOf(StartsWith("drun: "), HasSubstr("/no/such/train"),
                                    HasSubstr(".py: No such file or directory")));
    EXPECT_THAT(finished.out, IsEmpty());
    expect_clean(finished);
  }
}

TEST(BadInputTest, ADirectoryIsNoPythonFile) {
  const TempDir directory;
  const std::string script = directory.path() / "train.py";
  std::filesystem::create_directory(script);
  const Finished finished = run_drun({script});
  EXPECT_EQ(finished.code, kCannotRun);
  EXPECT_EQ(finished.err, "drun: error: cannot open " + script + ": Is a directory\n");
  (void)directory.write("train.py/__main__.py", "");  // but Python runs this
  Launch launch;
  launch.environment = {"PYTHON_EXEC=/bin/echo"};
  EXPECT_EQ(run_drun({script}, launch).out, "-u " + script + "\n");
}

TEST(BadInputTest, AMissingInterpreterIsNamed) {
  const TempDir directory;
  const std::string script = directory.write("train.py", "");
  for (const std::vector<std::string>& program : {std::vector<std::string>{script}, {"-m", "m"}}) {
    Launch launch;
    launch.environment = {"PYTHON_EXEC=/nonexistent/python"};
    const Finished finished = run_drun(program, launch);
    EXPECT_EQ(finished.code, kNotFound);
    EXPECT_EQ(
        finished.err,
        "drun: error: cannot exec /nonexistent/python: No such file or directory; PYTHON_EXEC "
        "names another interpreter\n");
    expect_clean(finished);
    launch.environment = {"PYTHON_EXEC=" + script};  // not executable
    EXPECT_EQ(run_drun(program, launch).code, kCannotRun);
    launch.environment = {"PATH=" + directory.path().string()};
    EXPECT_THAT(run_drun(program, launch).err, HasSubstr("cannot exec python3: No such file"));
  }
}

// Two nodes with three workers each, of which only the first has the program: both end with the
// same cause.
void expect_not_found_on_both(const TempDir& with, const std::string& program, Launch launch,
                              const testing::Matcher<std::string>& said) {
  const TempDir without;
  const ReservedPort port;
  const std::vector<std::string> arguments = {
      "--nnodes", "2", "--nproc-per-node", "3", "--rdzv-endpoint", port.endpoint(), program};
  launch.directory = with.path();
  DrunProcess good(arguments, launch);
  launch.directory = without.path();
  DrunProcess bad(arguments, launch);
  for (DrunProcess* node : {&good, &bad}) {
    const Finished finished = node->finish();
    EXPECT_EQ(finished.code, kNotFound);
    EXPECT_THAT(finished.err, said);
    expect_clean(finished);
  }
}

// A node that cannot run the program takes part until its workers are to start: so that the others
// end at once, with the same cause, instead of waiting for it.
TEST(BadInputTest, ANodeWithoutThePythonFileEndsTheJobOnAllNodes) {
  const TempDir with;
  (void)with.write("train.py", "sleep 1000\n");
  Launch launch;
  launch.environment = {"PYTHON_EXEC=" + with.write("python", "#!/bin/sh\n. \"./$2\"\n", true)};
  expect_not_found_on_both(with, "train.py", launch,
                           HasSubstr("open train.py: No such file or directory"));
}

// The same for a program: told once, not for each of its workers.
TEST(BadInputTest, ANodeWithoutTheProgramEndsTheJobOnAllNodes) {
  const TempDir with;
  (void)with.write("train", "#!/bin/sh\nsleep 1000\n", true);
  expect_not_found_on_both(
      with, "./train", {},
      AllOf(HasSubstr("exec ./train: No such file or directory\n"), Not(HasSubstr("also failed"))));
}

TEST(BadInputTest, ADryRunOnlyWarnsOfWhatIsMissing) {
  const Finished finished = run_drun({"--dry-run", "/no/such/train.py"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_THAT(finished.out, HasSubstr("python3 -u /no/such/train.py"));
  EXPECT_THAT(split_lines(finished.err), SizeIs(1));
  EXPECT_THAT(finished.err, HasSubstr("/no/such/train.py: No such file or directory"));
}

TEST(BadInputTest, AnEndpointThatDoesNotResolveIsNamedWhenTheTimeIsOver) {
  const Finished finished =
      run_drun({"--nnodes", "2", "--rdzv-endpoint", "no-such-host.invalid:29500", "--rdzv-conf",
                "join_timeout=1", "/bin/true"});
  EXPECT_EQ(finished.code, kTimeLimit);
  EXPECT_THAT(finished.err, HasSubstr("cannot resolve 'no-such-host.invalid': "));
  EXPECT_THAT(finished.err, Not(HasSubstr("no answer"))) << "there were answers";
  expect_clean(finished);
}

// As from a batch script, with the TMPDIR of another machine.
TEST(BadInputTest, AnUnusableTemporaryFolderDoesNoHarm) {
  Launch launch;
  launch.environment = {"TMPDIR=/nonexistent"};
  const Finished finished =
      run_drun({"sh", "-c", "echo $TMPDIR; echo '{}' >$TORCHELASTIC_ERROR_FILE"}, launch);
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.out, "/nonexistent\n");
  expect_clean(finished);
}

TEST(BadInputTest, AnEndpointNobodyListensOnIsNamedWhenTheTimeIsOver) {
  const ReservedPort port;
  const Finished finished = run_drun({"--nnodes", "2", "--rdzv-endpoint", port.endpoint(),
                                      "--rdzv-conf", "join_timeout=8,is_host=0", "/bin/true"});
  EXPECT_EQ(finished.code, kTimeLimit);
  EXPECT_THAT(finished.err, AllOf(HasSubstr(port.endpoint()), HasSubstr("Connection refused")));
  expect_clean(finished);
}

TEST(BadInputTest, ANodeThatNeverComesIsATimeLimitThatSaysWhoIsThere) {
  const ReservedPort port;
  const Finished finished = run_drun({"--nnodes", "3", "--rdzv-endpoint", port.endpoint(),
                                      "--rdzv-conf", "join_timeout=8", "/bin/true"});
  EXPECT_EQ(finished.code, kTimeLimit);
  EXPECT_THAT(finished.err, HasSubstr("1 of 3 nodes"));
  expect_clean(finished);
}

TEST(BadInputTest, AStaticRankThatIsMissingIsNamed) {
  const ReservedPort port;
  const Finished finished =
      run_drun({"--nnodes", "3", "--rdzv-backend", "static", "--node-rank", "0", "--master-addr",
                "127.0.0.1", "--master-port", std::to_string(port.number()), "--rdzv-conf",
                "join_timeout=8", "/bin/true"});
  EXPECT_EQ(finished.code, kTimeLimit);
  EXPECT_THAT(finished.err, HasSubstr("missing node ranks 1-2"));
  expect_clean(finished);
}

}  // namespace
}  // namespace drun::test
