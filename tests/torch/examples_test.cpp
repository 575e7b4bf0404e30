// The PyTorch examples, unmodified, with the torch of this machine.
#include <signal.h>

#include <algorithm>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr milliseconds kTorchPatience{100'000};  // importing torch alone takes seconds

enum class Nodes { One, TwoAgents, TwoLocal };

// A job of four workers, however many agents it takes.
class TorchJob {
 public:
  TorchJob(Nodes nodes, const Arguments& rest) {
    Launch launch;
    // One machine: no need for its name to resolve.
    launch.environment = {"PYTHON_EXEC=" + python_with_torch(), "GLOO_SOCKET_IFNAME=lo"};
    Arguments arguments;
    switch (nodes) {
      case Nodes::One:
        arguments = {"--nproc-per-node", "4"};
        break;
      case Nodes::TwoLocal:
        arguments = {"--local-nodes", "2", "--nproc-per-node", "2"};
        break;
      case Nodes::TwoAgents:
        arguments = {"--nnodes", "2", "--nproc-per-node", "2", "--rdzv-endpoint", port_.endpoint()};
        break;
    }
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    agents_.push_back(std::make_unique<DrunProcess>(arguments, launch));
    if (nodes == Nodes::TwoAgents)
      agents_.push_back(std::make_unique<DrunProcess>(arguments, launch));
  }

  // Until one agent has printed `text`.
  bool wait_for(const std::string& text) {
    return eventually(
        [&] {
          return std::any_of(agents_.begin(), agents_.end(), [&](auto& agent) {
            return agent->wait_for_out(text, milliseconds(20));
          });
        },
        kTorchPatience);
  }

  void kill_rank(int rank) {
    int killed = 0;
    for (const auto& agent : agents_) {
      for (const pid_t pid : agent->pids_with("RANK=" + std::to_string(rank))) {
        ::kill(pid, SIGKILL);
        ++killed;
      }
    }
    EXPECT_EQ(killed, 1);
  }

  // Waits for all; expects success and nothing left.
  std::string finish() {
    std::string out;
    for (auto& agent : agents_) {
      const Finished finished = agent->finish(kTorchPatience);
      EXPECT_EQ(finished.code, 0) << finished.err;
      EXPECT_THAT(finished.survivors, IsEmpty());
      out += finished.out;
    }
    return out;
  }

 private:
  ReservedPort port_;
  std::vector<std::unique_ptr<DrunProcess>> agents_;
};

std::string example(const std::string& name) {
  return places::source("examples/pytorch/") + name;
}

class TorchExamplesTest : public testing::TestWithParam<Nodes> {
 protected:
  void SetUp() override {
    if (python_with_torch().empty())
      GTEST_SKIP() << "no python3 with torch: apt-get install python3-torch";
  }
};

TEST_P(TorchExamplesTest, AllReduceFromTheEnvironment) {
  TorchJob job(GetParam(), {example("allreduce.py")});
  const std::string out = job.finish();
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_THAT(out, HasSubstr("rank " + std::to_string(rank) + " of 4: the ranks add up to 6\n"));
}

TEST_P(TorchExamplesTest, AllReduceFromATcpAddress) {
  TorchJob job(GetParam(), {example("allreduce_tcp.py")});
  const std::string out = job.finish();
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_THAT(out, HasSubstr("rank " + std::to_string(rank) + " of 4: the ranks add up to 6\n"));
}

TEST_P(TorchExamplesTest, TrainingResumesFromItsSnapshotAfterAKill) {
  constexpr int kEpochs = 800;
  const TempDir directory;
  const std::string snapshot = (directory.path() / "snapshot.pt").string();
  TorchJob job(GetParam(), {"--max-restarts", "1", example("ddp.py"), "--epochs",
                            std::to_string(kEpochs), "--snapshot", snapshot});
  ASSERT_TRUE(job.wait_for("epoch 50 "));
  job.kill_rank(3);
  const std::string out = job.finish();

  EXPECT_THAT(out, HasSubstr("start at epoch 0 of 800, 4 workers, restart 0\n"));
  std::smatch resumed;
  ASSERT_TRUE(std::regex_search(
      out, resumed, std::regex("start at epoch (\\d+) of 800, 4 workers, restart 1\n")));
  const int first = std::stoi(resumed[1]);
  EXPECT_GT(first, 50);
  EXPECT_LT(first, kEpochs);
  // Every epoch was done once, but for the one that was saved and not yet announced.
  for (const int epoch : {first, first + 1, kEpochs - 1})
    EXPECT_THAT(out, HasSubstr("epoch " + std::to_string(epoch) + " loss"));
  EXPECT_THAT(out, HasSubstr("done: [3.0, -2.0] + 1.00\n"));
  EXPECT_TRUE(std::filesystem::exists(snapshot));
}

// Group rank 0 has the workers' store, and here the nodes' one as well. The others' workers fail
// when it dies; that is no failure of theirs, and no restart is allowed.
TEST(TorchSuccessionTest, WhatTheNodeOfRankZeroTakesAlongIsTheWorkSinceTheLastSnapshot) {
  if (python_with_torch().empty()) GTEST_SKIP() << "no python3 with torch";
  const TempDir directory;
  const ReservedPort port;
  Launch launch;
  launch.environment = {"PYTHON_EXEC=" + python_with_torch(), "GLOO_SOCKET_IFNAME=lo"};
  std::vector<std::unique_ptr<DrunProcess>> agents;
  for (int node = 0; node < 3; ++node) {
    const Arguments arguments = {"--nnodes",
                                 "2:3",
                                 "--node-rank",
                                 std::to_string(node),
                                 "--rdzv-endpoint",
                                 port.endpoint(),
                                 "--rdzv-conf",
                                 "successors=3,is_host=" + std::to_string(node == 0 ? 1 : 0),
                                 example("ddp.py"),
                                 "--epochs",
                                 "800",
                                 "--snapshot",
                                 (directory.path() / "snapshot.pt").string()};
    agents.push_back(std::make_unique<DrunProcess>(arguments, launch));
  }
  ASSERT_TRUE(agents[0]->wait_for_out("epoch 50 ", kTorchPatience)) << agents[0]->err();
  agents[0]->signal(SIGKILL);
  std::string out;
  for (const int node : {1, 2}) {
    const Finished finished = agents[static_cast<std::size_t>(node)]->finish(kTorchPatience);
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_THAT(finished.survivors, IsEmpty());
    out += finished.out;
  }
  std::smatch resumed;
  ASSERT_TRUE(std::regex_search(out, resumed,
                                std::regex("start at epoch (\\d+) of 800, 2 workers, restart 0\n")))
      << out;
  const std::string before = agents[0]->out();
  const int first = std::stoi(resumed[1]);
  EXPECT_GT(first, 50);
  // What was saved and not yet announced counts, too: of the dead node's work nothing is done
  // again.
  EXPECT_THAT(before, Not(HasSubstr("epoch " + std::to_string(first) + " loss")));
  EXPECT_THAT(out, HasSubstr("done: [3.0, -2.0] + 1.00\n"));
  EXPECT_TRUE(agents[0]->survivors_gone(kTorchPatience));
  EXPECT_TRUE(agents[0]->wait());
}

TEST(TorchRecordTest, ItsErrorFileIsTheFailureReport) {
  if (python_with_torch().empty()) GTEST_SKIP() << "no python3 with torch";
  const TempDir directory;
  const std::string script =
      directory.write("train.py",
                      "from torch.distributed.elastic.multiprocessing.errors import record\n"
                      "@record\n"
                      "def main():\n"
                      "    raise ValueError('bad value 42')\n"
                      "main()\n");
  Launch launch;
  launch.environment = {"PYTHON_EXEC=" + python_with_torch()};
  const Finished finished = run_drun({script}, launch, kTorchPatience);
  EXPECT_EQ(finished.code, 1);
  const auto report = finished.err.find("drun: job failed: rank 0 ");
  ASSERT_NE(report, std::string::npos) << finished.err;
  EXPECT_THAT(finished.err.substr(report), HasSubstr("  error:\n  | Traceback (most recent"));
  EXPECT_THAT(finished.err.substr(report), HasSubstr("\n  | ValueError: bad value 42\n"));
}

// Rank 0's worker is PyTorch's server then, at the port that it is given or, where the nodes meet
// at that one, at another.
TEST(TorchStoreTest, RankZeroServesAStaticMasterPort) {
  if (python_with_torch().empty()) GTEST_SKIP() << "no python3 with torch";
  for (const int nodes : {1, 2}) {
    const ReservedPort port;
    std::vector<std::unique_ptr<DrunProcess>> agents;
    for (int node = 0; node < nodes; ++node) {
      Launch launch;
      launch.environment = {"PYTHON_EXEC=" + python_with_torch(), "GLOO_SOCKET_IFNAME=lo",
                            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"};
      const Arguments arguments = {"--nnodes",
                                   std::to_string(nodes),
                                   "--node-rank",
                                   std::to_string(node),
                                   "--nproc-per-node",
                                   std::to_string(2 / nodes),
                                   "--master-addr",
                                   "127.0.0.1",
                                   "--master-port",
                                   std::to_string(port.number()),
                                   example("allreduce.py")};
      agents.push_back(std::make_unique<DrunProcess>(arguments, launch));
    }
    std::string out;
    for (auto& agent : agents) {
      const Finished finished = agent->finish(kTorchPatience);
      EXPECT_EQ(finished.code, 0) << finished.err;
      out += finished.out;
    }
    EXPECT_THAT(out, HasSubstr("rank 0 of 2: the ranks add up to 1\n"));
    EXPECT_THAT(out, HasSubstr("rank 1 of 2: the ranks add up to 1\n"));
  }
}

// It is its own launcher: its ranks meet at a port of their own, where nobody serves if all of them
// take drun's store for granted.
TEST(TorchSpawnTest, AProgramThatStartsItsOwnRanksIsShownTheWayOut) {
  if (python_with_torch().empty()) GTEST_SKIP() << "no python3 with torch";
  const TempDir directory;
  const ReservedPort port;
  const std::string script =
      directory.write("spawn.py",
                      "import os, torch.distributed as dist, torch.multiprocessing as mp\n"
                      "def main(rank, size):\n"
                      "    os.environ['MASTER_ADDR'] = 'localhost'\n"
                      "    os.environ['MASTER_PORT'] = '" +
                          std::to_string(port.number()) +
                          "'\n"
                          "    dist.init_process_group('gloo', rank=rank, world_size=size)\n"
                          // In one write: both have the same pipe.
                          "    os.write(1, f'rank {dist.get_rank()} of {size}\\n'.encode())\n"
                          "if __name__ == '__main__':\n"
                          "    mp.spawn(main, args=(2,), nprocs=2)\n");
  Launch launch;
  launch.environment = {"PYTHON_EXEC=" + python_with_torch(), "GLOO_SOCKET_IFNAME=lo"};
  DrunProcess hangs({script}, launch);
  EXPECT_TRUE(hangs.wait_for_err("use --worker-store rank0", kTorchPatience)) << hangs.err();
  const Finished finished = run_drun({"--worker-store", "rank0", script}, launch, kTorchPatience);
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("rank 0 of 2\n"));
  EXPECT_THAT(finished.out, HasSubstr("rank 1 of 2\n"));
}

INSTANTIATE_TEST_SUITE_P(Nodes, TorchExamplesTest,
                         testing::Values(Nodes::One, Nodes::TwoAgents, Nodes::TwoLocal),
                         [](const auto& nodes) {
                           switch (nodes.param) {
                             case Nodes::One:
                               return "OneNode";
                             case Nodes::TwoAgents:
                               return "TwoAgents";
                             case Nodes::TwoLocal:
                               break;
                           }
                           return "TwoLocalNodes";
                         });

}  // namespace
}  // namespace drun::test
