// Programs of Debian's MPICH under drun, as they are: drun serves PMI-1.
#include <signal.h>

#include <cstdlib>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class MpiDrunTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    Launch compile;
    compile.argv = {"/usr/bin/env", "mpicc.mpich", MPI_PROGRAM_SOURCE, "-o", program()};
    DrunProcess compiler(compile);
    compiled_ = compiler.finish().code == 0;
  }
  static void TearDownTestSuite() { folder_.reset(); }
  void SetUp() override {
    if (!compiled_) GTEST_SKIP() << "this machine has no mpich and libmpich-dev";
  }
  static std::string program() { return folder_->path() / "mpi_program"; }
  // All ranks have found one another.
  static void expect_all(const std::string& out, int size, int here) {
    for (int rank = 0; rank < size; ++rank)
      EXPECT_THAT(out, HasSubstr("rank " + std::to_string(rank) + " of " + std::to_string(size) +
                                 ", " + std::to_string(here) + " here, universe of " +
                                 std::to_string(size) + "\n"));
  }

 private:
  static inline std::unique_ptr<TempDir> folder_;
  static inline bool compiled_ = false;
};

TEST_F(MpiDrunTest, RanksOfANodeFindOneAnother) {
  const Finished finished = run_drun({"--framework", "mpi", "-n", "4", program()});
  EXPECT_EQ(finished.code, 0) << finished.err;
  expect_all(finished.out, 4, 4);
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST_F(MpiDrunTest, OneRankIsAWorldToo) {
  expect_all(run_drun({"--framework", "mpi", program()}).out, 1, 1);
}

// Each agent exchanges what its ranks have put through the workers' store.
TEST_F(MpiDrunTest, RanksOfTwoNodesFindOneAnother) {
  const ReservedPort port;
  const Arguments flags{"--framework",     "mpi",           "--nnodes",         "2",
                        "--rdzv-endpoint", port.endpoint(), "--nproc-per-node", "2",
                        program()};
  DrunProcess other(flags);
  const Finished first = DrunProcess(flags).finish();
  const Finished second = other.finish();
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(second.code, 0) << second.err;
  expect_all(first.out + second.out, 4, 2);
}

TEST_F(MpiDrunTest, NodesMayHaveDifferentNumbersOfRanks) {
  const ReservedPort port;
  const auto flags = [&](const char* ranks) {
    return Arguments{"--framework",      "mpi", "--nnodes", "2", "--rdzv-endpoint", port.endpoint(),
                     "--nproc-per-node", ranks, program()};
  };
  DrunProcess other(flags("1"));
  const Finished first = DrunProcess(flags("3")).finish();
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(other.finish().code, 0);
  EXPECT_THAT(first.out, HasSubstr("of 4, 3 here"));
  EXPECT_THAT(other.out(), HasSubstr("of 4, 1 here"));
}

TEST_F(MpiDrunTest, AKilledRankIsARestartOfAll) {
  DrunProcess job({"--framework", "mpi", "--local-nodes", "2", "--nproc-per-node", "2",
                   "--max-restarts", "1", "sh", "-c",
                   "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exec \"$0\" stay; exec \"$0\"",
                   program()});
  for (const char* rank : {"0", "1", "2", "3"})
    ASSERT_TRUE(job.wait_for_out("rank " + std::string(rank) + " of 4"));
  ::kill(job.wait_for_pid_with("RANK=3"), SIGKILL);
  const Finished finished = job.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  const auto again = finished.out.find("rank 0 of 4", finished.out.find("rank 0 of 4") + 1);
  EXPECT_NE(again, std::string::npos) << finished.out;
  EXPECT_THAT(finished.err, HasSubstr("restart 1/1 after rank 3"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST_F(MpiDrunTest, AnAbortEndsTheJobWithItsCode) {
  for (const Arguments& nodes : {Arguments{}, Arguments{"--local-nodes", "2"}}) {
    const Finished finished = run_drun(
        nodes + Arguments{"--framework", "mpi", "--nproc-per-node", "2", program(), "abort", "1"});
    EXPECT_EQ(finished.code, 7);
    EXPECT_THAT(finished.err,
                AllOf(HasSubstr("job failed: rank 1 "), HasSubstr("aborted the job with code 7"),
                      HasSubstr("application called MPI_Abort(MPI_COMM_WORLD, 7)"),
                      Not(HasSubstr("SIGPIPE"))));
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

TEST_F(MpiDrunTest, WhoLeavesWithoutFinalizeHasFailed) {
  const Finished finished =
      run_drun({"--framework", "mpi", "--nproc-per-node", "3", program(), "leave", "2"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, HasSubstr("job failed: rank 2 "));
  EXPECT_THAT(finished.err, HasSubstr("exit code 0 (ended without MPI_Finalize)"));
}

class PmiDrunTest : public testing::Test {};

// Whatever a worker says to drun, it is that worker's failure.
TEST_F(PmiDrunTest, AWorkerThatBreaksTheProtocolFails) {
  const Finished finished =
      run_drun({"--framework", "mpi", "--nproc-per-node", "2", "sh", "-c",
                "[ $RANK = 0 ] || printf 'cmd=\\033[2J\\n' >&$PMI_FD; sleep 1000"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("job failed: rank 1 "),
                                  HasSubstr("broke PMI-1 with 'cmd=\\x1b[2J' before cmd=init")));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST_F(PmiDrunTest, AWorkerThatFloodsDrunFails) {
  const Finished finished = run_drun({"--framework", "mpi", "sh", "-c",
                                      "echo cmd=init pmi_version=1 pmi_subversion=1 >&3; "
                                      "while :; do echo cmd=get_maxes; done >&3"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, HasSubstr("broke PMI-1 by not reading the answers"));
}

TEST_F(PmiDrunTest, WorkersThatAreNoMpiProgramsRunAsEver) {
  const Finished two = run_drun({"--framework", "mpi", "--nproc-per-node", "2", "true"});
  EXPECT_EQ(two.code, 0);
  // As does one of Open MPI, of which each rank would believe that it is alone.
  EXPECT_THAT(split_lines(two.err),
              ElementsAre(AllOf(HasSubstr("has ended without asking for the others"),
                                HasSubstr("Open MPI"))));
  EXPECT_EQ(run_drun({"--framework", "mpi", "true"}).err, "");
  EXPECT_EQ(run_drun({"--framework", "mpi", "--local-nodes", "2", "true"}).code, 0);
  EXPECT_EQ(run_drun({"--framework", "mpi", "sh", "-c", "exit 5"}).code, 5);
}

TEST_F(PmiDrunTest, WithoutTheFlagWorkersHaveNoSuchDescriptor) {
  EXPECT_EQ(run_drun({"sh", "-c", "[ -z \"$PMI_FD\" ] && [ ! -e /proc/$$/fd/3 ]"}).code, 0);
}

}  // namespace
}  // namespace drun::test
