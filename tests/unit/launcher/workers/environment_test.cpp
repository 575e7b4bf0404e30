// torchrun's contract with its workers, by value.
#include "launcher/workers/environment.hpp"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using test::options_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

using Environment = std::vector<std::string>;

std::map<std::string, std::string> as_map(const Environment& environment) {
  std::map<std::string, std::string> result;
  for (const std::string& entry : environment) {
    const auto equals = entry.find('=');
    EXPECT_TRUE(result.emplace(entry.substr(0, equals), entry.substr(equals + 1)).second) << entry;
  }
  return result;
}

// What a worker sees: the shared part, then its own.
Environment environment_of(const WorkerSpec& spec, const rendezvous::Assignment& assignment,
                           int local_rank, const std::string& error_file) {
  const WorkerEnvironments environments(spec, assignment);
  Environment result = environments.shared();
  for (const std::string& entry : environments.own(local_rank, error_file))
    result.push_back(entry);
  return result;
}

rendezvous::Assignment assignment(int node, int nodes, int workers) {
  rendezvous::Assignment result;
  result.group_rank = node;
  result.group_world_size = nodes;
  result.first_rank = result.first_role_rank = node * workers;
  result.world_size = result.role_world_size = nodes * workers;
  result.master_address = "localhost";
  result.master_port = 44303;
  return result;
}

// The recorded run of torchrun 2.14.1: 2 nodes x 2, c10d, --role trainer --rdzv-id job77
// --max-restarts 3.
TEST(EnvironmentTest, TwoNodesOfTwoWorkersGetWhatTorchrunGives) {
  const Options options = options_of(
      "--nnodes 2 --nproc-per-node 2 --rdzv-endpoint h --role trainer --rdzv-id job77 "
      "--max-restarts 3 ./program");
  for (int node = 0; node < 2; ++node) {
    for (int local_rank = 0; local_rank < 2; ++local_rank) {
      const int rank = 2 * node + local_rank;
      EXPECT_THAT(
          environment_of(options, assignment(node, 2, 2), local_rank, "/tmp/e/error.json"),
          UnorderedElementsAre(
              "LOCAL_RANK=" + std::to_string(local_rank), "RANK=" + std::to_string(rank),
              "GROUP_RANK=" + std::to_string(node), "ROLE_RANK=" + std::to_string(rank),
              "ROLE_NAME=trainer", "LOCAL_WORLD_SIZE=2", "WORLD_SIZE=4", "GROUP_WORLD_SIZE=2",
              "ROLE_WORLD_SIZE=4", "MASTER_ADDR=localhost", "MASTER_PORT=44303",
              "TORCHELASTIC_RESTART_COUNT=0", "DRUN_ROUND=0", "TORCHELASTIC_MAX_RESTARTS=3",
              "TORCHELASTIC_RUN_ID=job77", "TORCHELASTIC_USE_AGENT_STORE=True",
              "TORCHELASTIC_ERROR_FILE=/tmp/e/error.json", "DRUN_HEARTBEAT_FILE=/tmp/e/heartbeat",
              "TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT",
              "TORCH_NCCL_ASYNC_ERROR_HANDLING=1", "OMP_NUM_THREADS=1",
              // For programs that know other names.
              "NODE_RANK=" + std::to_string(node), "CROSS_RANK=" + std::to_string(node),
              "CROSS_SIZE=2", "JAX_PROCESS_ID=" + std::to_string(rank), "JAX_NUM_PROCESSES=4"));
    }
  }
}

TEST(EnvironmentTest, OneNodeOfOneWorkerGetsNoThreadLimit) {
  EXPECT_THAT(environment_of(options_of("./program"), assignment(0, 1, 1), 0, ""),
              UnorderedElementsAre(
                  "LOCAL_RANK=0", "RANK=0", "GROUP_RANK=0", "ROLE_RANK=0", "ROLE_NAME=default",
                  "LOCAL_WORLD_SIZE=1", "WORLD_SIZE=1", "GROUP_WORLD_SIZE=1", "ROLE_WORLD_SIZE=1",
                  "MASTER_ADDR=localhost", "MASTER_PORT=44303", "DRUN_ROUND=0",
                  "TORCHELASTIC_RESTART_COUNT=0", "TORCHELASTIC_MAX_RESTARTS=0",
                  "TORCHELASTIC_RUN_ID=fresh-id", "TORCHELASTIC_USE_AGENT_STORE=True",
                  "TORCHELASTIC_ERROR_FILE=", "DRUN_HEARTBEAT_FILE=",
                  "TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT",
                  "TORCH_NCCL_ASYNC_ERROR_HANDLING=1", "NODE_RANK=0", "CROSS_RANK=0",
                  "CROSS_SIZE=1", "JAX_PROCESS_ID=0", "JAX_NUM_PROCESSES=1"));
}

TEST(EnvironmentTest, NodesAndRolesOfDifferentSizesFollowTheAssignment) {
  rendezvous::Assignment mixed = assignment(1, 2, 3);
  mixed.first_rank = 1;  // node 0 has one worker of another role
  mixed.world_size = 4;
  mixed.first_role_rank = 0;
  mixed.role_world_size = 3;
  mixed.restart_count = 2;
  const Options options =
      options_of("--nnodes 2 --nproc-per-node 3 --rdzv-endpoint h --role b --max-restarts 5 p");
  const auto environment = as_map(environment_of(options, mixed, 2, ""));
  EXPECT_EQ(environment.at("RANK"), "3");
  EXPECT_EQ(environment.at("LOCAL_RANK"), "2");
  EXPECT_EQ(environment.at("ROLE_RANK"), "2");
  EXPECT_EQ(environment.at("WORLD_SIZE"), "4");
  EXPECT_EQ(environment.at("ROLE_WORLD_SIZE"), "3");
  EXPECT_EQ(environment.at("LOCAL_WORLD_SIZE"), "3");
  EXPECT_EQ(environment.at("TORCHELASTIC_RESTART_COUNT"), "2");
}

TEST(EnvironmentTest, WorkersAreToldWhenTheJobEndsIfSomebodyKnows) {
  const Options options = options_of("./program", {"DRUN_JOB_END_TIME=9"});
  rendezvous::Assignment place = assignment(0, 1, 1);
  EXPECT_THAT(environment_of(options, place, 0, ""), Contains("DRUN_JOB_END_TIME=9"));
  place.ends_ms = 1'700'000'000'999;
  const Environment known = environment_of(options, place, 0, "");
  EXPECT_THAT(known, Contains("DRUN_JOB_END_TIME=1700000000"));
  EXPECT_THAT(known, Not(Contains("DRUN_JOB_END_TIME=9")));
}

TEST(EnvironmentTest, WhatIsInheritedStaysExceptWhatDrunSets) {
  const Environment inherited{
      "PATH=/bin", "RANK=77",       "PET_NPROC_PER_NODE=2",    "EMPTY=",
      "A=b=c",     "MASTER_ADDR=x", "TORCHELASTIC_RUN_ID=old", "no equals sign"};
  const Environment environment =
      environment_of(options_of("./p", inherited), assignment(0, 1, 2), 1, "");
  EXPECT_THAT(environment, IsSupersetOf({"PATH=/bin", "PET_NPROC_PER_NODE=2", "EMPTY=", "A=b=c",
                                         "no equals sign", "RANK=1", "MASTER_ADDR=localhost",
                                         "TORCHELASTIC_RUN_ID=fresh-id"}));
  (void)as_map({environment.begin(), environment.end()});  // nothing twice
}

TEST(EnvironmentTest, OfAVariableThatOccursTwiceTheFirstCountsAsForGetenv) {
  const Environment inherited{"A=1", "RANK=5", "A=2", "RANK=6", "AB=3", "A"};
  const Environment environment =
      environment_of(options_of("./p", inherited), assignment(0, 1, 1), 0, "");
  EXPECT_THAT(environment, Contains("A=1"));
  EXPECT_THAT(environment, Not(Contains("A=2")));
  EXPECT_THAT(environment, Contains("AB=3"));
  EXPECT_THAT(environment, Contains("RANK=0"));
  EXPECT_THAT(environment, Not(Contains("RANK=6")));
}

std::string omp(const std::string& flags, const Environment& inherited = {}) {
  const Options options = options_of(flags + " ./p", inherited);
  const auto environment =
      as_map(environment_of(options, assignment(0, 1, options.nproc_per_node), 0, ""));
  const auto found = environment.find("OMP_NUM_THREADS");
  return found == environment.end() ? "(unset)" : found->second;
}

TEST(EnvironmentTest, TheThreadLimitFollowsTorchrunsRuleUnlessAskedFor) {
  EXPECT_EQ(omp(""), "(unset)");
  EXPECT_EQ(omp("--nproc-per-node 2"), "1");
  EXPECT_EQ(omp("--nproc-per-node 2", {"OMP_NUM_THREADS=6"}), "6");
  EXPECT_EQ(omp("--nproc-per-node 2", {"OMP_NUM_THREADS="}), "");  // a user's value, even empty
  EXPECT_EQ(omp("--nproc-per-node 4 --omp-threads auto"), "3");
  EXPECT_EQ(omp("--omp-threads 5", {"OMP_NUM_THREADS=6"}), "5");
}

TEST(EnvironmentTest, AUsersNcclSettingIsKept) {
  for (const char* value : {"0", "3", ""}) {
    const std::string entry = std::string("TORCH_NCCL_ASYNC_ERROR_HANDLING=") + value;
    EXPECT_THAT(environment_of(options_of("./p", {entry}), assignment(0, 1, 1), 0, ""),
                Contains(entry));
  }
  // The user's own is the only one.
  EXPECT_THAT(environment_of(options_of("./p", {"TORCH_NCCL_ASYNC_ERROR_HANDLING=0"}),
                             assignment(0, 1, 1), 0, ""),
              Not(Contains("TORCH_NCCL_ASYNC_ERROR_HANDLING=1")));
}

TEST(EnvironmentTest, TheWorkersStoreIsTheAgentsUnlessRank0ServesIt) {
  EXPECT_THAT(environment_of(options_of("--worker-store rank0 p"), assignment(0, 1, 1), 0, ""),
              Contains("TORCHELASTIC_USE_AGENT_STORE=False"));
}

TEST(EnvironmentTest, WorkersThatReachTheStoreThroughTheirAgentKnowTheNodeOfRank0) {
  rendezvous::Assignment place = assignment(0, 1, 1);
  place.master_address = "10.0.0.7";
  place.master_port = 4711;
  place.store_here = Endpoint{"127.0.0.1", 4712};
  const auto relayed = as_map(environment_of(options_of("--worker-store local p"), place, 0, ""));
  EXPECT_EQ(relayed.at("MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(relayed.at("MASTER_PORT"), "4712");
  EXPECT_EQ(relayed.at("DRUN_MASTER_ADDR"), "10.0.0.7");
  EXPECT_EQ(relayed.at("TORCHELASTIC_USE_AGENT_STORE"), "True");
  place.store_here.reset();
  const auto direct = as_map(environment_of(options_of("p"), place, 0, ""));
  EXPECT_EQ(direct.at("MASTER_ADDR"), "10.0.0.7");
  EXPECT_EQ(direct.at("MASTER_PORT"), "4711");
  EXPECT_FALSE(direct.contains("DRUN_MASTER_ADDR"));
}

TEST(EnvironmentTest, ChosenGpusAreWhatAllWorkersSee) {
  const Options options = options_of("--gpu-ids 2,0 p", {"CUDA_VISIBLE_DEVICES=1,2,3"});
  for (int local_rank = 0; local_rank < 2; ++local_rank) {
    const auto environment = as_map(environment_of(options, assignment(0, 1, 2), local_rank, ""));
    EXPECT_EQ(environment.at("CUDA_VISIBLE_DEVICES"), "3,1");
    EXPECT_EQ(environment.at("LOCAL_RANK"), std::to_string(local_rank));
  }
}

std::string virtual_device(const std::string& flags, int local_rank,
                           const Environment& inherited = {}) {
  const Options options = options_of("--virtual-local-rank " + flags + " p", inherited);
  const auto environment =
      as_map(environment_of(options, assignment(0, 1, options.nproc_per_node), local_rank, ""));
  EXPECT_EQ(environment.at("LOCAL_RANK"), "0");
  EXPECT_EQ(environment.at("RANK"), std::to_string(local_rank));
  return environment.at("CUDA_VISIBLE_DEVICES");
}

TEST(EnvironmentTest, AVirtualLocalRankSeesItsOwnGpuOnly) {
  EXPECT_EQ(virtual_device("--nproc-per-node 4", 3), "3");
  EXPECT_EQ(virtual_device("--nproc-per-node 2", 1, {"CUDA_VISIBLE_DEVICES=7, GPU-ab ,5"}),
            "GPU-ab");
  EXPECT_EQ(virtual_device("--gpu-ids 3,1", 0), "3");
  EXPECT_EQ(virtual_device("--gpu-ids 2,0", 1, {"CUDA_VISIBLE_DEVICES=1,2,3"}), "1");
}

TEST(EnvironmentTest, WhatDiffersBetweenWorkersIsTheirOwn) {
  const Options options = options_of("--nproc-per-node 2 p", {"HOME=/h", "RANK=9"});
  const WorkerEnvironments environments(options, assignment(0, 1, 2));
  EXPECT_THAT(environments.own(1, "/e"),
              ElementsAre("LOCAL_RANK=1", "RANK=1", "ROLE_RANK=1", "TORCHELASTIC_ERROR_FILE=/e",
                          "DRUN_HEARTBEAT_FILE=/eheartbeat", "JAX_PROCESS_ID=1"));
  EXPECT_THAT(environments.shared(), Contains("HOME=/h"));
  EXPECT_THAT(environments.set_by_drun(1, "/e"), Not(Contains("HOME=/h")));
  EXPECT_THAT(environments.set_by_drun(1, "/e"), IsSupersetOf({"RANK=1", "WORLD_SIZE=2"}));
}

TEST(EnvironmentTest, HundredsOfWorkersWithAMegabyteOfEnvironmentShareIt) {
  Environment inherited;
  for (int i = 0; i < 10'000; ++i) {
    inherited.push_back("VARIABLE_" + std::to_string(i) + "=" + std::string(100, 'x'));
  }
  const WorkerEnvironments environments(options_of("--nproc-per-node 512 p", inherited),
                                        assignment(0, 1, 512));
  EXPECT_THAT(environments.shared(), IsSupersetOf({inherited.front(), inherited.back()}));
  for (int local_rank = 0; local_rank < 512; ++local_rank) {
    std::size_t bytes = 0;
    for (const std::string& entry : environments.own(local_rank, ""))
      bytes += entry.size();
    EXPECT_LT(bytes, 1000U) << local_rank;
  }
}

}  // namespace
}  // namespace drun::launcher
