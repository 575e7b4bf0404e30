// Agents that are told nothing of one another: they find it in the variables of a scheduler.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "support/drun_process.hpp"

namespace drun::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// The number of a job whose port, 20000 + job, is free.
int free_job() {
  for (int job = static_cast<int>(::getpid() % 10'000);; job = (job + 1) % 10'000) {
    const FileDescriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(20'000 + job));
    if (::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return job;
  }
}

using Variables = std::vector<std::string>;

// Two agents, each of its own variables; both say who they are.
void expect_to_meet(const Variables& both, const Variables& first, const Variables& second,
                    const std::string& inferred, const Arguments& flags = {}) {
  std::vector<std::unique_ptr<DrunProcess>> agents;
  for (const Variables& own : {second, first}) {
    Launch launch;
    launch.environment = own + both;
    agents.push_back(std::make_unique<DrunProcess>(
        flags + Arguments{"--nproc-per-node", "2", "sh", "-c",
                          "echo rank $RANK of $WORLD_SIZE on $GROUP_RANK"},
        launch));
  }
  for (int node : {1, 0}) {
    const Finished finished = agents[node == 1 ? 0 : 1]->finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
    const std::string on = " of 4 on " + std::to_string(node) + "\n";
    EXPECT_THAT(finished.out, AllOf(HasSubstr("rank " + std::to_string(2 * node) + on),
                                    HasSubstr("rank " + std::to_string(2 * node + 1) + on)));
    EXPECT_THAT(finished.err, AllOf(HasSubstr("drun: " + inferred),
                                    HasSubstr("this is node " + std::to_string(node) + " (")));
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

TEST(ClusterDrunTest, TasksOfAStepOfSlurmMeetWithoutAFlag) {
  const std::string job = std::to_string(free_job());
  expect_to_meet({"SLURM_JOB_ID=" + job, "SLURM_STEP_ID=0", "SLURM_STEP_NUM_NODES=2",
                  "SLURM_STEP_NODELIST=127.0.0.[1-2]", "SLURM_STEP_NUM_TASKS=2"},
                 {"SLURM_NODEID=0"}, {"SLURM_NODEID=1"},
                 "Slurm: 2 nodes (SLURM_STEP_NUM_NODES), this is node ");
}

// -m arbitrary: the host of rank 1 is the list's first, where they meet.
TEST(ClusterDrunTest, TheNodeThatTheyMeetAtNeedNotBeTheFirst) {
  const std::string job = std::to_string(free_job());
  expect_to_meet({"SLURM_JOB_ID=" + job, "SLURM_STEP_ID=0", "SLURM_STEP_NUM_NODES=2",
                  "SLURM_STEP_NODELIST=127.0.0.[1-2]", "SLURM_STEP_NUM_TASKS=2"},
                 {"SLURM_NODEID=0", "SLURMD_NODENAME=127.0.0.2", "PET_RDZV_CONF=is_host=false"},
                 {"SLURM_NODEID=1", "SLURMD_NODENAME=127.0.0.1"}, "Slurm: 2 nodes ");
}

TEST(ClusterDrunTest, TasksOfMpirunMeetWithoutAFlag) {
  const std::string uri = std::to_string(free_job()) + ".0;tcp://127.0.0.1,127.0.0.9:39877";
  expect_to_meet({"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=1",
                  "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_MCA_orte_hnp_uri=" + uri},
                 {"OMPI_COMM_WORLD_RANK=0", "OMPI_MCA_orte_local_daemon_uri=" + uri},
                 {"OMPI_COMM_WORLD_RANK=1", "OMPI_MCA_orte_local_daemon_uri=1.1;tcp://127.0.0.2:1"},
                 "Open MPI: 2 nodes (OMPI_COMM_WORLD_SIZE), this is node ");
}

// The real mpiexec of MPICH.
TEST(ClusterDrunTest, TasksOfMpiexecMeetWithoutAFlag) {
  Launch launch;
  launch.argv = {"/usr/bin/mpiexec.hydra",
                 "-launcher",
                 "fork",
                 "-hosts",
                 "127.0.0.1,127.0.0.2",
                 "-ppn",
                 "1",
                 "-n",
                 "2",
                 drun_path(),
                 "--nproc-per-node",
                 "2",
                 "sh",
                 "-c",
                 "echo rank $RANK of $WORLD_SIZE"};
  if (::access(launch.argv[0].c_str(), X_OK) != 0)
    GTEST_SKIP() << "no " << launch.argv[0] << " (apt-get install mpich)";
  const Finished finished = DrunProcess(launch).finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_THAT(finished.out, HasSubstr("rank " + std::to_string(rank) + " of 4\n"));
  EXPECT_THAT(finished.err,
              HasSubstr("drun: Hydra: 2 nodes (PMI_SIZE), this is node 1 (PMI_RANK), meeting at "
                        "127.0.0.1:2"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(ClusterDrunTest, PodsMeetWithoutAFlag) {
  const ReservedPort port;
  expect_to_meet({"KUBERNETES_SERVICE_HOST=127.0.0.1", "MASTER_ADDR=localhost", "WORLD_SIZE=2",
                  "MASTER_PORT=" + std::to_string(port.number())},
                 {"RANK=0"}, {"RANK=1"}, "PyTorchJob: 2 nodes (WORLD_SIZE), this is node ");
}

TEST(ClusterDrunTest, AnEndpointOfTheUsersGoesBeforeTheSchedulers) {
  const ReservedPort port;
  expect_to_meet({"LWS_LEADER_ADDRESS=nowhere.invalid", "LWS_GROUP_SIZE=2"}, {"LWS_WORKER_INDEX=0"},
                 {"LWS_WORKER_INDEX=1"}, "LeaderWorkerSet: 2 nodes ",
                 {"--rdzv-endpoint", port.endpoint()});
}

TEST(ClusterDrunTest, WhatCannotBeReadStartsNothing) {
  Launch launch;
  launch.environment = {"SLURM_JOB_ID=1", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_NODES=2",
                        "SLURM_STEP_NODELIST=n[1-", "SLURM_NODEID=0"};
  const Finished finished = run_drun({"echo", "started"}, launch);
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(finished.out, "");
  EXPECT_EQ(finished.err,
            "drun: error: Slurm: SLURM_STEP_NODELIST='n[1-': 'n[1-' lacks a ']'; give --nnodes, or "
            "--cluster none for a job of this node alone\n");
  EXPECT_EQ(run_drun({"--cluster", "none", "echo", "started"}, launch).out, "started\n");
}

// A worker's own drun inherits the variables.
TEST(ClusterDrunTest, ADrunInAWorkerIsAJobOfItsOwn) {
  const std::string job = std::to_string(free_job());
  Launch launch;
  launch.environment = {"SLURM_JOB_ID=" + job,    "SLURM_STEP_ID=0",
                        "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_NODELIST=n1",
                        "SLURM_STEP_NUM_TASKS=1", "SLURM_NODEID=0"};
  const Finished finished =
      run_drun({"sh", "-c", "SLURM_STEP_NUM_NODES=2 exec \"$0\" echo inner", drun_path()}, launch);
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.out, "inner\n");
}

}  // namespace
}  // namespace drun::test
