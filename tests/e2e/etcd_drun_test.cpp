// Jobs that meet at a cluster of etcd: no node is special, and neither is a member of the cluster.
#include <signal.h>

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "agents_of_a_job.hpp"
#include "base/base64.hpp"
#include "base/random_bytes.hpp"
#include "support/certificates.hpp"
#include "support/drun_process.hpp"
#include "support/etcd_cluster.hpp"
#include "support/places.hpp"
#include "support/terminal_shell.hpp"

namespace drun::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class EtcdJobTest : public AgentsOfAJob {
 protected:
  void SetUp() override {
    if (!EtcdCluster::installed()) GTEST_SKIP() << "this machine has no etcd-server";
  }
  // While the cluster is still there.
  void TearDown() override { agents_.clear(); }
  void start_cluster(std::size_t members) {
    cluster_ = std::make_unique<EtcdCluster>(members);
    ASSERT_TRUE(cluster_->ready()) << cluster_->logs();
  }
  [[nodiscard]] Arguments meeting(const std::string& nodes, const std::string& conf = "") const {
    Arguments arguments = {
        "--nnodes",  nodes, "--rdzv-backend", "etcd", "--rdzv-endpoint", cluster_->endpoints(),
        "--rdzv-id", "x"};
    if (!conf.empty()) arguments = arguments + Arguments{"--rdzv-conf", conf};
    return arguments;
  }
  // An elastic job whose workers say their round, and stay. Only a farewell makes a node lost soon.
  [[nodiscard]] Arguments elastic(const std::string& nodes, int keep_alive_interval = 20) const {
    return meeting(nodes, "last_call_timeout=0.3,keep_alive_interval=" +
                              std::to_string(keep_alive_interval)) +
           telling_workers();
  }
  // The workers of both were last started in one round.
  [[nodiscard]] bool are_together() {
    std::set<std::string> rounds;
    for (std::size_t i = 0; i < 2; ++i) {
      (void)agent(i).wait_for_out("what it has said meanwhile", milliseconds(10));
      const auto lines = split_lines(agent(i).out());
      const std::string last = lines.empty() ? "" : lines.back();
      if (last.find(" of 2 ") == std::string::npos) return false;
      rounds.insert(last.substr(0, last.find(" rank ")));
    }
    return rounds.size() == 1;
  }
  // Until so many sessions have been renewed from now on: their leases have longer to live than a
  // moment ago.
  [[nodiscard]] bool renewed(std::size_t sessions) {
    std::map<std::string, int> left;
    std::set<std::string> seen;
    return eventually(
        [&] {
          for (const auto& [lease, seconds] : leases()) {
            const auto [entry, fresh] = left.try_emplace(lease, seconds);
            if (!fresh && seconds > entry->second) seen.insert(lease);
            entry->second = seconds;
          }
          return seen.size() >= sessions;
        },
        2 * kPatience);
  }
  // Of the sessions: how many seconds each has.
  std::map<std::string, int> leases() {
    std::map<std::string, int> found;
    const std::size_t leader = cluster_->leader();
    if (leader == cluster_->size()) return found;
    const auto ask = [&](const std::string& path, const json& body) {
      return json::parse(cluster_->post(path, body.dump(), leader), nullptr, false);
    };
    const auto fences = ask("/v3/kv/range", {{"key", base64("drun/%session/")},
                                             {"range_end", base64("drun/%session0")}});
    if (!fences.is_object() || !fences.contains("kvs")) return found;
    for (const auto& fence : fences["kvs"]) {
      const auto lease = ask("/v3/lease/timetolive", {{"ID", fence["lease"]}});
      if (lease.is_object() && lease.contains("TTL"))
        found[fence["lease"]] = std::stoi(lease["TTL"].get<std::string>());
    }
    return found;
  }
  std::unique_ptr<EtcdCluster> cluster_;
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

// drunctl knows no etcd: the agents of its host tell it.
TEST_F(EtcdJobTest, StatusAndHistoryAreThoseOfTheWholeJob) {
  ASSERT_NO_FATAL_FAILURE(start_cluster(1));
  const std::string id = "etcd-" + random_name(12);
  const auto ctl = [&id](Arguments arguments) {
    Launch launch;
    launch.argv = Arguments{places::program("drunctl")} + arguments + Arguments{id};
    return DrunProcess(launch).finish();
  };
  const Arguments node = Arguments{"--nnodes",
                                   "2",
                                   "--rdzv-backend",
                                   "etcd",
                                   "--rdzv-endpoint",
                                   cluster_->endpoints(),
                                   "--rdzv-id",
                                   id,
                                   "sh",
                                   "-c",
                                   "echo ready; exec sleep 1000"};
  start(node);
  start(node);
  for (std::size_t i = 0; i < 2; ++i)
    ASSERT_TRUE(agent(i).wait_for_out("ready")) << agent(i).err();
  const Finished status = ctl({"status"});
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_THAT(status.out,
              testing::StartsWith("job " + id + ": running, round 1: 2 nodes, 2 ranks\n"));
  EXPECT_THAT(status.out, HasSubstr(" x2 (ranks 0-1)\n"));
  EXPECT_THAT(ctl({"history"}).out,
              testing::StartsWith("job " + id + ": running\n  round 1: 2 nodes, 2 ranks, "));
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

// Killed or standing still, the one that leads among them: no worker is touched. Of each election
// the agents hear before the next.
TEST_F(EtcdJobTest, AnyMemberOfTheClusterMayDie) {
  ASSERT_NO_FATAL_FAILURE(start_cluster(3));
  for (std::size_t i = 0; i < 2; ++i)
    start(elastic("1:2", 6));
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
    ASSERT_TRUE(renewed(2)) << agent(0).err() << agent(1).err() << cluster_->logs();
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

// When it goes on it may, in old versions, end the leases of agents that live. They come back.
TEST_F(EtcdJobTest, AMemberThatLedMayStandStillForLongerThanALease) {
  ASSERT_NO_FATAL_FAILURE(start_cluster(3));
  constexpr int kInterval = 4;                       // seconds
  constexpr int kLease = kInterval * 3 * 8 / 6 + 2;  // as the agents ask for it
  for (std::size_t i = 0; i < 2; ++i)
    start(elastic("1:2", kInterval));
  for (std::size_t i = 0; i < 2; ++i)
    ASSERT_TRUE(says(i, " of 2 restarts 0.")) << agent(i).err();
  const std::size_t leader = cluster_->leader();
  ASSERT_LT(leader, cluster_->size()) << cluster_->logs();
  cluster_->signal(leader, SIGSTOP);
  const auto stopped = std::chrono::steady_clock::now();
  ASSERT_TRUE(cluster_->elected(leader)) << cluster_->logs();
  ASSERT_TRUE(renewed(2)) << agent(0).err() << agent(1).err() << cluster_->logs();
  std::this_thread::sleep_until(stopped + std::chrono::seconds(kLease + 2));
  cluster_->signal(leader, SIGCONT);
  ASSERT_TRUE(cluster_->ready()) << cluster_->logs();
  ASSERT_TRUE(renewed(2)) << agent(0).err() << agent(1).err() << cluster_->logs();
  EXPECT_TRUE(eventually([&] { return are_together(); })) << agent(0).err() << agent(1).err();
  stop_all(0);
}

TEST_F(EtcdJobTest, AnIdWhoseJobHasEndedIsRefused) {
  ASSERT_NO_FATAL_FAILURE(start_cluster(1));
  ASSERT_EQ(run_drun(meeting("1") + Arguments{"true"}).code, 0);
  const Finished again = run_drun(meeting("1") + Arguments{"true"});
  EXPECT_EQ(again.code, 125);
  EXPECT_THAT(again.err, HasSubstr("the job 'x' has ended before this node came"));
}

TEST_F(EtcdJobTest, WhereNobodyListensItSaysSo) {
  const ReservedPort port;
  const Finished finished = run_drun({"--rdzv-backend", "etcd", "--rdzv-endpoint", port.endpoint(),
                                      "--rdzv-id", "x", "--rdzv-conf", "join_timeout=1", "true"});
  EXPECT_EQ(finished.code, 124);
  EXPECT_THAT(lines_but_waiting(finished.err),
              testing::ElementsAre(AllOf(
                  HasSubstr("drun: error: could not reach etcd at " + port.endpoint() + " within "),
                  HasSubstr("Connection refused; check --rdzv-endpoint"))));
}

TEST_F(EtcdJobTest, WithoutLibcurlItSaysWhatToInstall) {
  const TempDir folder;
  (void)folder.write("libcurl.so.4", "");  // the loader takes it, and finds nothing in it
  Launch launch;
  launch.environment = {"LD_LIBRARY_PATH=" + folder.path().string()};
  const Finished finished = run_drun(
      {"--rdzv-backend", "etcd", "--rdzv-endpoint", "127.0.0.1:1", "--rdzv-id", "x", "true"},
      launch);
  EXPECT_EQ(finished.code, 125);
  EXPECT_THAT(finished.err, HasSubstr("drun: error: a rendezvous at etcd needs the library "
                                      "libcurl.so.4, which is not there: install the Debian "
                                      "package libcurl4"));
}

// libcurl would let OpenSSL ask for it at the terminal, and wait.
TEST_F(EtcdJobTest, NobodyIsAskedForThePassPhraseOfAKey) {
  const Certificates certificates;
  if (!certificates.made()) GTEST_SKIP() << "this machine has no openssl";
  ASSERT_NO_FATAL_FAILURE(start_cluster(1));
  TerminalShell shell("etcd");
  shell.type(drun_path() + " --rdzv-backend etcd --rdzv-id x --rdzv-endpoint " +
             cluster_->endpoints() +
             " --rdzv-conf protocol=https,cert=" + certificates.certificate() +
             ",key=" + certificates.locked_key() + " true; echo it is over\n");
  EXPECT_TRUE(shell.wait_for("\nit is over")) << shell.shown();
  EXPECT_THAT(shell.shown(),
              AllOf(HasSubstr("drun: error: etcd at "), Not(HasSubstr("pass phrase:"))));
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
