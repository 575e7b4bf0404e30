// Lines of different ranks and nodes stay apart, however the workers write them.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/gate.hpp"

namespace drun::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// As print() of an unbuffered Python does: first the text, then, some time, the newline.
constexpr const char* kTwoWrites = R"(
printf 'the text of rank %s' $RANK
printf 'warning of rank %s' $RANK >&2
: >written.$RANK
read line <gate.$RANK
echo
echo >&2
)";

struct Job {
  std::string name;
  Arguments arguments;
};

class LinesInTwoWrites : public testing::TestWithParam<Job> {};

// All ranks stand in the middle of a line at once; then they end it, the last one first.
TEST_P(LinesInTwoWrites, AreNeverMixed) {
  constexpr auto kHold = std::chrono::milliseconds(1'000);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const TempDir directory;
    Launch launch;
    launch.directory = directory.path();
    std::vector<Gate> gates;
    for (int rank = 0; rank < 4; ++rank)
      gates.emplace_back(directory.path() / ("gate." + std::to_string(rank)));
    Arguments arguments = GetParam().arguments;
    arguments.insert(arguments.end(), {"sh", "-c", kTwoWrites});
    DrunProcess drun(arguments, launch);
    std::vector<bool> written(4);
    auto first = std::chrono::steady_clock::time_point::max();
    ASSERT_TRUE(eventually([&] {
      for (std::size_t rank = 0; rank < written.size(); ++rank)
        written[rank] = exists(directory.path() / ("written." + std::to_string(rank)));
      const auto now = std::chrono::steady_clock::now();
      if (std::count(written.begin(), written.end(), true) > 0) first = std::min(first, now);
      return std::count(written.begin(), written.end(), true) == 4;
    }));
    for (auto gate = gates.rbegin(); gate != gates.rend(); ++gate)
      ASSERT_TRUE(gate->open());
    const Finished finished = drun.finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
    // On a machine this slow, a line in pieces may be shown in pieces.
    if (std::chrono::steady_clock::now() - first > kHold * 9 / 10) continue;

    auto lines = split_lines(finished.out);
    std::sort(lines.begin(), lines.end());
    EXPECT_THAT(lines, ElementsAre("the text of rank 0", "the text of rank 1", "the text of rank 2",
                                   "the text of rank 3"));
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_THAT("\n" + finished.err,
                  HasSubstr("\nwarning of rank " + std::to_string(rank) + "\n"));
    EXPECT_THAT(finished.err, Not(HasSubstr("\n\n")));
    return;
  }
  GTEST_SKIP() << "the machine is too slow to tell";
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, LinesInTwoWrites,
    testing::Values(Job{"OneNode", {"--nproc-per-node", "4"}},
                    Job{"TwoLocalNodes", {"--local-nodes", "2", "--nproc-per-node", "2"}},
                    Job{"FourLocalNodes", {"--local-nodes", "4", "--nproc-per-node", "1"}}),
    [](const auto& chosen) { return chosen.param.name; });

}  // namespace
}  // namespace drun::test
