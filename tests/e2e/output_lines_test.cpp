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
: >begun.$RANK
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

// When the first of them can have begun its line: the files' own times, as the test may look late.
std::filesystem::file_time_type first_begin(const std::filesystem::path& directory) {
  auto first = std::filesystem::file_time_type::max();
  for (int rank = 0; rank < 4; ++rank)
    first = std::min(first, last_write_time(directory / ("begun." + std::to_string(rank))));
  return first;
}

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
    ASSERT_TRUE(eventually([&] {
      int written = 0;
      for (int rank = 0; rank < 4; ++rank)
        written += exists(directory.path() / ("written." + std::to_string(rank))) ? 1 : 0;
      return written == 4;
    }));
    const auto first = first_begin(directory.path());
    for (auto gate = gates.rbegin(); gate != gates.rend(); ++gate)
      ASSERT_TRUE(gate->open());
    const Finished finished = drun.finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
    // On a machine this slow, a line in pieces may be shown in pieces.
    if (std::filesystem::file_time_type::clock::now() - first > kHold * 9 / 10) continue;

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
