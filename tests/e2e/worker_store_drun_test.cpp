// --worker-store local: workers reach the store of their round through the agent of their own node.
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents_of_a_job.hpp"
#include "drun/store/client.hpp"
#include "support/drun_process.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

const std::string kToken = "the-token-of-the-job-0123456789ab";

Launch with_token() {
  Launch launch;
  launch.environment = {"DRUN_TOKEN=" + kToken};
  return launch;
}

Arguments saying(const std::string& text) {
  return {"sh", "-c", "echo " + text};
}

class WorkerStoreTest : public AgentsOfAJob {
 protected:
  void start(const Arguments& arguments, const Launch& launch) {
    agents_.push_back(std::make_unique<DrunProcess>(arguments, launch));
  }
  // What somebody else of this machine gets at the port of the round's store.
  [[nodiscard]] Result<std::int64_t> as_stranger() const {
    store::ClientOptions options;
    options.retry = false;
    auto client = store::Client::connect({"127.0.0.1", static_cast<std::uint16_t>(store_.number())},
                                         milliseconds(5'000), options);
    if (!client) return client.error();
    return client->add("n", 1);
  }
  [[nodiscard]] Arguments with_store_at_port() const {
    return {"--local-nodes", "2", "--master-port", std::to_string(store_.number())};
  }

  ReservedPort store_;
};

TEST_F(WorkerStoreTest, WorkersOfAllNodesMeetThroughTheirAgents) {
  for (const std::string nodes : {"1", "2", "3"})
    for (const Launch& launch : {Launch(), with_token()}) {
      const Finished finished =
          DrunProcess(Arguments{"--local-nodes", nodes, "--nproc-per-node", "2", "--worker-store",
                                "local", places::program("allgather")},
                      launch)
              .finish();
      EXPECT_EQ(finished.code, 0) << finished.err;
      EXPECT_THAT(finished.err, testing::Not(HasSubstr("warning")));
      EXPECT_EQ(split_lines(finished.out).size(), 2 * std::stoul(nodes)) << finished.out;
      EXPECT_THAT(finished.out, HasSubstr("got 0 1"));
    }
}

TEST_F(WorkerStoreTest, EachRoundFindsAnEmptyStore) {
  for (const Launch& launch : {Launch(), with_token()}) {
    const Finished finished =
        DrunProcess(Arguments{"--local-nodes", "2", "--worker-store", "local", "--max-restarts",
                              "1", places::program("store_worker")},
                    launch)
            .finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_THAT(split_lines(finished.out),
                UnorderedElementsAre(
                    "rank 0 restart 0: empty at first", "rank 1 restart 0: empty at first",
                    "rank 0 restart 1: empty at first", "rank 1 restart 1: empty at first"));
  }
}

TEST_F(WorkerStoreTest, WorkersAreToldOfTheirAgentAndOfTheNodeOfRank0) {
  const ReservedPort port;
  const Arguments job{"--nnodes", "2", "--rdzv-endpoint", port.endpoint(), "--local-addr"};
  const Arguments program = saying("$RANK $MASTER_ADDR $DRUN_MASTER_ADDR $MASTER_PORT.");
  start(job + Arguments{"127.0.0.2"} + program, with_token());
  ASSERT_TRUE(agent(0).wait_for_err("waiting")) << agent(0).err();
  start(job + Arguments{"127.0.0.3"} + program, with_token());
  const std::string first = agent(0).finish().out;
  const std::string second = agent(1).finish().out;
  EXPECT_THAT(first, testing::StartsWith("0 127.0.0.1 127.0.0.2 ")) << agent(0).err();
  EXPECT_THAT(second, testing::StartsWith("1 127.0.0.1 127.0.0.2 ")) << agent(1).err();
  EXPECT_NE(first.substr(first.rfind(' ')), second.substr(second.rfind(' ')));
}

TEST_F(WorkerStoreTest, WithATokenTheStoreIsClosedToStrangers) {
  start(with_store_at_port() + telling_workers(), with_token());
  ASSERT_TRUE(says(0, "rank 1 of 2")) << agent(0).err();
  EXPECT_FALSE(as_stranger());
  EXPECT_TRUE(agent(0).wait_for_err("it shows no token, which this store asks for"));
  stop_all(0);
}

TEST_F(WorkerStoreTest, WhoAsksForItOpensTheStoreToAll) {
  start(with_store_at_port() + Arguments{"--worker-store", "agent"} + telling_workers(),
        with_token());
  ASSERT_TRUE(says(0, "rank 1 of 2")) << agent(0).err();
  EXPECT_EQ(as_stranger().value(), 1);
  stop_all(0);
}

TEST_F(WorkerStoreTest, WithoutATokenNothingIsRelayed) {
  const Finished finished =
      run_drun(Arguments{"--standalone"} + saying("${DRUN_MASTER_ADDR-none}"));
  EXPECT_EQ(finished.out, "none\n");
}

// The others come to the store of a group by its MASTER_ADDR.
TEST_F(WorkerStoreTest, ReplicaGroupsReachOneAnothersStores) {
  const Arguments groups{"--replica-groups", "2"};
  const Finished refused = run_drun(groups + Arguments{"--worker-store", "local", "true"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("other replica groups could not reach the store: use "
                                     "--worker-store agent"));
  const Finished open =
      DrunProcess(groups + saying("${DRUN_MASTER_ADDR-none}"), with_token()).finish();
  EXPECT_EQ(open.code, 0) << open.err;
  EXPECT_EQ(open.out, "none\nnone\n");
}

TEST_F(WorkerStoreTest, AllNodesDoItTheSameWay) {
  const ReservedPort port;
  const Arguments job{"--nnodes", "2", "--rdzv-endpoint", port.endpoint()};
  start(job + Arguments{"--worker-store", "local"} + telling_workers(), {});
  ASSERT_TRUE(agent(0).wait_for_err("waiting")) << agent(0).err();
  const Finished other = run_drun(job + Arguments{"true"});
  EXPECT_NE(other.code, 0);
  EXPECT_THAT(other.err, HasSubstr("worker-store"));
  stop_all(0);
}

}  // namespace
}  // namespace drun::test
