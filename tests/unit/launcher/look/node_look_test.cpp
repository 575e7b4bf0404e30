// A look at real processes, which do nothing.
#include "launcher/look/node_look.hpp"

#include <chrono>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/waiting_process.hpp"

namespace drun::launcher {
namespace {

using testing::HasSubstr;

// So many ranks, all of them one process.
LookRequest request_of(int ranks, pid_t pid) {
  LookRequest request;
  request.node = {"node0", {0, ranks - 1}};
  for (int rank = 0; rank < ranks; ++rank)
    request.workers.push_back({rank, pid, {}});
  return request;
}

int ranks_in(const std::vector<stacks::StateRow>& states) {
  std::size_t ranks = 0;
  for (const stacks::StateRow& row : states)
    ranks += stacks::count(row.ranks);
  return static_cast<int>(ranks);
}

TEST(NodeLookTest, TheStatesOfAllRanksAreThereThoughNoTimeIsLeftForTheirStacks) {
  const test::WaitingProcess process;
  LookRequest request = request_of(20, process.pid());
  request.workers.back().pid = 0;
  request.all = std::chrono::milliseconds(0);
  const auto report = look_at_node(request, {}, {{"a note", {}}});
  EXPECT_EQ(ranks_in(report.states), 19);
  ASSERT_FALSE(report.groups.empty());
  EXPECT_THAT(report.groups.front().problem, HasSubstr("not looked at: the time was over"));
  const std::vector<stacks::StackNote> notes{{"a note", {}},
                                             {"its worker does not run", {{19, 19}}}};
  EXPECT_EQ(report.notes, notes);
}

TEST(NodeLookTest, IfThereIsTimeAllAreLookedAt) {
  const test::WaitingProcess process;
  const auto report = look_at_node(request_of(20, process.pid()), {}, {});
  EXPECT_EQ(ranks_in(report.states), 20);
  EXPECT_TRUE(report.notes.empty());
  for (const auto& group : report.groups)
    EXPECT_THAT(group.problem, testing::Not(HasSubstr("not looked at")));
}

}  // namespace
}  // namespace drun::launcher
