#include "launcher/command_line/parse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using test::options_of;
using test::parse;
using test::parse_line;
using ::testing::ElementsAre;

TEST(OptionsTest, APlainProgramIsAStandaloneJobOfOneWorker) {
  const Options options = options_of("./train --lr 0.1");
  EXPECT_EQ(options.backend, Backend::Standalone);
  EXPECT_EQ(options.min_nodes, 1);
  EXPECT_EQ(options.max_nodes, 1);
  EXPECT_EQ(options.nproc_per_node, 1);
  EXPECT_EQ(options.run_id, "fresh-id");
  EXPECT_EQ(options.max_restarts, 0);
  EXPECT_EQ(options.role, "default");
  EXPECT_FALSE(options.node_rank);
  EXPECT_FALSE(options.master_port);
  EXPECT_THAT(options.command, ElementsAre("./train", "--lr", "0.1"));
}

TEST(OptionsTest, AnEndpointWithoutABackendMeansC10d) {
  const Options options =
      options_of("--nnodes 2 --nproc-per-node 4 --rdzv-endpoint host:29500 ./train");
  EXPECT_EQ(options.backend, Backend::C10d);
  EXPECT_EQ(options.endpoint, (Endpoint{"host", 29500}));
  EXPECT_EQ(options.run_id, "none");
  EXPECT_EQ(options.conf.join_timeout, std::chrono::seconds(600));
}

TEST(OptionsTest, AUsageErrorIsOneLineAndCode2) {
  const Parsed parsed = parse_line("--nnodes 0 ./train");
  EXPECT_FALSE(parsed.options);
  EXPECT_EQ(parsed.exit_code, 2);
  EXPECT_EQ(parsed.text, "drun: error: --nnodes '0': at least one node must take part\n");
}

TEST(OptionsTest, VersionPrintsTheVersion) {
  const Parsed parsed = parse({"--version"});
  EXPECT_EQ(parsed.exit_code, 0);
  EXPECT_EQ(parsed.text, "drun 0.1.0\n");
}

TEST(OptionsTest, TorchsTimersAreServedIfItsVariableAsksForIt) {
  EXPECT_TRUE(options_of("./train", {"TORCHELASTIC_ENABLE_FILE_TIMER=1"}).file_timers);
  EXPECT_FALSE(options_of("./train", {"TORCHELASTIC_ENABLE_FILE_TIMER=0"}).file_timers);
  EXPECT_FALSE(options_of("./train", {"TORCHELASTIC_TIMER_FILE=/tmp/x"}).file_timers);
}

TEST(OptionsTest, NamesAVariableThatSetsNoFlag) {
  EXPECT_THAT(options_of("./train", {"PET_NNODE=2"}).notes,
              ElementsAre("the variable 'PET_NNODE' sets no flag; did you mean PET_NNODES?"));
}

TEST(OptionsTest, SaysWhichOutputIsLostWithoutAFolder) {
  EXPECT_THAT(
      options_of("--redirects 3 ./train").notes,
      ElementsAre("--redirects 3 without --log-dir: standard output is neither shown nor kept"));
  for (const char* lost : {"--redirects 1", "-r 0:1,1:2", "-r 1 -t 0:3", "-r 3 -t 2"})
    EXPECT_THAT(options_of(std::string(lost) + " ./train").notes, testing::SizeIs(1)) << lost;
  EXPECT_THAT(options_of("--log-max-size 1M ./train", {"PET_DUPLICATE_STDOUT_FILTERS=a"}).notes,
              ElementsAre("PET_DUPLICATE_STDOUT_FILTERS has no effect without --log-dir",
                          "--log-max-size has no effect without --log-dir"));
  for (const char* quiet :
       {"--redirects 0", "--redirects 3 --log-dir d", "--tee 3", "--redirects 2", "-r 3 -t 3",
        "-r 0:1 -t 0:1", "--redirects 3 --log-dir /dev/null"})
    EXPECT_THAT(options_of(std::string(quiet) + " ./train").notes, testing::IsEmpty()) << quiet;
}

TEST(OptionsTest, SaysThatAFlagAfterTheProgramIsTheProgramsOwn) {
  const auto said = [](const std::string& flag, const std::string& program) {
    return "'" + flag + "' comes after the program and is left to it; drun's flags go before '" +
           program + "'";
  };
  for (const char* flag : {"--nproc-per-node", "--nproc_per_node", "--nnodes", "--max-restarts",
                           "--rdzv-endpoint", "--rdzv_id"})
    EXPECT_THAT(options_of("./sh.sh -a " + std::string(flag) + " 4 b").notes,
                ElementsAre(said(flag, "./sh.sh")));
  EXPECT_THAT(options_of("train.py --nnodes=2 --nproc-per-node=4").notes,
              ElementsAre(said("--nnodes", "train.py")));
  EXPECT_THAT(options_of("--nnodes 2 --rdzv-endpoint h p --nproc-per-node 4").notes,
              ElementsAre(said("--nproc-per-node", "p")));
  EXPECT_EQ(options_of("-q p --nproc-per-node 4").quiet, true);
  for (const char* meant :
       {"--nproc-per-node 2 p --nproc-per-node 4", "p --nproc-per-nodes 4", "p --role a",
        "p --log-dir a", "p --master-port 1", "p -nnodes", "p --nproc", "p -- --nnodes 2",
        "sh torchrun --nnodes 2 q", "/usr/bin/torchrun --nnodes 2 q",
        "-m torch.distributed.run --nnodes 1", "env A=1 drun --nproc-per-node 2 q"})
    EXPECT_THAT(options_of(meant).notes, testing::IsEmpty()) << meant;
}

TEST(OptionsTest, SaysWhereNoLocalRankIsMeant) {
  EXPECT_THAT(options_of("--nproc-per-node 2 --local-ranks-filter 9 p").notes,
              ElementsAre("--local-ranks-filter 9 shows no output here: this node's local ranks "
                          "are 0 to 1"));
  EXPECT_THAT(options_of("p", {"PET_LOCAL_RANKS_FILTER=1,2"}).notes,
              ElementsAre("PET_LOCAL_RANKS_FILTER 1,2 shows no output here: this node's only "
                          "local rank is 0"));
  EXPECT_THAT(options_of("--nproc-per-node 2 --tee 5:3 -r 2:1,3:1 --log-dir d p").notes,
              ElementsAre("-r 2:1,3:1 has no effect here: this node's local ranks are 0 to 1",
                          "--tee 5:3 has no effect here: this node's local ranks are 0 to 1"));
  for (const char* some :
       {"--local-ranks-filter 0,9 p", "--local-nodes 2 --nproc-per-node 2 --tee 1:3 p",
        "--tee 0:3,5:3 p", "--tee 3 p", "--label --tee 0:1 p"})
    EXPECT_THAT(options_of(some).notes, testing::IsEmpty()) << some;
}

TEST(OptionsTest, SaysWhereADrunAmongSeveralTasksIsAJobOfItsOwn) {
  // Where the user says that this node is the job; without these flags drun refuses.
  EXPECT_THAT(options_of("--standalone ./train", {"OMPI_COMM_WORLD_SIZE=8"}).notes,
              testing::SizeIs(1));
  EXPECT_THAT(options_of("--nnodes 1 ./train", {"OMPI_COMM_WORLD_SIZE=8"}).notes,
              testing::SizeIs(1));
  EXPECT_THAT(options_of("--cluster none ./train", {"OMPI_COMM_WORLD_SIZE=8"}).notes,
              testing::IsEmpty());
  for (const std::string name : {"SLURM_STEP_NUM_TASKS", "PMI_SIZE"}) {
    const std::string said =
        "each of the 8 tasks (" + name +
        ") starts a job of its own; for one job on all nodes start one task a node, with --nnodes "
        "and --rdzv-endpoint";
    for (const char* alone : {"", "--standalone ", "--local-nodes 2 "})
      EXPECT_THAT(options_of(alone + std::string("./train"), {name + "=8"}).notes,
                  ElementsAre(said));
    EXPECT_THAT(options_of("./train", {name + "=1"}).notes, testing::IsEmpty());
    EXPECT_THAT(options_of("./train", {name + "=8", "DRUN_ROUND=1"}).notes, testing::IsEmpty());
    EXPECT_THAT(options_of("--nnodes 8 --rdzv-endpoint h ./train", {name + "=8"}).notes,
                testing::IsEmpty());
  }
}

}  // namespace
}  // namespace drun::launcher
