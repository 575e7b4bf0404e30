// -H, --hostfile: what each agent is told, and what is refused before anybody is started.
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/command_line/parse.hpp"
#include "launcher/hosts/start_plan.hpp"
#include "support/options_support.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using test::options_of;
using test::parse_line;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The flags that the agent of `node` is started with, blanks between; or the error.
std::string told(const std::string& line, std::size_t node = 0,
                 const std::vector<std::string>& environment = {}) {
  const Parsed parsed = parse_line(line + " ./train", environment);
  if (!parsed.options) {
    EXPECT_EQ(parsed.exit_code, 2);
    return parsed.text;
  }
  EXPECT_TRUE(parsed.options->start);
  std::string text;
  for (const std::string& word : agent_command(*parsed.options->start, node, {"place", 0})) {
    EXPECT_EQ(word.find('\0'), word.npos) << "it would be two words there";
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

TEST(BuildHostsTest, AnAgentIsStartedAsAUserWouldStartIt) {
  EXPECT_EQ(told("-H a:4,b:2 --max-restarts 3", 1),
            "drun --nnodes=2 --max-restarts=3 --rdzv-id=fresh-id --node-rank=1 --nproc-per-node=2 "
            "--rdzv-backend=c10d --rdzv-endpoint=place --rdzv-conf=is_host=false -- ./train");
  EXPECT_EQ(told("--hostfile /hosts --nproc-per-node gpu -v -l"),
            "drun --nnodes=2 --nproc-per-node=gpu --rdzv-id=fresh-id --label --verbose "
            "--node-rank=0 --rdzv-backend=c10d --rdzv-endpoint=place --rdzv-conf=is_host=true -- "
            "./train");
  EXPECT_EQ(told("-H a"), "drun --nnodes=1 --rdzv-id=fresh-id -- ./train");
  EXPECT_EQ(told("-H a,b,c --nnodes 1:2 --rdzv-id mine --rdzv-conf join_timeout=9", 2),
            "drun --nnodes=1:2 --rdzv-id=mine --rdzv-backend=c10d "
            "--rdzv-endpoint=place --rdzv-conf=join_timeout=9,is_host=false -- ./train");
}

TEST(BuildHostsTest, WhatIsGivenSeveralTimesIsToldSeveralTimes) {
  const std::string all = told("-H a --on-event restart:one --on-event end:two");
  EXPECT_THAT(all, HasSubstr(" --on-event=restart:one --on-event=end:two "));
  EXPECT_THAT(told("-H a --on-event end:two"), HasSubstr(" --on-event=end:two "));
}

TEST(BuildHostsTest, HostsMayBeGivenOneByOne) {
  const auto hosts = [](const std::string& line) {
    const Options options = options_of(line + " ./train");
    std::string text;
    for (const hosts::Host& host : options.start->hosts)
      text += host.name + "=" + std::to_string(host.slots.value_or(0)) + " ";
    return text;
  };
  EXPECT_EQ(hosts("-H a:2 --host b:2,c -H a:1"), "a=3 b=2 c=0 ");
  EXPECT_EQ(hosts("-H a:2"), "a=2 ");
  EXPECT_EQ(test::parse_line("-H a -H= ./train", {}).text,
            "drun: error: -H 'a,': it names no host\n");
}

TEST(BuildHostsTest, WhereTheNodesMeetMayBeSaid) {
  EXPECT_EQ(told("-H a,b --rdzv-endpoint a:29500 --rdzv-conf join_timeout=9"),
            "drun --nnodes=2 --rdzv-endpoint=a:29500 --rdzv-id=fresh-id "
            "--rdzv-conf=join_timeout=9 --node-rank=0 -- ./train");
  EXPECT_EQ(told("-H a,b", 0, {"PET_RDZV_ENDPOINT=a:1"}),
            "drun --nnodes=2 --rdzv-id=fresh-id --node-rank=0 -- ./train");
  EXPECT_THAT(told("-H a,b --rdzv-conf is_host=true", 1), HasSubstr("--rdzv-conf=is_host=true --"));
}

TEST(BuildHostsTest, SrunStartsThemOnTheNodesOfAnAllocation) {
  std::vector<std::string> job{"SLURM_JOB_ID=1", "SLURM_JOB_NUM_NODES=2",
                               "SLURM_JOB_NODELIST=n[1-2]"};
  EXPECT_EQ(told("--launcher srun", 1, job),
            "drun --nnodes=2 --rdzv-id=fresh-id --node-rank=1 --rdzv-backend=c10d "
            "--rdzv-endpoint=place --rdzv-conf=is_host=false -- ./train");
  EXPECT_THAT(told("--launcher srun -H n2:4", 0, job), HasSubstr("--nnodes=1 "));
  EXPECT_THAT(told("--launcher srun"),
              HasSubstr("--launcher 'srun': this is no job of Slurm (SLURM_JOB_ID is not set): "));
  EXPECT_THAT(told("--launcher srun -H n1"), HasSubstr("this is no job of Slurm"));
  EXPECT_THAT(told("--launcher srun", 0, {"SLURM_JOB_ID=1"}), HasSubstr("SLURM_JOB_NODELIST"));
  job.emplace_back("SLURM_STEP_ID=4294967290");  // salloc's shell
  EXPECT_THAT(told("--launcher srun", 0, job), HasSubstr("--nnodes=2 "));
  job.back() = "SLURM_STEP_ID=0";
  EXPECT_THAT(told("--launcher srun", 0, job),
              HasSubstr("an srun has started this drun already (SLURM_STEP_ID='0')"));
  job.back() = "SLURM_HET_SIZE=2";
  EXPECT_THAT(told("--launcher srun", 0, job),
              HasSubstr("not in a heterogeneous job, and this may be one: "
                        "SLURM_JOB_NODELIST_HET_GROUP_0 (not set)"));
  job.insert(job.end(), {"SLURM_JOB_NODELIST_HET_GROUP_0=n1", "SLURM_JOB_NODELIST_HET_GROUP_1=m1"});
  EXPECT_THAT(told("--launcher srun", 0, job),
              HasSubstr("srun --het-group=0-1 --ntasks-per-node=1 drun ..."));
}

TEST(BuildHostsTest, SrunsNodesHaveAsManyWorkersAsTheJobHasTasksThere) {
  std::vector<std::string> job{"SLURM_JOB_ID=1", "SLURM_JOB_NUM_NODES=3", "SLURM_NTASKS=5",
                               "SLURM_JOB_NODELIST=n[1-3]", "SLURM_TASKS_PER_NODE=2(x2),1"};
  EXPECT_THAT(told("--launcher srun", 0, job), HasSubstr("--nproc-per-node=2 "));
  EXPECT_THAT(told("--launcher srun", 2, job), HasSubstr("--nproc-per-node=1 "));
  EXPECT_THAT(told("--launcher srun --nproc-per-node 4", 0, job),
              Not(HasSubstr("--nproc-per-node=2 ")));
  for (const char* flags : {"-H n1", "--gpu-ids 0,1", "--include 0"})
    EXPECT_THAT(told("--launcher srun " + std::string(flags), 0, job),
                Not(HasSubstr("--nproc-per-node")));
  job[2] = "SLURM_CPUS_PER_TASK=1";  // nobody has asked for so many tasks
  EXPECT_THAT(told("--launcher srun", 0, job), Not(HasSubstr("--nproc-per-node")));
}

// srun would give the step the GPUs of one task of the job's.
TEST(BuildHostsTest, SrunsStepsHaveAllGpusOfTheirNode) {
  const std::vector<std::string> job{"SLURM_JOB_ID=1",        "SLURM_JOB_NUM_NODES=2",
                                     "SLURM_NTASKS=4",        "SLURM_JOB_NODELIST=n[1-2]",
                                     "SLURM_GPUS_PER_TASK=1", "SLURM_TASKS_PER_NODE=2(x2)",
                                     "SLURM_GPUS_ON_NODE=2"};
  const auto words = [&job](const std::string& launcher) {
    const auto parsed =
        parse_options({"drun", "--launcher", launcher, "./train"}, job, test::made_up_machine());
    return parsed.options->start->launcher.words;
  };
  EXPECT_THAT(words("srun"), ElementsAre("srun", "--gpus-per-node=2"));
  for (const char* said : {"--gpus-per-node=1", "--gres=gpu:1", "-G1"})
    EXPECT_THAT(words("srun " + std::string(said)), ElementsAre("srun", said));
}

// The hosts have it, perhaps.
TEST(BuildHostsTest, AFolderThatIsGoneHereIsNamedAsTheShellDoes) {
  const std::filesystem::path before = std::filesystem::current_path();
  const drun::test::TemporaryDirectory around;
  const std::string folder = around.file("gone");
  std::filesystem::create_directory(folder);
  std::filesystem::current_path(folder);
  ASSERT_EQ(::setenv("PWD", folder.c_str(), 1), 0);
  EXPECT_EQ(this_host().working_directory(), folder);
  std::filesystem::remove(folder);
  EXPECT_EQ(this_host().working_directory(), folder);
  ASSERT_EQ(::setenv("PWD", ".", 1), 0);
  EXPECT_EQ(this_host().working_directory(), "/");
  std::filesystem::current_path(before);
}

TEST(BuildHostsTest, NoSchedulerIsAsked) {
  const std::vector<std::string> step{"SLURM_JOB_ID=1", "SLURM_JOB_NUM_NODES=4",
                                      "SLURM_JOB_NODELIST=n[1-4]"};
  EXPECT_EQ(told("-H a", 0, step), "drun --nnodes=1 --rdzv-id=fresh-id -- ./train");
}

TEST(BuildHostsTest, VariablesGoOverAndDoNotMakeStartersOfTheAgents) {
  const auto options =
      options_of("-x B=2 -x C --env-file /variables -H a,b ./train",
                 {"A=1", "PET_MAX_RESTARTS=2", "PET_HOST=x", "DRUN_CLUSTER=slurm"});
  EXPECT_THAT(options.start->environment,
              ElementsAre("A=1", "B=2", "FROM_FILE=1", "PET_MAX_RESTARTS=2",
                          "PET_HOST=", "PET_HOSTFILE=", "PET_LAUNCHER="));
  EXPECT_THAT(options.notes, ElementsAre("C is to be handed over, and is not set here"));
  EXPECT_EQ(options.start->directory, "/here");
  EXPECT_EQ(options.start->drun, "/opt/drun");
  EXPECT_EQ(options.start->fan_out, 32U);
  EXPECT_EQ(options_of("-H a --fan-out 4 ./train").start->fan_out, 4U);
  EXPECT_EQ(options.max_restarts, 2);
}

TEST(BuildHostsTest, TheEndOfTheJobHereIsTheEndThere) {
  const auto handed = [](const std::vector<std::string>& environment) {
    return options_of("-H a,b --warn-before USR1@5 ./train", environment).start->environment;
  };
  EXPECT_THAT(
      handed({"SLURM_JOB_ID=1", "SLURM_JOB_END_TIME=1700000000"}),
      ElementsAre("PET_HOST=", "PET_HOSTFILE=", "PET_LAUNCHER=", "DRUN_JOB_END_TIME=1700000000"));
  EXPECT_THAT(
      handed({"DRUN_JOB_END_TIME=1600000000", "SLURM_JOB_ID=1", "SLURM_JOB_END_TIME=1700000000"}),
      ElementsAre("DRUN_JOB_END_TIME=1600000000", "PET_HOST=", "PET_HOSTFILE=", "PET_LAUNCHER="));
  EXPECT_THAT(told("-H a,b --timeout 1h --warn-before USR1@5"), HasSubstr("--warn-before=USR1@5"));
}

TEST(BuildHostsTest, EmptyVariablesNameNoHosts) {
  EXPECT_FALSE(options_of("./train", {"PET_HOST=", "PET_HOSTFILE="}).start);
}

TEST(BuildHostsTest, WhatCannotBeStartedIsRefusedHere) {
  const struct {
    const char* line;
    const char* why;
  } cases[] = {
      {"-H a:0", "-H 'a:0': 'a:0': '0' is no number of slots"},
      {"-H a --hostfile /hosts", "-H and --hostfile both list hosts: give one"},
      {"--hostfile /none", "--hostfile '/none': cannot read this file: it is not there"},
      {"-H a,b --nnodes 3", "--nnodes '3': there are fewer hosts in the list: 2"},
      {"-H a,b --node-rank 1",
       "--node-rank is for one drun, and -H or --hostfile starts one on each host"},
      {"-H a,b --node-rank 0",
       "--node-rank is for one drun, and -H or --hostfile starts one on each host"},
      {"-H a,b --nnodes 1",
       "--nnodes '1': a job of one node has no spares, and there are 2 hosts in the list"},
      {"--host=", "--host '': it names no host"},
      {"--hostfile=", "--hostfile '': it names no host"},
      {"-H a --standalone",
       "--standalone is for one drun, and -H or --hostfile starts one on each host"},
      {"-H a --stdin 0",
       "--stdin: standard input does not go to other hosts; let the worker read a file"},
      {"--hostfile /hosts --nproc-per-node 8",
       "node7 takes at most 4 workers (max_slots), and would get 8"},
      {"-H a -x 1=secret", "-x: '1' is no name of a variable"},
      {"-x A=1",
       "-x is for other hosts (-H, --hostfile); workers of this one inherit drun's environment"},
      {"--env-file /variables",
       "--env-file is for other hosts (-H, --hostfile); workers of this one inherit drun's "
       "environment"},
      {"--launcher ssh", "--launcher is for other hosts: name them with -H or --hostfile"},
      {"--fan-out 4", "--fan-out is for other hosts: name them with -H or --hostfile"},
      {"--copy-self", "--copy-self is for other hosts: name them with -H or --hostfile"},
      {"-H a --fan-out 0", "--fan-out '0': expected a whole number from 1 to 100000"},
      {"-H a --max-restarts x", "--max-restarts 'x': expected a whole number of at least 0"},
  };
  for (const auto& [line, why] : cases)
    EXPECT_EQ(told(line), std::string("drun: error: ") + why + "\n") << line;
}

TEST(BuildHostsTest, ExplainShowsNoValueOfAVariable) {
  const Parsed parsed = parse_line("-H a:2 -x KEY=one\nhunter2 -x B=hunter2 --explain");
  EXPECT_THAT(parsed.text, AllOf(HasSubstr("'KEY B'"), Not(HasSubstr("hunter2")),
                                 HasSubstr("nnodes          1         from -H\n")));
}

}  // namespace
}  // namespace drun::launcher
