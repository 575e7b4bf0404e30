// The examples run as their own comments say.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using testing::UnorderedElementsAreArray;

const std::string kExamples = places::source("examples/");
const std::string kAllgather = places::program("allgather");
const std::string kAllreduce = places::program("allreduce");

// Of an all-gather: what each rank prints.
std::vector<std::string> gathered(int size) {
  std::string numbers;
  for (int rank = 0; rank < size; ++rank)
    numbers += " " + std::to_string(rank * rank);
  std::vector<std::string> lines;
  for (int rank = 0; rank < size; ++rank)
    lines.push_back("rank " + std::to_string(rank) + " of " + std::to_string(size) + " got" +
                    numbers);
  return lines;
}

TEST(ExamplesTest, AllgatherOnOneNodeAndOnTwo) {
  const Finished one = run_drun({"--nproc-per-node", "4", kAllgather});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(split_lines(one.out), UnorderedElementsAreArray(gathered(4)));
  EXPECT_THAT(one.survivors, IsEmpty());
  const Finished two = run_drun({"--local-nodes", "2", "--nproc-per-node", "4", kAllgather});
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_THAT(split_lines(two.out), UnorderedElementsAreArray(gathered(8)));
  EXPECT_THAT(two.survivors, IsEmpty());
}

TEST(ExamplesTest, AllgatherIsNoMoreThanTwentyLines) {
  int lines = 0;
  for (const std::string& line : split_lines(read_file(kExamples + "allgather/main.cpp")))
    lines += line.empty() || line.starts_with("//") ? 0 : 1;
  EXPECT_LE(lines, 20);
}

TEST(ExamplesTest, AllreduceOnOneNode) {
  const Finished finished = run_drun({"--nproc-per-node", "3", kAllreduce});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(split_lines(finished.out), SizeIs(4));
  EXPECT_THAT(finished.out, HasSubstr("pi = 3.14159265359, computed by 3 workers on 1 node(s)"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(ExamplesTest, AllreduceAlone) {
  EXPECT_THAT(run_drun({kAllreduce}).out, HasSubstr("pi = 3.14159265359, computed by 1 workers"));
}

TEST(ExamplesTest, AllreduceOnTwoNodesOfThisMachine) {
  const Finished finished = run_drun({"--local-nodes", "2", "--nproc-per-node", "4", kAllreduce});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(split_lines(finished.out), SizeIs(9));
  EXPECT_THAT(finished.out, HasSubstr("pi = 3.14159265359, computed by 8 workers on 2 node(s)"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(ExamplesTest, AllreduceSaysThatItNeedsALauncher) {
  Launch launch;
  launch.argv = {kAllreduce};
  DrunProcess process(launch);
  const Finished finished = process.finish();
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(finished.err, "allreduce: RANK is not set: start this program with drun\n");
}

TEST(ExamplesTest, ShellWorker) {
  const Finished finished = run_drun({"--nproc-per-node", "2", kExamples + "shell/hello.sh"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_THAT(split_lines(finished.out),
              UnorderedElementsAre("hello from rank 0 of 2 (local rank 0 on node 0)",
                                   "hello from rank 1 of 2 (local rank 1 on node 0)"));
}

Finished smoke(std::vector<std::string> program) {
  Launch launch;
  launch.argv = {kExamples + "ci/smoke.sh"};
  launch.argv.insert(launch.argv.end(), program.begin(), program.end());
  launch.environment = {"DRUN=" + drun_path()};
  DrunProcess process(launch);
  return process.finish();
}

TEST(ExamplesTest, SmokeTestPassesAndFailsWithTheProgram) {
  const Finished good = smoke({kExamples + "shell/hello.sh"});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(split_lines(good.out), SizeIs(4));
  EXPECT_EQ(smoke({"sh", "-c", "[ $RANK = 3 ] && exit 6; exec sleep 1000"}).code, 6);
  EXPECT_EQ(smoke({}).code, 2);
}

}  // namespace
}  // namespace drun::test
