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
      ElementsAre("--redirects 3 without --log-dir: standard output is neither shown nor kept, nor "
                  "is standard error but for its end in a failure report"));
  EXPECT_THAT(options_of("-r 2 ./train").notes,
              ElementsAre("-r 2 without --log-dir: standard error is neither shown nor kept but "
                          "for its end in a failure report"));
  EXPECT_THAT(options_of("-r 2 --tail-lines 0 ./train").notes,
              ElementsAre("-r 2 without --log-dir: standard error is neither shown nor kept"));
  EXPECT_THAT(
      options_of("-r 3 --tail-lines 0 ./train").notes,
      ElementsAre("-r 3 without --log-dir: standard output and standard error are neither shown "
                  "nor kept"));
  for (const char* out : {"--redirects 1", "-r 1 -t 0:3", "-r 3 -t 2", "-r 1 --tail-lines 0"})
    EXPECT_THAT(options_of(std::string(out) + " ./train").notes,
                ElementsAre(testing::EndsWith(": standard output is neither shown nor kept")))
        << out;
  EXPECT_THAT(options_of("-r 0:1,1:2 ./train").notes,
              ElementsAre(testing::HasSubstr("standard output is neither shown nor kept, nor is")));
  EXPECT_THAT(options_of("--redirects 0:1 ./train").notes,
              ElementsAre("--redirects 0:1 without --log-dir: local rank 0: standard output is "
                          "neither shown nor kept"));
  EXPECT_THAT(options_of("--nproc-per-node 8 -r 0:1,1:3,2:1,5:1 -t 1:3 p").notes,
              ElementsAre(testing::HasSubstr(" without --log-dir: local ranks 0,2,5: ")));
  EXPECT_THAT(options_of("--log-max-size 1M ./train", {"PET_DUPLICATE_STDOUT_FILTERS=a"}).notes,
              ElementsAre("PET_DUPLICATE_STDOUT_FILTERS has no effect without --log-dir",
                          "--log-max-size has no effect without --log-dir"));
  for (const char* quiet :
       {"--redirects 0", "--redirects 3 --log-dir d", "--tee 3", "-r 2 --log-dir d", "-r 3 -t 3",
        "-r 0:1 -t 0:1", "--redirects 3 --log-dir /dev/null"})
    EXPECT_THAT(options_of(std::string(quiet) + " ./train").notes, testing::IsEmpty()) << quiet;
}

TEST(OptionsTest, SaysThatAFolderGetsNoOutput) {
  EXPECT_THAT(options_of("--log-dir d ./train").notes,
              ElementsAre("--log-dir: no output is kept there without --tee or --redirects"));
  EXPECT_THAT(options_of("./train", {"PET_LOG_DIR=d"}).notes,
              ElementsAre("PET_LOG_DIR: no output is kept there without --tee or --redirects"));
  EXPECT_THAT(options_of("--log-dir d --duplicate-stdout-filters x ./train").notes,
              ElementsAre("--duplicate-stdout-filters has no effect without --tee"));
  EXPECT_THAT(options_of("--log-dir d -r 3 -t 0:2 --duplicate-stdout-filters x p").notes,
              ElementsAre("--duplicate-stdout-filters has no effect without --tee"));
  EXPECT_THAT(options_of("--log-dir d -t 1 --duplicate-stderr-filters x p").notes,
              ElementsAre("--duplicate-stderr-filters has no effect without --tee"));
  for (const char* kept :
       {"-t 3", "-r 2", "-t 0:1", "-r 0:1", "-l", "-t 0:1 --duplicate-stdout-filters x",
        "-l --duplicate-stdout-filters x --duplicate-stderr-filters x"})
    EXPECT_THAT(options_of("--log-dir d " + std::string(kept) + " p").notes, testing::IsEmpty())
        << kept;
  EXPECT_THAT(options_of("--log-dir /dev/null p").notes, testing::IsEmpty());
}

TEST(OptionsTest, SaysThatAPrefixHasNothingToStandBefore) {
  EXPECT_THAT(options_of("--log-line-prefix-template X p").notes,
              ElementsAre("--log-line-prefix-template has no effect without --tee or --label"));
  for (const char* used : {"-t 3", "-t 0:1", "-l"})
    EXPECT_THAT(options_of(std::string(used) + " --log-line-prefix-template X p").notes,
                testing::IsEmpty());
  EXPECT_THAT(options_of("p", {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=X"}).notes,
              testing::IsEmpty());
}

// As of "--log-dir "$LOGDIR"" without the variable.
TEST(OptionsTest, NamesOfNothingAreRefused) {
  EXPECT_EQ(parse({"--log-dir", "", "--tee", "3", "p"}).text,
            "drun: error: --log-dir '': expected the name of a folder\n");
  EXPECT_TRUE(parse({"p"}, {"PET_LOG_DIR="}).options);
  EXPECT_EQ(parse({"--report", "-", "p"}).text,
            "drun: error: --report '-': expected the name of a file; standard output is the "
            "workers'\n");
  EXPECT_TRUE(parse({"--report", "./-", "p"}).options);
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

// As in a worker of torchrun.
TEST(OptionsTest, SaysThatAJobOfOneDoesNotUseAnotherLaunchersPlace) {
  const std::vector<std::string> place{"WORLD_SIZE=2", "RANK=0", "MASTER_ADDR=10.0.0.1"};
  const auto with = [&](const std::string& more) {
    auto environment = place;
    environment.push_back(more);
    return environment;
  };
  for (const char* alone : {"", "--standalone ", "--local-nodes 2 ", "--nnodes 1 "})
    EXPECT_THAT(options_of(alone + std::string("p"), place).notes,
                ElementsAre("WORLD_SIZE is 2, and RANK and MASTER_ADDR are set, but this drun "
                            "starts a job of its own; if they count nodes, --cluster operator "
                            "makes one job of all"))
        << alone;
  EXPECT_THAT(options_of("--cluster operator p", with("MASTER_PORT=1")).notes, testing::IsEmpty());
  EXPECT_THAT(options_of("p", with("PMI_SIZE=2")).notes, testing::SizeIs(1));
  for (const char* meant : {"--cluster none p", "--nnodes 2 --rdzv-endpoint h p"})
    EXPECT_THAT(options_of(meant, place).notes, testing::IsEmpty()) << meant;
  EXPECT_THAT(options_of("p", with("DRUN_ROUND=1")).notes, testing::IsEmpty());
  EXPECT_THAT(options_of("p", {"WORLD_SIZE=2", "RANK=0"}).notes, testing::IsEmpty());
  EXPECT_THAT(options_of("p", {"WORLD_SIZE=1", "RANK=0", "MASTER_ADDR=h"}).notes,
              testing::IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
