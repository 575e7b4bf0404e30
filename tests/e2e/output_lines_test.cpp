// Lines of different ranks and nodes stay apart, however the workers write them.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

using Arguments = std::vector<std::string>;

// Holds workers until the test lets them go. Opened for reading too, so that nobody waits for it.
class Gate {
 public:
  explicit Gate(const std::filesystem::path& path) {
    if (::mkfifo(path.c_str(), 0600) == 0) fifo_.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  }
  void open() const { ASSERT_EQ(::write(fifo_.get(), "\n", 1), 1); }

 private:
  FileDescriptor fifo_;
};

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
      gate->open();
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
  FAIL() << "the machine is too slow for this test";
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, LinesInTwoWrites,
    testing::Values(Job{"OneNode", {"--nproc-per-node", "4"}},
                    Job{"TwoLocalNodes", {"--local-nodes", "2", "--nproc-per-node", "2"}},
                    Job{"FourLocalNodes", {"--local-nodes", "4", "--nproc-per-node", "1"}}),
    [](const auto& chosen) { return chosen.param.name; });

}  // namespace
}  // namespace drun::test
