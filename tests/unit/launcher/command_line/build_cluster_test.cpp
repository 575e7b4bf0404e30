// --cluster: what a scheduler says stands below every flag and variable of drun's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/command_line/parse.hpp"
#include "support/golden.hpp"
#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using test::options_of;
using test::parse_line;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Environment = std::vector<std::string>;

const Environment kStep = test::step_of_two_nodes();

Environment with(const Environment& more, Environment all = kStep) {
  all.insert(all.begin(), more.begin(), more.end());
  return all;
}

// "backend endpoint id rank nodes", or the error.
std::string meaning(const std::string& line, const Environment& environment = kStep) {
  const Parsed parsed = parse_line(line + " ./program", environment);
  if (!parsed.options) {
    EXPECT_EQ(parsed.exit_code, 2);
    return parsed.text;
  }
  const Options& options = *parsed.options;
  const std::string nodes =
      std::to_string(options.min_nodes) + ":" + std::to_string(options.max_nodes);
  if (options.backend == Backend::Standalone) return "standalone " + nodes;
  std::string text = options.backend == Backend::C10d     ? "c10d "
                     : options.backend == Backend::Static ? "static "
                                                          : "etcd ";
  text += meeting_place(options) + " " + options.run_id + " rank ";
  text += options.node_rank ? std::to_string(*options.node_rank) : "any";
  if (options.node_rank_is_wish) text += " if free";
  return text + " " + nodes;
}

struct Case {
  const char* line;
  const char* meaning;
};

TEST(ClusterOptionsTest, FlagsWinValueByValue) {
  const Case cases[] = {
      {"", "c10d n1:24711 4711.0 rank 1 if free 2:2"},
      {"--cluster auto", "c10d n1:24711 4711.0 rank 1 if free 2:2"},
      {"--cluster slurm", "c10d n1:24711 4711.0 rank 1 if free 2:2"},
      {"--nnodes 2", "c10d n1:24711 4711.0 rank 1 if free 2:2"},
      {"--nnodes 1:2", "c10d n1:24711 4711.0 rank 1 if free 1:2"},
      {"--nnodes 2:8", "c10d n1:24711 4711.0 rank 1 if free 2:8"},
      {"--rdzv-id mine", "c10d n1:24711 mine rank 1 if free 2:2"},
      {"--node-rank 0", "c10d n1:24711 4711.0 rank 0 2:2"},
      {"--rdzv-conf rank=0", "c10d n1:24711 4711.0 rank 0 2:2"},
      {"--rdzv-endpoint h:1", "c10d h:1 4711.0 rank 1 if free 2:2"},
      {"--rdzv-endpoint h:1 --rdzv-id x --node-rank 0", "c10d h:1 x rank 0 2:2"},
      {"--master-addr h --master-port 1", "static h:1 4711.0 rank 1 if free 2:2"},
      {"--master-port 1", "c10d n1:24711 4711.0 rank 1 if free 2:2"},
      {"--rdzv-backend static", "static n1:24711 4711.0 rank 1 if free 2:2"},
      {"--rdzv-backend etcd --rdzv-endpoint e", "etcd etcd at e:2379 4711.0 rank 1 if free 2:2"},
      // A job that says how many nodes there are and where they meet is as without Slurm.
      {"--nnodes 2 --rdzv-endpoint h:1", "c10d h:1 none rank any 2:2"},
      {"--nnodes 2 --rdzv-endpoint h:1 --cluster slurm", "c10d h:1 4711.0 rank 1 if free 2:2"},
      {"--nnodes 2 --master-addr h --node-rank 0", "static h:29500 none rank 0 2:2"},
      // One node.
      {"--nnodes 1", "standalone 1:1"},
      {"--standalone", "standalone 1:1"},
      {"--cluster none", "standalone 1:1"},
      {"--rdzv-endpoint localhost:0", "standalone 1:1"},
      {"--nnodes 1 --rdzv-endpoint h:1", "c10d h:1 none rank any 1:1"},
      {"--cluster none --rdzv-endpoint h:1", "c10d h:1 none rank any 1:1"},
  };
  for (const Case& each : cases)
    EXPECT_EQ(meaning(each.line), each.meaning) << each.line;
}

TEST(ClusterOptionsTest, VariablesOfDrunWin) {
  EXPECT_EQ(meaning("", with({"PET_NNODES=1:2", "PET_RDZV_ID=mine"})),
            "c10d n1:24711 mine rank 1 if free 1:2");
  EXPECT_EQ(meaning("", with({"PET_NODE_RANK=0"})), "c10d n1:24711 4711.0 rank 0 2:2");
  // Kubeflow's: nothing is left to ask.
  EXPECT_EQ(meaning("", with({"PET_NNODES=2", "PET_NODE_RANK=1", "PET_MASTER_ADDR=j-node-0-0.j",
                              "PET_MASTER_PORT=29500"})),
            "static j-node-0-0.j:29500 none rank 1 2:2");
  EXPECT_EQ(meaning("", with({"PET_STANDALONE=1"})), "standalone 1:1");
  EXPECT_EQ(meaning("", with({"DRUN_CLUSTER=none"})), "standalone 1:1");
  EXPECT_EQ(meaning("", with({"PET_CLUSTER=none"})), "standalone 1:1");
  EXPECT_EQ(meaning("--cluster auto", with({"DRUN_CLUSTER=none"})),
            "c10d n1:24711 4711.0 rank 1 if free 2:2");
  EXPECT_EQ(meaning("", with({"DRUN_CLUSTER=condor"})).substr(0, 59),
            "drun: error: DRUN_CLUSTER 'condor': expected auto, none, sl");
}

TEST(ClusterOptionsTest, LocalNodesAreNoClusters) {
  const Options options = options_of("--local-nodes 2 ./program", kStep);
  EXPECT_EQ(options.max_nodes, 2);
  EXPECT_EQ(options.endpoint, (Endpoint{"127.0.0.1", 0}));
  EXPECT_EQ(options.inferred, "");
}

// It inherits the variables, and is none of the scheduler's tasks.
TEST(ClusterOptionsTest, AWorkersOwnDrunIsAJobOfOneNode) {
  EXPECT_EQ(meaning("", with({"DRUN_ROUND=1"})), "standalone 1:1");
  EXPECT_EQ(meaning("", with({"TORCHELASTIC_RUN_ID=x"})), "standalone 1:1");
  EXPECT_EQ(meaning("--cluster slurm", with({"DRUN_ROUND=1"})),
            "c10d n1:24711 4711.0 rank 1 if free 2:2");
}

TEST(ClusterOptionsTest, NodesBeyondTheMostAreSpares) {
  const Environment third{"SLURM_STEP_NUM_NODES=3", "SLURM_STEP_NODELIST=n[1-3]",
                          "SLURM_STEP_NUM_TASKS=3", "SLURM_STEP_TASKS_PER_NODE=1(x3)",
                          "SLURM_NODEID=2"};
  EXPECT_EQ(meaning("--nnodes 2", with(third)), "c10d n1:24711 4711.0 rank any if free 2:2");
}

// pbsdsh, once for each slot: the second drun of a host must not be its node 1.
TEST(ClusterOptionsTest, ThePlaceInABatchSystemsListIsNoWish) {
  const Environment job{"PBS_JOBID=123.pbs", "PBS_NODEFILE=/nodes"};
  EXPECT_EQ(meaning("--cluster pbs", job), "c10d node7:20123 123.pbs rank 0 2:2");
  EXPECT_EQ(meaning("--cluster pbs --nnodes 1:2", job), "c10d node7:20123 123.pbs rank 0 1:2");
  EXPECT_EQ(meaning("--cluster pbs --rank-order topology --topology-file /topology", job),
            "c10d node7:20123 123.pbs rank any 2:2");
  // Torque says which slot it is.
  EXPECT_EQ(meaning("--cluster pbs", with({"PBS_VNODENUM=0"}, job)),
            "c10d node7:20123 123.pbs rank 0 2:2");
  EXPECT_EQ(
      meaning("--cluster pbs", with({"PBS_VNODENUM=1"}, job)),
      "drun: error: pbsdsh started several drun on this host (PBS_VNODENUM='1'), but one drun "
      "starts all workers of a host; pbsdsh -u starts one on each host; --nnodes 1 is a job of "
      "this one alone\n");
}

TEST(ClusterOptionsTest, OneNodeOfASchedulerIsAJobOfItsOwn) {
  const Environment one{"SLURM_STEP_NUM_NODES=1", "SLURM_STEP_NODELIST=n2",
                        "SLURM_STEP_NUM_TASKS=1", "SLURM_STEP_TASKS_PER_NODE=1", "SLURM_NODEID=0"};
  EXPECT_EQ(meaning("", with(one)), "standalone 1:1");
  EXPECT_EQ(options_of("./program", with(one)).inferred, "");
  EXPECT_THAT(options_of("./program", with(one)).notes, IsEmpty());
  EXPECT_EQ(meaning("--rdzv-endpoint h:1", with(one)), "c10d h:1 none rank any 1:1");
  EXPECT_EQ(meaning("--nnodes 1:4", with(one)), "c10d n2:24711 4711.0 rank 0 if free 1:4");
  EXPECT_EQ(meaning("--nnodes 2", with(one)),
            "drun: error: --nnodes '2': Slurm has one node for this job (SLURM_STEP_NUM_NODES); to "
            "meet others, give --rdzv-endpoint\n");
  EXPECT_EQ(meaning("", {"SLURM_JOB_ID=1", "SLURM_JOB_NUM_NODES=1"}), "standalone 1:1");
  EXPECT_EQ(meaning("", {"JOB_COMPLETION_INDEX=3", "KUBERNETES_SERVICE_HOST=10.96.0.1"}),
            "standalone 1:1");
}

TEST(ClusterOptionsTest, ABatchScriptOnOneNodeGetsAWorkerForEachTaskItAskedFor) {
  const Environment four{"SLURM_JOB_ID=1", "SLURM_JOB_NUM_NODES=1", "SLURM_NTASKS=4",
                         "SLURM_TASKS_PER_NODE=4"};
  const Options options = options_of("./program", four);
  EXPECT_EQ(options.nproc_per_node, 4);
  EXPECT_EQ(options.inferred, "Slurm: 4 workers (SLURM_TASKS_PER_NODE)");
  EXPECT_EQ(meaning("", four), "standalone 1:1");
  for (const std::string flags :
       {"--nproc-per-node 2 ", "--standalone ", "--nnodes 1 ", "--cluster none "}) {
    const Options said = options_of(flags + "./program", four);
    EXPECT_EQ(said.nproc_per_node, flags.starts_with("--nproc") ? 2 : 1) << flags;
    EXPECT_EQ(said.inferred, "") << flags;
  }
  // Nobody has asked for them.
  EXPECT_EQ(
      options_of("./program", {"SLURM_JOB_ID=1", "SLURM_JOB_NUM_NODES=1", "SLURM_TASKS_PER_NODE=4"})
          .nproc_per_node,
      1);
  EXPECT_EQ(options_of("./program", {"SLURM_JOB_ID=1", "SLURM_JOB_NUM_NODES=1", "SLURM_NTASKS=1",
                                     "SLURM_TASKS_PER_NODE=1"})
                .inferred,
            "");
}

TEST(ClusterOptionsTest, WhatIsInferredIsSaidInOneLine) {
  EXPECT_EQ(options_of("./program", kStep).inferred,
            "Slurm: 2 nodes (SLURM_STEP_NUM_NODES), this is node 1 (SLURM_NODEID), meeting at "
            "n1:24711 (SLURM_STEP_NODELIST), job 4711.0 (SLURM_JOB_ID)");
  EXPECT_EQ(options_of("--nnodes 1:2 --rdzv-id x ./program", kStep).inferred,
            "Slurm: this is node 1 (SLURM_NODEID), meeting at n1:24711 (SLURM_STEP_NODELIST)");
  EXPECT_EQ(options_of("--nnodes 2 --rdzv-endpoint h:1 ./program", kStep).inferred, "");
  EXPECT_EQ(options_of("./program").inferred, "");
}

TEST(ClusterOptionsTest, WhatCannotBeReadIsAnErrorAndNoJobOfOneNode) {
  const std::string alone = ", or --cluster none for a job of this node alone\n";
  EXPECT_EQ(
      meaning("", with({"SLURM_STEP_NODELIST=n[1-"})),
      "drun: error: Slurm: SLURM_STEP_NODELIST='n[1-': 'n[1-' lacks a ']'; give --nnodes" + alone);
  EXPECT_EQ(meaning("--nnodes 2", with({"SLURM_STEP_NODELIST=n[1-"})),
            "drun: error: Slurm: SLURM_STEP_NODELIST='n[1-': 'n[1-' lacks a ']'; give "
            "--rdzv-endpoint" +
                alone);
  EXPECT_EQ(meaning("", with({"SLURM_NODEID=x"})),
            "drun: error: Slurm: SLURM_NODEID='x': expected a whole number from 0; give "
            "--node-rank" +
                alone);
  EXPECT_EQ(meaning("--node-rank 1", with({"SLURM_NODEID=x"})), "c10d n1:24711 4711.0 rank 1 2:2");
  EXPECT_EQ(meaning("--rdzv-endpoint h:1", with({"SLURM_NODEID=x"})),
            "c10d h:1 4711.0 rank any 2:2");
  EXPECT_THAT(meaning("", {"OMPI_COMM_WORLD_SIZE=8"}),
              StartsWith("drun: error: Open MPI: it does not say where the nodes are"));
  EXPECT_EQ(meaning("--nnodes 2 --rdzv-endpoint h:1", with({"SLURM_STEP_NODELIST=n[1-"})),
            "c10d h:1 none rank any 2:2");
  EXPECT_THAT(meaning("", with({"SLURM_STEP_NUM_NODES=2000000000"})), HasSubstr("names 2 nodes"));
}

TEST(ClusterOptionsTest, SeveralTasksAndBatchScriptsAreToldTheCommandLine) {
  EXPECT_EQ(meaning("", with({"SLURM_STEP_NUM_TASKS=8", "SLURM_STEP_TASKS_PER_NODE=4(x2)",
                              "SLURM_PROCID=0"})),
            "drun: error: srun started several tasks on a node (SLURM_STEP_NUM_TASKS='8' on 2 "
            "nodes), but one drun starts all workers of a node; start one on each: srun --nodes=2 "
            "--ntasks=2 --ntasks-per-node=1 --cpus-per-task=4 drun --nproc-per-node 4 ...; "
            "--nnodes 1 is a job of this one alone\n");
}

// What drun becomes in the batch script of a job of four nodes, or the error.
std::string instead(const std::string& line, const Environment& more = {}) {
  const Environment batch{"SLURM_JOB_ID=1", "SLURM_JOB_NUM_NODES=4", "SLURM_NODEID=0"};
  const Parsed parsed = parse_line(line + " ./program a b", with(more, batch));
  if (!parsed.options) return parsed.text;
  std::string text;
  for (const std::string& word : parsed.options->instead)
    text += (text.empty() ? "" : " ") + word;
  if (!text.empty()) {
    EXPECT_THAT(parsed.options->inferred, HasSubstr("Slurm: 4 nodes (SLURM_JOB_NUM_NODES)"));
  }
  return text;
}

TEST(ClusterOptionsTest, OutsideOfStepsDrunStartsItselfOnEachNode) {
  const std::string srun = "srun --nodes=4 --ntasks=4 --ntasks-per-node=1 ";
  const std::string rest = "--export=ALL --disable-status /opt/drun ";
  EXPECT_EQ(instead(""), srun + rest + "./program a b");
  EXPECT_EQ(instead("--nnodes 4 --max-restarts 2"),
            srun + rest + "--nnodes 4 --max-restarts 2 ./program a b");
  // A job that goes on without a node, or has spares.
  for (const std::string nodes : {"2:4", "3", "4:8"})
    EXPECT_EQ(instead("--nnodes " + nodes),
              srun +
                  "--export=ALL --disable-status --no-kill --kill-on-bad-exit=0 "
                  "/opt/drun --nnodes " +
                  nodes + " ./program a b");
  const Environment eight{"SLURM_TASKS_PER_NODE=8(x4)", "SLURM_NTASKS=32", "SLURM_CPUS_PER_TASK=2"};
  EXPECT_EQ(instead("", eight),
            srun + "--cpus-per-task=16 " + rest + "--nproc-per-node 8 ./program a b");
  EXPECT_EQ(instead("--nproc-per-node 4", eight),
            srun + "--cpus-per-task=16 " + rest + "--nproc-per-node 4 ./program a b");
  EXPECT_EQ(instead("--replica-groups 2"),
            "drun: error: --replica-groups: started by no srun, on one of the job's 4 nodes "
            "(SLURM_JOB_NUM_NODES); this starts the groups on all of them: drun --launcher srun "
            "--replica-groups 2 ...\n");
  EXPECT_EQ(instead("--nnodes 1"), "");
  EXPECT_EQ(instead("--cluster none"), "");
  EXPECT_EQ(instead("--nnodes 4 --rdzv-endpoint h:1"), "");
  EXPECT_EQ(instead("", {"DRUN_ROUND=1"}), "");
}

TEST(ClusterOptionsTest, ANodeOfTheJobIsNoMemberOfEtcd) {
  for (const std::string backend : {"etcd", "etcd-v2", "etcd-v3"}) {
    EXPECT_THAT(meaning("--rdzv-id x --rdzv-backend " + backend, kStep),
                HasSubstr("name the cluster's members: --rdzv-endpoint"));
    EXPECT_THAT(meaning("--rdzv-id x --rdzv-endpoint e1 --rdzv-backend " + backend, kStep),
                StartsWith("etcd etcd at e1:2379 x rank "));
  }
}

TEST(ClusterOptionsTest, UnevenTasksLeaveTheNumberOfWorkersToTheUser) {
  const Environment uneven{"SLURM_TASKS_PER_NODE=2(x3),1", "SLURM_NTASKS=7",
                           "SLURM_CPUS_PER_TASK=2", "SLURM_JOB_NODELIST=n[1-4]"};
  EXPECT_EQ(instead("", uneven),
            "drun: error: SLURM_TASKS_PER_NODE='2(x3),1': the nodes of the job have different "
            "numbers of tasks; say how many workers each node gets, with --nproc-per-node, or "
            "start as many as tasks: drun --launcher srun -H n[1-3]:2,n4:1 ...; --nnodes 1 is a "
            "job of this one alone\n");
  // No number of CPUs for a task is right on all nodes: each has all.
  for (const std::string workers : {"--nproc-per-node 4", "--gpu-ids 0,1"})
    EXPECT_EQ(
        instead(workers, uneven),
        "srun --nodes=4 --ntasks=4 --ntasks-per-node=1 --export=ALL --disable-status /opt/drun " +
            workers + " ./program a b");
}

TEST(ClusterOptionsTest, WhatNoStepCouldDoIsRefusedBeforeOneIsStarted) {
  EXPECT_EQ(instead("--nnodes 5"),
            "drun: error: --nnodes '5': Slurm has 4 nodes for this job (SLURM_JOB_NUM_NODES); to "
            "meet others, give --rdzv-endpoint\n");
  EXPECT_EQ(instead("--node-rank 1"),
            "drun: error: --node-rank '1': drun is started on 4 nodes; each has its own rank\n");
  EXPECT_THAT(instead("--max-restarts x"), StartsWith("drun: error: --max-restarts 'x': "));
}

TEST(ClusterOptionsTest, TheOlderCommandStaysTheOlderCommand) {
  const Parsed parsed = parse_options({"drun-launch", "./program"},
                                      {"SLURM_JOB_ID=1", "SLURM_JOB_NUM_NODES=4", "SLURM_NODEID=0"},
                                      test::made_up_machine());
  ASSERT_TRUE(parsed.options);
  EXPECT_THAT(parsed.options->instead, ::testing::Contains("/opt/drun-launch"));
}

TEST(ClusterOptionsTest, TheEndOfTheJobIsKnownFromDrunOrSlurm) {
  const auto end = [](const Environment& environment) {
    return options_of("./program", environment).job_end.value_or(0);
  };
  EXPECT_EQ(end({}), 0);
  EXPECT_EQ(end({"DRUN_JOB_END_TIME=1700000000"}), 1'700'000'000);
  EXPECT_EQ(end({"SLURM_JOB_END_TIME=1700000000"}), 0);  // of a job that is over
  const Environment slurm = with({"SLURM_JOB_END_TIME=1700000000"});
  EXPECT_EQ(end(slurm), 1'700'000'000);
  EXPECT_EQ(end(with({"DRUN_JOB_END_TIME=1600000000"}, slurm)), 1'600'000'000);
  for (const char* bad :
       {"0", "-1", "1h", "UNLIMITED", "1e9", "99999999999999999999", "9000000001"}) {
    const Environment environment{std::string("DRUN_JOB_END_TIME=") + bad};
    EXPECT_EQ(end(environment), 0) << bad;
    EXPECT_EQ(parse_line("--warn-before USR1@5 ./program", environment).text,
              std::string("drun: error: --warn-before 'USR1@5': DRUN_JOB_END_TIME='") + bad +
                  "': expected a time in Unix seconds\n");
  }
}

TEST(ClusterOptionsTest, FilesAreRead) {
  const Environment pbs{"PBS_ENVIRONMENT=PBS_BATCH", "PBS_JOBID=17.x", "PBS_NODEFILE=/nodes"};
  EXPECT_EQ(meaning("--cluster pbs", pbs), "c10d node7:20017 17.x rank 0 2:2");
  EXPECT_THAT(meaning("", pbs), AllOf(HasSubstr("PBS gives the job 2 hosts (PBS_NODEFILE)"),
                                      HasSubstr("--cluster pbs ...")));
  EXPECT_THAT(
      meaning("", with({"PBS_NODEFILE=/none"}, pbs)),
      HasSubstr("PBS_NODEFILE='/none': this file cannot be read: it is not there; give --nnodes"));
}

TEST(ClusterOptionsTest, RankZeroOfHydraTellsItsHost) {
  const Environment task{"PMI_SIZE=2", "PMI_RANK=1", "MPI_LOCALNRANKS=1"};
  EXPECT_EQ(meaning("", with({"PMI_FD=6"}, task)), "c10d node0:20017 17_kvs rank 1 if free 2:2");
  EXPECT_EQ(meaning("", with({"PMI_FD=6", "PMI_RANK=0"}, task)),
            "c10d node7:20017 17_kvs rank 0 if free 2:2");
  EXPECT_EQ(
      meaning("", with({"PMI_FD=7"}, task)),
      "drun: error: Hydra: PMI_FD: nobody answers; give --rdzv-endpoint, or --cluster none for "
      "a job of this node alone\n");
  // Not asked if that is not needed.
  EXPECT_EQ(meaning("--rdzv-endpoint h:1", with({"PMI_FD=7"}, task)),
            "c10d h:1 none rank 1 if free 2:2");
}

TEST(ClusterOptionsTest, TheIndexedJobOfClustersNeedsNoRank) {
  const Parsed parsed =
      parse_line("--nnodes 2 --rdzv-endpoint train-0.train ./program", {"JOB_COMPLETION_INDEX=1"});
  EXPECT_FALSE(parsed.options->node_rank);
  EXPECT_EQ(meaning("--cluster kubernetes --nnodes 2 --rdzv-endpoint train-0.train",
                    {"JOB_COMPLETION_INDEX=1"}),
            "c10d train-0.train:29400 none rank 1 if free 2:2");
}

TEST(ClusterOptionsTest, ASchedulerThatIsNotThereIsNoAnswer) {
  EXPECT_EQ(meaning("--cluster lsf"),
            "drun: error: --cluster 'lsf': nothing in the environment tells of it\n");
  EXPECT_EQ(meaning("", {}), "standalone 1:1");
  EXPECT_EQ(meaning("--cluster none", {}), "standalone 1:1");
  EXPECT_EQ(meaning("--nnodes 2 --cluster none"),
            "drun: error: several nodes need a place to meet: give --rdzv-endpoint HOST:PORT on "
            "every node, or --node-rank, --master-addr and --master-port, or try them on this "
            "machine with --local-nodes 2\n");
}

TEST(ClusterOptionsTest, AComponentOfAHeterogeneousJobIsWarnedOf) {
  EXPECT_THAT(options_of("./program", with({"SLURM_HET_SIZE=2", "SLURM_JOB_NODELIST_HET_GROUP_0=m",
                                            "SLURM_JOB_NODELIST_HET_GROUP_1=n[1-2]"}))
                  .notes,
              ElementsAre(HasSubstr("2 of the 3 nodes of a heterogeneous job")));
}

TEST(ClusterOptionsTest, ExplainNamesTheVariables) {
  const Parsed parsed = parse_line("--explain --node-rank 0 ./program", kStep);
  EXPECT_EQ(parsed.exit_code, 0);
  drun::test::expect_golden("command_line/explain_slurm.txt", parsed.text);
}

}  // namespace
}  // namespace drun::launcher
