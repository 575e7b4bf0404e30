// Programs that look for their place where torchrun does not put it.
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Listens where TF_CONFIG says, as TensorFlow's servers do, until it has come to all others and all
// to it.
constexpr const char* kWorker = R"(
import json, os, socket, time
config = json.loads(os.environ['TF_CONFIG'])
places, index = config['cluster']['worker'], config['task']['index']
def place(each): return (each.rsplit(':', 1)[0], int(each.rsplit(':', 1)[1]))
server = socket.create_server(('', place(places[index])[1]))
for each in places:
  while True:
    try:
      socket.create_connection(place(each)).close()
      break
    except ConnectionRefusedError:
      time.sleep(0.01)
for each in places: server.accept()
print(config['task']['type'], index, 'of', len(places), flush=True)
if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0' and 'FAIL' in os.environ: raise SystemExit(3)
)";

std::vector<std::string> sorted_lines(const std::string& text) {
  auto lines = split_lines(text);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(FrameworksDrunTest, WorkersOfTensorFlowFindOneAnother) {
  const Finished one =
      run_drun({"--framework", "tensorflow", "--nproc-per-node", "2", "python3", "-c", kWorker});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(sorted_lines(one.out), ElementsAre("worker 0 of 2", "worker 1 of 2"));
  const Finished two = run_drun({"--framework", "tensorflow", "--local-nodes", "2",
                                 "--nproc-per-node", "2", "python3", "-c", kWorker});
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_THAT(sorted_lines(two.out),
              ElementsAre("worker 0 of 4", "worker 1 of 4", "worker 2 of 4", "worker 3 of 4"));
}

TEST(FrameworksDrunTest, WorkersOfTensorFlowFindOneAnotherAfterARestart) {
  Launch launch;
  launch.environment = {"FAIL=once"};
  const Finished finished = DrunProcess({"--framework", "tensorflow", "--local-nodes", "2",
                                         "--max-restarts", "1", "python3", "-c", kWorker},
                                        launch)
                                .finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(sorted_lines(finished.out),
              testing::IsSupersetOf({"worker 0 of 2", "worker 1 of 2"}));
}

// It would wait for what the others never say.
TEST(FrameworksDrunTest, ANodeWithoutTheFlagIsToldSo) {
  for (const std::string framework : {"mpi", "tensorflow"}) {
    const ReservedPort port;
    const Arguments flags{"--nnodes", "2", "--rdzv-endpoint", port.endpoint()};
    DrunProcess first(flags + Arguments{"--framework", framework, "true"});
    ASSERT_TRUE(first.wait_for_err("1 of 2 nodes")) << first.err();
    const Finished without = DrunProcess(flags + Arguments{"true"}).finish();
    EXPECT_EQ(without.code, 125);
    EXPECT_THAT(without.err, HasSubstr("has no --framework; the job has --framework " + framework));
    first.signal(SIGTERM);
    EXPECT_EQ(first.finish().code, 128 + SIGTERM);
  }
}

}  // namespace
}  // namespace drun::test
