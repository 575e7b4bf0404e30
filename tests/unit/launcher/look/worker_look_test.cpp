#include "launcher/look/worker_look.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/patience.hpp"

namespace drun::launcher {
namespace {

TEST(WorkerLookTest, IsOverWithItsProcess) {
  const LookTools tools;
  {
    const WorkerLook look({.rank = 0, .pid = ::getpid(), .silence = {}}, tools,
                          std::chrono::seconds(30), WorkerLook::Time::max());
    ASSERT_GE(look.fd(), 0);
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

// So many ranks; what is found of each names the process that has looked.
std::map<int, stacks::Sample> states_of_ranks(int ranks, std::chrono::milliseconds each,
                                              int hangs = -1) {
  std::vector<LookRequest::Worker> workers;
  for (int rank = 0; rank < ranks; ++rank)
    workers.push_back({.rank = rank, .pid = 1, .silence = {}});
  return states_of(workers, each, test::kPatience,
                   [hangs](const LookRequest::Worker& worker, const LookCalls& calls) {
                     if (worker.rank == hangs) ::pause();
                     stacks::Sample sample;
                     sample.rank = worker.rank;
                     sample.state = 'S';
                     sample.name = std::to_string(::getpid());
                     calls.without_stack(0, sample);
                   });
}

// A fork for each of many ranks takes longer than the look.
TEST(StatesTest, OneProcessLooksAtAll) {
  const auto states = states_of_ranks(300, test::kPatience);
  ASSERT_EQ(states.size(), 300U);
  for (const auto& [rank, state] : states)
    EXPECT_EQ(state.name, states.at(0).name);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "it is gone";
}

TEST(StatesTest, BehindOneAtWhichItHangsAnotherGoesOn) {
  const auto states = states_of_ranks(4, std::chrono::seconds(1), 1);
  EXPECT_FALSE(states.contains(1));
  ASSERT_TRUE(states.contains(0) && states.contains(2) && states.contains(3));
  EXPECT_NE(states.at(2).name, states.at(0).name);
  EXPECT_EQ(states.at(2).name, states.at(3).name);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "both are gone";
}

TEST(StatesTest, OfAProcessThatIsThereTheStateIsKnown) {
  const auto states =
      states_of({{.rank = 7, .pid = ::getpid(), .silence = {}}}, test::kPatience, test::kPatience);
  ASSERT_TRUE(states.contains(7));
  EXPECT_NE(states.at(7).state, '?');
}

}  // namespace
}  // namespace drun::launcher
