// The PyTorch examples with torch 2.x, where scripts/torch-chroot has made a folder with it.
// Debian's builds of it have no libuv: either rank 0's worker serves the store (what users of these
// builds do), or the clients are told not to ask for libuv and use the agent's store as other
// builds would, directly or, of a job with a token, through the agents.
#include <unistd.h>

#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr milliseconds kTorchPatience{150'000};
const std::string kSource = places::source();

enum class Store { Rank0, Agent, Local };

class NewerTorchTest : public testing::TestWithParam<std::tuple<std::string, Store>> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "entering another Debian's folder needs root";
    if (!drun_path().starts_with(kSource))
      GTEST_SKIP()
          << "drun is built outside of the source folder, and not visible in the other one";
    Launch launch;
    launch.argv = {kSource + "/scripts/torch-chroot", "path", release()};
    launch.environment = roots();
    DrunProcess process(launch);
    if (process.finish().code != 0)
      GTEST_SKIP() << "no folder with a newer torch: scripts/torch-chroot create " << release();
  }

  static std::string release() { return std::get<0>(GetParam()); }

  // Runs a script on two agents' worth of workers, in the folder.
  static Finished run(const Arguments& flags, const std::string& script,
                      const Arguments& arguments = {}) {
    const bool rank0 = std::get<1>(GetParam()) == Store::Rank0;
    const Arguments store = rank0 ? Arguments{"--worker-store", "rank0"} : Arguments{};
    const Arguments wrapper =
        rank0 ? Arguments{} : Arguments{kSource + "/tests/torch/without_libuv.py"};
    Launch launch;
    launch.argv = {kSource + "/scripts/torch-chroot", "run", release(), drun_path()};
    launch.environment = roots();
    for (const char* variable :
         {"USE_LIBUV=0", "GLOO_SOCKET_IFNAME=lo", "PYTHON_EXEC=/usr/bin/python3"})
      launch.environment.emplace_back(variable);
    if (std::get<1>(GetParam()) == Store::Local)
      launch.environment.emplace_back("DRUN_TOKEN=the-token-of-the-job-0123456789ab");
    launch.directory = kSource;
    for (const auto& part : {store, flags, wrapper, Arguments{kSource + "/" + script}, arguments})
      launch.argv.insert(launch.argv.end(), part.begin(), part.end());
    DrunProcess process(launch);
    return process.finish(kTorchPatience);
  }

 private:
  static Arguments roots() {
    const char* chosen = std::getenv("DRUN_TORCH_ROOTS");
    return chosen == nullptr ? Arguments{} : Arguments{std::string("DRUN_TORCH_ROOTS=") + chosen};
  }
};

TEST_P(NewerTorchTest, AllReduceOnTwoNodes) {
  const Finished finished =
      run({"--local-nodes", "2", "--nproc-per-node", "2"}, "examples/pytorch/allreduce.py");
  EXPECT_EQ(finished.code, 0) << finished.err;
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_THAT(finished.out,
                HasSubstr("rank " + std::to_string(rank) + " of 4: the ranks add up to 6\n"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST_P(NewerTorchTest, AllReduceFromATcpAddress) {
  const Finished finished = run({"--nproc-per-node", "3"}, "examples/pytorch/allreduce_tcp.py");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("rank 2 of 3: the ranks add up to 3\n"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST_P(NewerTorchTest, TrainsWithDataParallel) {
  const TempDir directory;
  const Finished finished =
      run({"--nproc-per-node", "2"}, "examples/pytorch/ddp.py",
          {"--epochs", "100", "--snapshot", (directory.path() / "snapshot.pt").string()});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("done: [3.0, -2.0] + 1.00\n"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

// torch 2.x has no attempt number in its keys: what the last round left would end this one's waits.
TEST_P(NewerTorchTest, ARestartHasAFreshStore) {
  const Finished finished =
      run({"--local-nodes", "2", "--max-restarts", "1"}, "tests/torch/restarts.py");
  EXPECT_EQ(finished.code, 0) << finished.err;
  for (const char* worker :
       {"rank 0 restart 0", "rank 1 restart 0", "rank 0 restart 1", "rank 1 restart 1"})
    EXPECT_THAT(finished.out, HasSubstr(std::string(worker) + ": sum 1, a fresh store\n"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Releases, NewerTorchTest,
                         testing::Combine(testing::Values("trixie", "forky"),
                                          testing::Values(Store::Rank0, Store::Agent,
                                                          Store::Local)),
                         [](const auto& chosen) {
                           const Store store = std::get<1>(chosen.param);
                           return std::get<0>(chosen.param) + (store == Store::Rank0 ? "Rank0Store"
                                                               : store == Store::Agent
                                                                   ? "AgentStore"
                                                                   : "LocalStore");
                         });

}  // namespace
}  // namespace drun::test
