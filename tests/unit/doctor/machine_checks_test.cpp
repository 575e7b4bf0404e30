#include "doctor/machine_checks.hpp"

#include <sys/resource.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_directory.hpp"

namespace drun::doctor {
namespace {

using testing::HasSubstr;

MachineState good() {
  MachineState state;
  state.shm_bytes = state.shm_free = 64ULL << 30U;
  state.open_files = 1 << 20U;
  state.locked_memory = RLIM_INFINITY;
  state.processes = RLIM_INFINITY;
  state.has_rdma = true;
  state.host = "node7";
  state.host_addresses = {"10.0.0.7"};
  return state;
}

Verdict verdict_of(const MachineState& state, const facts::Sheet& sheet = {}) {
  return worst(judge_machine(state, sheet));
}

TEST(MachineChecksTest, WarnsOfEachThingThatIsTooSmall) {
  EXPECT_EQ(verdict_of(good(), {{"clock", "synchronised"}}), Verdict::Pass);
  EXPECT_EQ(verdict_of(good(), {{"clock", "not synchronised"}}), Verdict::Warn);
  auto state = good();
  state.shm_bytes = 64ULL << 20U;
  EXPECT_EQ(verdict_of(state), Verdict::Warn);
  state = good();
  state.shm_free = 1;
  EXPECT_EQ(verdict_of(state), Verdict::Warn);
  state = good();
  state.open_files = 1024;
  EXPECT_EQ(verdict_of(state), Verdict::Warn);
  state = good();
  state.processes = 100;
  EXPECT_EQ(verdict_of(state), Verdict::Warn);
  state = good();
  state.locked_memory = 65'536;
  EXPECT_EQ(verdict_of(state), Verdict::Warn);
  state.has_rdma = false;
  EXPECT_EQ(verdict_of(state), Verdict::Pass) << "nothing wants to lock it";
  state = good();
  state.host_addresses = {"127.0.1.1"};
  EXPECT_EQ(verdict_of(state), Verdict::Warn);
  state.host_addresses.clear();
  EXPECT_EQ(verdict_of(state), Verdict::Warn);
  state = good();
  state.lustre = "healthy";
  EXPECT_EQ(verdict_of(state), Verdict::Pass);
  state.lustre = "NOT HEALTHY";
  EXPECT_EQ(verdict_of(state), Verdict::Fail);
}

TEST(MachineChecksTest, EveryTroubleHasAMend) {
  MachineState state;
  state.lustre = "NOT HEALTHY";
  for (const Check& check : judge_machine(state, {{"clock", "not synchronised"}}))
    EXPECT_EQ(check.mend.empty(), check.verdict == Verdict::Pass) << check.name;
}

TEST(MachineChecksTest, TriesADisk) {
  test::TemporaryDirectory folder;
  EXPECT_NE(check_disk(folder.file("")).verdict, Verdict::Fail);
  const Check none = check_disk(folder.file("none"));
  EXPECT_EQ(none.verdict, Verdict::Fail);
  EXPECT_THAT(none.reason, HasSubstr("No such file"));
}

TEST(MachineChecksTest, TriesTheMemory) {
  EXPECT_EQ(check_memory().verdict, Verdict::Pass);
}

TEST(MachineChecksTest, LooksAtThisMachine) {
  const MachineState state = look_at_machine("");
  EXPECT_GT(state.open_files, 0U);
  EXPECT_FALSE(state.host.empty());
}

}  // namespace
}  // namespace drun::doctor
