// Every call of real TCPStore clients gives with drun-store, and through the relay of an agent,
// what it gives with torch's own server.
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

using testing::Contains;
using testing::StartsWith;

constexpr milliseconds kTorchPatience{140'000};
const std::string kSource = places::source();
const std::string kStoreCalls = kSource + "/tests/torch/store_calls.py";

// A command that runs the script, to which the server's address is added.
void compare_with_torchs_server(const Arguments& command) {
  const auto run = [&](const std::string& server) {
    Launch launch;
    launch.argv = command;
    launch.argv.push_back(server);
    launch.directory = kSource;
    return DrunProcess(launch).finish(kTorchPatience);
  };
  const auto run_relayed = [&] {
    Launch launch;
    launch.argv = Arguments{drun_path(),
                            "--standalone",
                            "--worker-store",
                            "local",
                            "sh",
                            "-c",
                            "exec \"$@\" \"$MASTER_ADDR:$MASTER_PORT\"",
                            "sh"} +
                  command;
    launch.environment = {"DRUN_TOKEN=the-token-of-the-job-0123456789ab"};
    launch.directory = kSource;
    return DrunProcess(launch).finish(kTorchPatience);
  };
  DrunProcess store(
      Launch{{places::program("drun-store"), "--bind", "127.0.0.1", "--port", "0"}, {}, {}});
  ASSERT_TRUE(store.wait_for_out("\n")) << store.err();
  const Finished with_ours = run(store.out().substr(0, store.out().find('\n')));
  const Finished with_torchs = run("own");
  EXPECT_EQ(with_ours.code, 0) << with_ours.err;
  ASSERT_EQ(with_torchs.code, 0) << with_torchs.err;
  const std::vector<std::string> ours = split_lines(with_ours.out);
  EXPECT_GT(ours.size(), 75U);
  EXPECT_EQ(ours, split_lines(with_torchs.out));
  EXPECT_THAT(ours, Contains("compare_set one two: b'two'"));
  EXPECT_THAT(ours.back(), StartsWith("num_keys in the end: "));
  EXPECT_EQ(store.err(), "") << "nobody was dropped";
  const Finished relayed = run_relayed();
  EXPECT_EQ(relayed.code, 0) << relayed.err;
  EXPECT_EQ(split_lines(relayed.out), split_lines(with_torchs.out));
}

TEST(TorchStoreCallsTest, GiveTheSameAsWithTorchsServer) {
  const std::string python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "no Python with torch on this machine";
  compare_with_torchs_server({python, kStoreCalls});
}

class NewerTorchStoreCallsTest : public testing::TestWithParam<const char*> {};

TEST_P(NewerTorchStoreCallsTest, GiveTheSameAsWithTorchsServer) {
  if (::geteuid() != 0) GTEST_SKIP() << "entering another Debian's folder needs root";
  const std::string folders = kSource + "/scripts/torch-chroot";
  if (DrunProcess(Launch{{folders, "path", GetParam()}, {}, {}}).finish().code != 0)
    GTEST_SKIP() << "no folder with a newer torch: scripts/torch-chroot create " << GetParam();
  compare_with_torchs_server({folders, "run", GetParam(), "/usr/bin/python3", kStoreCalls});
}

INSTANTIATE_TEST_SUITE_P(Releases, NewerTorchStoreCallsTest, testing::Values("trixie", "forky"),
                         [](const auto& chosen) { return std::string(chosen.param); });

}  // namespace
}  // namespace drun::test
