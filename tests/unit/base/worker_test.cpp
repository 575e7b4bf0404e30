#include "drun/worker.hpp"

#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun {
namespace {

using Environment = std::vector<std::string>;

Environment complete() {
  return {"RANK=5",
          "WORLD_SIZE=8",
          "LOCAL_RANK=1",
          "LOCAL_WORLD_SIZE=4",
          "GROUP_RANK=1",
          "GROUP_WORLD_SIZE=2",
          "MASTER_ADDR=::1",
          "MASTER_PORT=29500",
          "TORCHELASTIC_RESTART_COUNT=3",
          "TORCHELASTIC_RUN_ID=night run"};
}

// With one entry in place of that of the same name; without a "=" the entry goes.
Environment with(const std::string& entry) {
  Environment environment = complete();
  const std::string name = entry.substr(0, entry.find('='));
  std::erase_if(environment, [&](const std::string& e) { return e.starts_with(name + "="); });
  if (entry != name) environment.push_back(entry);
  return environment;
}

TEST(WorkerTest, IsWhatTheLauncherSays) {
  const Worker expected{.rank = 5,
                        .world_size = 8,
                        .local_rank = 1,
                        .local_world_size = 4,
                        .group_rank = 1,
                        .group_world_size = 2,
                        .store = {"::1", 29500},
                        .restart_count = 3,
                        .job_id = "night run"};
  const auto found = worker(complete());
  ASSERT_TRUE(found) << found.error().what();
  EXPECT_EQ(*found, expected);
}

TEST(WorkerTest, NeedsNoJobIdAndNoRestartCount) {
  const auto first = worker(with("TORCHELASTIC_RESTART_COUNT"));
  ASSERT_TRUE(first) << first.error().what();
  EXPECT_EQ(first->restart_count, 0);
  const auto nameless = worker(with("TORCHELASTIC_RUN_ID"));
  ASSERT_TRUE(nameless) << nameless.error().what();
  EXPECT_EQ(nameless->job_id, "");
}

TEST(WorkerTest, NamesTheVariableAndWhatIsWrongWithIt) {
  const struct {
    const char* entry;
    const char* what;
  } cases[] = {
      {"RANK", "RANK is not set: start this program with drun"},
      {"WORLD_SIZE", "WORLD_SIZE is not set: start this program with drun"},
      {"GROUP_WORLD_SIZE", "GROUP_WORLD_SIZE is not set: start this program with drun"},
      {"RANK=", "RANK is empty"},
      {"RANK=one", "RANK is 'one', not a whole number from 0 up"},
      {"RANK=+1", "RANK is '+1', not a whole number from 0 up"},
      {"RANK=-1", "RANK is '-1', not a whole number from 0 up"},
      {"RANK=99999999999", "RANK is '99999999999', not a whole number from 0 up"},
      {"RANK=\x1b[2J", "RANK is '\\x1b[2J', not a whole number from 0 up"},
      {"RANK=8", "RANK is '8', not below WORLD_SIZE, which is 8"},
      {"WORLD_SIZE=0", "WORLD_SIZE is '0', not a whole number from 1 up"},
      {"LOCAL_RANK=4", "LOCAL_RANK is '4', not below LOCAL_WORLD_SIZE, which is 4"},
      {"GROUP_RANK=1.5", "GROUP_RANK is '1.5', not a whole number from 0 up"},
      {"MASTER_ADDR", "MASTER_ADDR is not set: start this program with drun"},
      {"MASTER_ADDR=", "MASTER_ADDR is empty"},
      {"MASTER_PORT=0", "MASTER_PORT is '0', not a port"},
      {"MASTER_PORT=70000", "MASTER_PORT is '70000', not a port"},
      {"TORCHELASTIC_RESTART_COUNT=x",
       "TORCHELASTIC_RESTART_COUNT is 'x', not a whole number from 0 up"},
  };
  for (const auto& c : cases) {
    const auto found = worker(with(c.entry));
    ASSERT_FALSE(found) << c.entry;
    EXPECT_EQ(found.error().what(), c.what);
    EXPECT_EQ(found.error().code(), std::errc::invalid_argument);
  }
}

TEST(WorkerTest, ALongValueIsCut) {
  const auto found = worker(with("RANK=" + std::string(500, 'x')));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().what(),
            "RANK is '" + std::string(40, 'x') + "...', not a whole number from 0 up");
}

TEST(WorkerTest, TheStoreNeedsItsOwnTwoVariablesAlone) {
  const auto store = worker_store({"MASTER_ADDR=node0", "MASTER_PORT=1"});
  ASSERT_TRUE(store) << store.error().what();
  EXPECT_EQ(*store, (Endpoint{"node0", 1}));
}

}  // namespace
}  // namespace drun
