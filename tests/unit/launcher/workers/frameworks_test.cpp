#include "launcher/workers/frameworks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/workers/environment.hpp"
#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using test::options_of;
using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

using Environment = std::vector<std::string>;

// Of two nodes with as many workers each, the second.
rendezvous::Assignment second_of_two(int workers) {
  rendezvous::Assignment result;
  result.group_rank = 1;
  result.group_world_size = 2;
  result.first_rank = workers;
  result.world_size = 2 * workers;
  result.master_address = "10.0.0.1";
  result.master_port = 4711;
  return result;
}

// Of the last worker there; no variable is in it twice.
Environment last_of(const std::string& line, const Environment& inherited,
                    std::optional<rendezvous::Assignment> assignment = {}) {
  const Options options =
      options_of("--nnodes 2 --rdzv-endpoint h " + line + " ./program", inherited);
  if (!assignment) assignment = second_of_two(options.nproc_per_node);
  const WorkerEnvironments environments(options, *assignment);
  Environment result = environments.shared();
  for (const auto& each : environments.own(options.nproc_per_node - 1, ""))
    result.push_back(each);
  std::vector<std::string> names;
  for (const auto& each : result)
    names.push_back(each.substr(0, each.find('=')));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  return result;
}

// What an outer launcher said of drun is said of the worker.
TEST(FrameworksTest, VariablesOfAnOuterLauncherAreTheWorkersOwn) {
  struct Case {
    const char* inherited;
    const char* here;
  };
  for (const auto& [inherited, here] : std::vector<Case>{
           {"SLURM_PROCID=1", "SLURM_PROCID=5"},
           {"SLURM_LOCALID=0", "SLURM_LOCALID=2"},
           {"SLURM_NTASKS=2", "SLURM_NTASKS=6"},
           {"SLURM_NPROCS=2", "SLURM_NPROCS=6"},
           {"SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NUM_TASKS=6"},
           {"SLURM_STEP_TASKS_PER_NODE=1(x2)", "SLURM_STEP_TASKS_PER_NODE=3(x2)"},
           {"SLURM_TASKS_PER_NODE=1(x2)", "SLURM_TASKS_PER_NODE=3(x2)"},
           {"SLURM_GTIDS=1", "SLURM_GTIDS=3,4,5"},
           {"SLURM_NODEID=1", "SLURM_NODEID=1"},
           {"PMI_RANK=1", "PMI_RANK=5"},
           {"PMI_SIZE=2", "PMI_SIZE=6"},
           {"MPI_LOCALRANKID=0", "MPI_LOCALRANKID=2"},
           {"MPI_LOCALNRANKS=1", "MPI_LOCALNRANKS=3"},
           {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_RANK=5"},
           {"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_SIZE=6"},
           {"OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_LOCAL_RANK=2"},
           {"OMPI_COMM_WORLD_LOCAL_SIZE=1", "OMPI_COMM_WORLD_LOCAL_SIZE=3"},
           {"MV2_COMM_WORLD_RANK=1", "MV2_COMM_WORLD_RANK=5"},
           {"PALS_RANKID=1", "PALS_RANKID=5"},
           {"FLUX_TASK_RANK=1", "FLUX_TASK_RANK=5"},
       }) {
    EXPECT_THAT(last_of("--cluster none --nproc-per-node 3", {inherited}), Contains(here));
    const std::string name = std::string(here).substr(0, std::string(here).find('=') + 1);
    EXPECT_THAT(last_of("--nproc-per-node 3", {}), Not(Contains(StartsWith(name))));
  }
}

TEST(FrameworksTest, NodesOfDifferentSizesHaveNoNumberOfTasksForEach) {
  rendezvous::Assignment uneven = second_of_two(3);
  uneven.world_size = 5;
  EXPECT_THAT(last_of("--cluster none --nproc-per-node 3",
                      {"SLURM_TASKS_PER_NODE=1(x2)", "SLURM_STEP_TASKS_PER_NODE=1(x2)"}, uneven),
              Not(Contains(testing::HasSubstr("TASKS_PER_NODE"))));
}

TEST(FrameworksTest, TheWayToAnOuterServerIsWithheld) {
  for (const char* inherited : {"PMI_FD=6", "PMI_PORT=h:1", "PMI_ID=1", "HYDI_CONTROL_FD=7"})
    EXPECT_THAT(last_of("--cluster none", {inherited}), Not(Contains(inherited)));
  // One worker may be the outer launcher's task itself; several cannot, nor an MPI program of drun.
  for (const char* inherited :
       {"PMIX_RANK=1", "PMIX_NAMESPACE=j", "PMIX_SERVER_URI41=x", "PRTE_LAUNCHED=1"}) {
    EXPECT_THAT(last_of("--cluster none", {inherited}), Contains(inherited));
    EXPECT_THAT(last_of("--cluster none --nproc-per-node 2", {inherited}),
                Not(Contains(inherited)));
    EXPECT_THAT(last_of("--cluster none --framework mpi", {inherited}), Not(Contains(inherited)));
  }
}

TEST(FrameworksTest, MpiFindsDrunsServer) {
  EXPECT_THAT(
      last_of("--cluster none --framework mpi --nproc-per-node 3", {"PMI_FD=9", "PMI_RANK=1"}),
      IsSupersetOf(
          {"PMI_FD=3", "PMI_RANK=5", "PMI_SIZE=6", "MPI_LOCALRANKID=2", "MPI_LOCALNRANKS=3"}));
}

TEST(FrameworksTest, JaxFindsItsPlaceAmongOpenMpisVariables) {
  EXPECT_THAT(
      last_of("--framework jax --nproc-per-node 3", {}),
      IsSupersetOf({"JAX_COORDINATOR_ADDRESS=10.0.0.1:4711", "JAX_PROCESS_ID=5",
                    "JAX_NUM_PROCESSES=6", "OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_SIZE=6",
                    "OMPI_COMM_WORLD_LOCAL_RANK=2", "OMPI_COMM_WORLD_LOCAL_SIZE=3",
                    "OMPI_MCA_orte_hnp_uri=0.0;tcp://127.0.0.1:1",
                    "TORCHELASTIC_USE_AGENT_STORE=False"}));
  EXPECT_THAT(last_of("--framework jax --virtual-local-rank", {}),
              Contains("JAX_LOCAL_DEVICE_IDS=0"));
  // Nobody else listens at MASTER_PORT then.
  EXPECT_THAT(last_of("--worker-store rank0", {}),
              Contains("JAX_COORDINATOR_ADDRESS=10.0.0.1:4711"));
  EXPECT_THAT(last_of("", {"JAX_COORDINATOR_ADDRESS=mine:1"}),
              Contains("JAX_COORDINATOR_ADDRESS=mine:1"));
}

TEST(FrameworksTest, OneCclNeedsNoMpiLauncher) {
  const Environment ours = last_of("--framework oneccl --nproc-per-node 3", {});
  EXPECT_THAT(ours,
              IsSupersetOf({"CCL_PROCESS_LAUNCHER=none", "CCL_LOCAL_RANK=2", "CCL_LOCAL_SIZE=3"}));
  EXPECT_THAT(last_of("--framework oneccl", {"CCL_PROCESS_LAUNCHER=torchrun"}),
              Contains("CCL_PROCESS_LAUNCHER=torchrun"));
}

TEST(FrameworksTest, EveryRankIsAWorkerOfTensorFlowsCluster) {
  const Options options =
      options_of("--nnodes 2 --rdzv-endpoint h --nproc-per-node 2 --framework tensorflow ./program",
                 {"TF_CONFIG={}"});
  const std::vector<std::string> peers{"a:1", "a:2", "[::1]:3", "b\xff:4"};
  const WorkerEnvironments environments(options, second_of_two(2), peers);
  EXPECT_THAT(
      environments.own(0, ""),
      Contains(
          "TF_CONFIG={\"cluster\":{\"worker\":[\"a:1\",\"a:2\",\"[::1]:3\",\"b\xef\xbf\xbd:4\"]},"
          "\"task\":{\"type\":\"worker\",\"index\":2}}"));
  EXPECT_THAT(environments.own(1, ""), Contains(testing::EndsWith("\"index\":3}}")));
  EXPECT_THAT(environments.shared(), Not(Contains("TF_CONFIG={}")));
  // Nobody has asked the others.
  EXPECT_THAT(last_of("--framework tensorflow", {"TF_CONFIG={}"}), Contains("TF_CONFIG={}"));
}

TEST(FrameworksTest, NothingIsPretendedUnasked) {
  for (const auto& each : last_of("--nproc-per-node 3", {}))
    for (const char* prefix : {"PMI", "OMPI", "CCL", "MPI", "SLURM", "JAX_C", "JAX_L"})
      EXPECT_FALSE(each.starts_with(prefix)) << each;
}

}  // namespace
}  // namespace drun::launcher
