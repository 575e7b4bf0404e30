// Jobs that meet at a cluster of etcd: no node is special, and neither is a member of the cluster.
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/etcd_cluster.hpp"

namespace drun::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class EtcdJobTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdCluster::installed()) GTEST_SKIP() << "this machine has no etcd-server";
  }
  void start_cluster(std::size_t members) {
    cluster_ = std::make_unique<EtcdCluster>(members);
    ASSERT_TRUE(cluster_->ready()) << cluster_->logs();
  }
  [[nodiscard]] Arguments meeting(const std::string& nodes, const std::string& conf = "") const {
    Arguments arguments = {"--nnodes",           nodes, "--rdzv-backend", "etcd", "--rdzv-endpoint",
                           cluster_->endpoints()};
    if (!conf.empty()) arguments = arguments + Arguments{"--rdzv-conf", conf};
    return arguments;
  }
  // An elastic job whose workers say their round, and stay. Only a farewell makes a node lost soon.
  [[nodiscard]] Arguments elastic(const std::string& nodes) const {
    return meeting(nodes, "last_call_timeout=0.3,keep_alive_interval=20") +
           Arguments{"sh", "-c",
                     "echo round $DRUN_ROUND rank $RANK of $WORLD_SIZE "
                     "restarts $TORCHELASTIC_RESTART_COUNT.; exec sleep 1000"};
  }
  void start(const Arguments& arguments) {
    agents_.push_back(std::make_unique<DrunProcess>(arguments));
  }
  DrunProcess& agent(std::size_t number) { return *agents_[number]; }
  [[nodiscard]] bool says(std::size_t number, const std::string& text) {
    return agent(number).wait_for_out(text);
  }
  void stop_all(std::size_t number) {
    agent(number).signal(SIGINT);
    for (auto& each : agents_) {
      if (!each->running()) continue;
      const Finished finished = each->finish();
      EXPECT_EQ(finished.code, 128 + SIGINT) << finished.err;
      EXPECT_THAT(finished.survivors, IsEmpty());
    }
  }
  std::unique_ptr<EtcdCluster> cluster_;
  std::vector<std::unique_ptr<DrunProcess>> agents_;
};

TEST_F(EtcdJobTest, OneNode) {
  ASSERT_NO_FATAL_FAILURE(start_cluster(1));
  const Finished finished =
      run_drun(meeting("1") + Arguments{"sh", "-c", "echo $MASTER_ADDR $WORLD_SIZE"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.out, "127.0.0.1 1\n");
}

TEST_F(EtcdJobTest, TheNamesOfTorchrunsScriptsMeanTheSame) {
  ASSERT_NO_FATAL_FAILURE(start_cluster(1));
  for (const char* name : {"etcd-v2", "etcd-v3"}) {
    const Finished finished = run_drun({"--rdzv-backend", name, "--rdzv-endpoint",
                                        cluster_->endpoints(), "--rdzv-id", name, "true"});
    EXPECT_EQ(finished.code, 0) << finished.err;
  }
}

TEST_F(EtcdJobTest, ANodeThatFailsTellsAll) {
  ASSERT_NO_FATAL_FAILURE(start_cluster(1));
  for (int i = 0; i < 2; ++i)
    start(meeting("2") + Arguments{"sh", "-c", "[ $RANK = 1 ] && exit 7; exec sleep 1000"});
  for (std::size_t i = 0; i < 2; ++i) {
    const Finished finished = agent(i).finish();
    EXPECT_EQ(finished.code, 7) << finished.err;
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

// Long before its lease is over: those who are left of the agent end it. It leads, too.
TEST_F(EtcdJobTest, TheSurvivorsOfAKilledAgentGoOn) {
  ASSERT_NO_FATAL_FAILURE(start_cluster(1));
  start(elastic("1:3"));
  ASSERT_TRUE(says(0, " of 1 restarts 0.")) << agent(0).err();
  for (std::size_t i = 1; i < 3; ++i)
    start(elastic("1:3"));
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_TRUE(says(i, " of 3 restarts 0.")) << agent(i).err();
  agent(0).signal(SIGKILL);
  EXPECT_TRUE(says(1, " of 2 restarts 0.")) << agent(1).err();
  EXPECT_TRUE(says(2, " of 2 restarts 0.")) << agent(2).err();
  EXPECT_TRUE(agent(0).survivors_gone(kPatience));
  EXPECT_TRUE(agent(0).wait());
  stop_all(2);
}

// Killed or standing still, the one that leads among them: no worker is touched.
TEST_F(EtcdJobTest, AnyMemberOfTheClusterMayDie) {
  ASSERT_NO_FATAL_FAILURE(start_cluster(3));
  for (std::size_t i = 0; i < 2; ++i)
    start(elastic("1:2"));
  for (std::size_t i = 0; i < 2; ++i)
    ASSERT_TRUE(says(i, " of 2 restarts 0.")) << agent(i).err();
  const std::string first = agent(0).out();
  const std::string second = agent(1).out();
  for (const int signal : {SIGKILL, SIGSTOP, SIGKILL}) {
    const std::size_t leader = cluster_->leader();
    ASSERT_LT(leader, cluster_->size()) << cluster_->logs();
    if (signal == SIGKILL) {
      cluster_->kill(leader);
    } else {
      cluster_->signal(leader, SIGSTOP);
    }
    ASSERT_TRUE(cluster_->elected(leader)) << cluster_->logs();
    if (signal == SIGKILL) {
      cluster_->start(leader);
    } else {
      cluster_->signal(leader, SIGCONT);
    }
    ASSERT_TRUE(cluster_->ready()) << cluster_->logs();
  }
  EXPECT_EQ(agent(0).out(), first);
  EXPECT_EQ(agent(1).out(), second);
  const bool has_rank_1 = second.find("rank 1 ") != std::string::npos;
  const pid_t worker = agent(1).wait_for_pid_with(has_rank_1 ? "RANK=1" : "RANK=0");
  ASSERT_GT(worker, 0);
  ::kill(worker, SIGKILL);
  for (std::size_t i = 0; i < 2; ++i) {
    const Finished finished = agent(i).finish();
    EXPECT_EQ(finished.code, 128 + SIGKILL) << finished.err;
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

TEST_F(EtcdJobTest, AnIdWhoseJobHasEndedIsRefused) {
  ASSERT_NO_FATAL_FAILURE(start_cluster(1));
  ASSERT_EQ(run_drun(meeting("1") + Arguments{"--rdzv-id", "x", "true"}).code, 0);
  const Finished again = run_drun(meeting("1") + Arguments{"--rdzv-id", "x", "true"});
  EXPECT_EQ(again.code, 125);
  EXPECT_THAT(again.err, HasSubstr("the job 'x' has ended before this node came"));
}

TEST_F(EtcdJobTest, WhereNobodyListensItSaysSo) {
  const ReservedPort port;
  const Finished finished = run_drun({"--rdzv-backend", "etcd", "--rdzv-endpoint", port.endpoint(),
                                      "--rdzv-conf", "join_timeout=1", "true"});
  EXPECT_EQ(finished.code, 124);
  EXPECT_THAT(lines_but_waiting(finished.err),
              testing::ElementsAre(AllOf(
                  HasSubstr("drun: error: could not reach etcd at " + port.endpoint() + " within "),
                  HasSubstr("Connection refused; check --rdzv-endpoint"))));
}

TEST_F(EtcdJobTest, AWrongPasswordIsRefusedAndShownNowhere) {
  ASSERT_NO_FATAL_FAILURE(start_cluster(1));
  (void)cluster_->post("/v3/auth/user/add", R"({"name":"root","password":"opensesame"})");
  (void)cluster_->post("/v3/auth/role/add", R"({"name":"root"})");
  (void)cluster_->post("/v3/auth/user/grant", R"({"user":"root","role":"root"})");
  ASSERT_THAT(cluster_->post("/v3/auth/enable", "{}"), HasSubstr("header"));
  const Finished wrong =
      run_drun(meeting("1", "username=root,password=guessed") + Arguments{"--verbose", "true"});
  EXPECT_EQ(wrong.code, 125);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("authentication failed, invalid user ID or password"),
                               Not(HasSubstr("guessed"))));
  const Finished right =
      run_drun(meeting("1", "username=root,password=opensesame") + Arguments{"--verbose", "true"});
  EXPECT_EQ(right.code, 0) << right.err;
  EXPECT_THAT(right.err, Not(HasSubstr("opensesame")));
  const Finished explained =
      run_drun(meeting("1", "username=root,password=opensesame") + Arguments{"--explain", "true"});
  EXPECT_THAT(explained.out + explained.err,
              AllOf(HasSubstr("username=root,password=..."), Not(HasSubstr("opensesame"))));
}

}  // namespace
}  // namespace drun::test
