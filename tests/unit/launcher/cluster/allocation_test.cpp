// Environments as schedulers make them, and what is read from them.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/cluster/cluster.hpp"

namespace drun::launcher::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Environment = std::vector<std::string>;
using Files = std::map<std::string, std::string>;

Environment operator+(Environment one, const Environment& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

// Where a variable is there twice, the first counts.
Environment operator-(Environment all, const std::string& name) {
  std::erase_if(all, [&](const std::string& entry) { return entry.starts_with(name + "="); });
  return all;
}

std::string text_of(const Value& value) {
  if (!value.problem.empty()) return "? " + value.problem;
  return value.text.empty() ? "-" : value.text + " (" + value.from + ")";
}

struct Asked {
  std::string which = "auto";
  std::string host = "n1";
  Files files{};
  bool nodes_given = false;
};

std::optional<Allocation> allocation_of(const Environment& environment, const Asked& asked = {}) {
  const SchedulerInput around{environment,
                              [&](const std::string& path) -> Result<std::string> {
                                const auto found = asked.files.find(path);
                                if (found == asked.files.end())
                                  return Error(
                                      std::make_error_code(std::errc::no_such_file_or_directory),
                                      "it is not there");
                                return found->second;
                              },
                              asked.host, asked.nodes_given, asked.which != "auto"};
  return find_allocation(asked.which, around);
}

// "Slurm | nodes | rank | endpoint | id", or "Slurm refuses: why".
std::string found(const Environment& environment, const Asked& asked = {}) {
  const auto allocation = allocation_of(environment, asked);
  if (!allocation) return "nothing";
  const std::string name(allocation->scheduler);
  if (!allocation->refusal.empty()) return name + " refuses: " + allocation->refusal;
  if (allocation->nodes.text == "1") return name + ": one node";
  return name + " | " + text_of(allocation->nodes) + " | " + text_of(allocation->rank) + " | " +
         text_of(allocation->endpoint) + " | " + text_of(allocation->id);
}

// ---- Slurm ----

// The second task of `srun -N2 --ntasks-per-node=1` in a job of three nodes.
const Environment kJob{"SLURM_JOB_ID=4711",          "SLURM_JOBID=4711",
                       "SLURM_JOB_NUM_NODES=3",      "SLURM_JOB_NODELIST=n[1-3]",
                       "SLURM_TASKS_PER_NODE=1(x3)", "SLURM_JOB_CPUS_PER_NODE=16(x3)"};
const Environment kStep = kJob + Environment{"SLURM_STEP_ID=0",
                                             "SLURM_STEPID=0",
                                             "SLURM_NNODES=2",
                                             "SLURM_STEP_NUM_NODES=2",
                                             "SLURM_STEP_NODELIST=n[2-3]",
                                             "SLURM_STEP_NUM_TASKS=2",
                                             "SLURM_STEP_TASKS_PER_NODE=1(x2)",
                                             "SLURM_NTASKS=2",
                                             "SLURM_NODEID=1",
                                             "SLURM_PROCID=1",
                                             "SLURM_LOCALID=0",
                                             "SLURMD_NODENAME=n3",
                                             "SLURM_LAUNCH_NODE_IPADDR=10.0.0.254",
                                             "SLURM_SRUN_COMM_HOST=10.0.0.254"};
const std::string kStepFound =
    "Slurm | 2 (SLURM_STEP_NUM_NODES) | 1 (SLURM_NODEID) | n2:24711 (SLURM_STEP_NODELIST) | "
    "4711.0 (SLURM_JOB_ID)";

TEST(PlaceTest, AStepOfSlurmIsBelieved) {
  EXPECT_EQ(found(kStep), kStepFound);
  EXPECT_EQ(found(kStep, {.which = "slurm"}), kStepFound);
  // --preserve-env leaves the job's numbers.
  EXPECT_EQ(found(Environment{"SLURM_NNODES=3", "SLURM_NTASKS=3"} + kStep), kStepFound);
  // The fewest variables.
  EXPECT_EQ(found({"SLURM_JOB_ID=4711", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_NODES=2",
                   "SLURM_STEP_NODELIST=n[2-3]", "SLURM_NODEID=1"}),
            kStepFound);
  EXPECT_EQ(found({"SLURM_JOBID=4711", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_NODES=2",
                   "SLURM_STEP_NODELIST=n[2-3]", "SLURM_NODEID=1"}),
            kStepFound);
}

TEST(PlaceTest, AJobsStepsAndRunsDiffer) {
  const auto tail = [](const Environment& environment) {
    const std::string text = found(environment);
    return text.substr(text.find("n2:"));
  };
  EXPECT_EQ(tail(Environment{"SLURM_STEP_ID=3"} + kStep),
            "n2:27711 (SLURM_STEP_NODELIST) | 4711.3 (SLURM_JOB_ID)");
  EXPECT_EQ(tail(kStep + Environment{"SLURM_RESTART_COUNT=2"}),
            "n2:24711 (SLURM_STEP_NODELIST) | 4711.0.2 (SLURM_JOB_ID)");
  EXPECT_EQ(tail(kStep + Environment{"SLURM_RESTART_COUNT=0"}),
            "n2:24711 (SLURM_STEP_NODELIST) | 4711.0 (SLURM_JOB_ID)");
  EXPECT_EQ(tail(Environment{"SLURM_JOB_ID=123456789"} + kStep),
            "n2:26789 (SLURM_STEP_NODELIST) | 123456789.0 (SLURM_JOB_ID)");
}

// With -m arbitrary the tasks' order is not the list's.
TEST(PlaceTest, TheRankIsSlurmsAndNotThePlaceInTheList) {
  EXPECT_EQ(found(Environment{"SLURM_NODEID=0", "SLURM_DISTRIBUTION=arbitrary"} + kStep),
            "Slurm | 2 (SLURM_STEP_NUM_NODES) | 0 (SLURM_NODEID) | n2:24711 (SLURM_STEP_NODELIST) "
            "| 4711.0 (SLURM_JOB_ID)");
}

// srun --het-group=0,1: the step has the nodes of both components.
TEST(PlaceTest, AStepOfAHeterogeneousJobHasAllNodes) {
  const Environment het{"SLURM_STEP_NODELIST=big1,small[1-2]",
                        "SLURM_STEP_NUM_NODES=3",
                        "SLURM_STEP_NUM_TASKS=3",
                        "SLURM_STEP_TASKS_PER_NODE=1(x3)",
                        "SLURM_NODEID=2",
                        "SLURMD_NODENAME=small2",
                        "SLURM_JOB_NODELIST=big1",
                        "SLURM_HET_SIZE=2",
                        "SLURM_JOB_NODELIST_HET_GROUP_0=big1",
                        "SLURM_JOB_NODELIST_HET_GROUP_1=small[1-2]"};
  EXPECT_EQ(found(het + kStep),
            "Slurm | 3 (SLURM_STEP_NUM_NODES) | 2 (SLURM_NODEID) | big1:24711 "
            "(SLURM_STEP_NODELIST) | 4711.0 (SLURM_JOB_ID)");
  EXPECT_EQ(allocation_of(het + kStep)->note, "");
}

TEST(PlaceTest, AStepOfOneComponentSaysThatThereAreMore) {
  const Environment het{"SLURM_STEP_NODELIST=small[1-2]", "SLURMD_NODENAME=small2",
                        "SLURM_HET_SIZE=2", "SLURM_JOB_NODELIST_HET_GROUP_0=big1",
                        "SLURM_JOB_NODELIST_HET_GROUP_1=small[1-2]"};
  EXPECT_EQ(allocation_of(het + kStep)->note,
            "this step has 2 of the 3 nodes of a heterogeneous job (SLURM_HET_SIZE=2); srun "
            "--het-group=0-1 makes one job of all");
  EXPECT_EQ(allocation_of(kStep)->note, "");
}

// The batch script has the variables of the first component.
TEST(PlaceTest, TheScriptOfAHeterogeneousJobIsRefused) {
  EXPECT_EQ(
      found({"SLURM_JOB_ID=1", "SLURM_JOB_NUM_NODES=1", "SLURM_NODEID=0", "SLURM_HET_SIZE=2",
             "SLURM_JOB_NODELIST_HET_GROUP_0=big1", "SLURM_JOB_NODELIST_HET_GROUP_1=small[1-2]"}),
      "Slurm refuses: drun was started by no srun, on one of the 3 nodes of a heterogeneous "
      "job (SLURM_HET_SIZE=2); srun --het-group=0-1 --ntasks-per-node=1 drun ... starts one "
      "on each");
}

// Nothing else tells of its nodes.
TEST(PlaceTest, SallocNamesTheComponentsAlone) {
  EXPECT_EQ(found({"SLURM_JOB_ID=44", "SLURM_HET_SIZE=2", "SLURM_JOB_NODELIST_HET_GROUP_0=n1",
                   "SLURM_JOB_NODELIST_HET_GROUP_1=n[2-3]", "SLURM_NNODES_HET_GROUP_0=1",
                   "SLURM_NNODES_HET_GROUP_1=2", "SLURM_TASKS_PER_NODE_HET_GROUP_0=1",
                   "SLURM_TASKS_PER_NODE_HET_GROUP_1=1(x2)"}),
            "Slurm refuses: drun was started by no srun, on one of the 3 nodes of a heterogeneous "
            "job (SLURM_HET_SIZE=2); srun --het-group=0-1 --ntasks-per-node=1 drun ... starts one "
            "on each");
}

// srun gives each component its own tasks, whatever --ntasks-per-node says.
TEST(PlaceTest, ComponentsWithSeveralTasksAreStartedOneByOne) {
  const Environment het{"SLURM_JOB_ID=1",
                        "SLURM_JOB_NUM_NODES=1",
                        "SLURM_HET_SIZE=3",
                        "SLURM_JOB_NODELIST_HET_GROUP_0=big1",
                        "SLURM_JOB_NODELIST_HET_GROUP_1=small[1-2]",
                        "SLURM_JOB_NODELIST_HET_GROUP_2=n[1-3]",
                        "SLURM_NTASKS_HET_GROUP_0=1",
                        "SLURM_NTASKS_HET_GROUP_1=4",
                        "SLURM_NTASKS_HET_GROUP_2=5",
                        "SLURM_TASKS_PER_NODE_HET_GROUP_0=1",
                        "SLURM_TASKS_PER_NODE_HET_GROUP_1=2(x2)",
                        "SLURM_TASKS_PER_NODE_HET_GROUP_2=2(x2),1"};
  const std::string line =
      "srun --het-group=0 --nodes=1 --ntasks=1 --ntasks-per-node=1 drun ... : --het-group=1 "
      "--nodes=2 --ntasks=2 --ntasks-per-node=1 drun --nproc-per-node 2 ... : --het-group=2 "
      "--nodes=3 --ntasks=3 --ntasks-per-node=1 drun --nproc-per-node N ...";
  EXPECT_EQ(found(het),
            "Slurm refuses: drun was started by no srun, on one of the 6 nodes of a heterogeneous "
            "job (SLURM_HET_SIZE=3), some of which have several tasks; this starts one on each: " +
                line);
  EXPECT_FALSE(allocation_of(het)->start);
  // Tasks that nobody has asked for.
  const auto as_many =
      allocation_of(het - "SLURM_NTASKS_HET_GROUP_1" - "SLURM_NTASKS_HET_GROUP_2")->start;
  EXPECT_THAT(as_many->words, testing::Contains("--het-group=0-2"));
  // In a step of such a job, too.
  EXPECT_THAT(
      found(
          Environment{"SLURM_STEP_NUM_TASKS=3", "SLURM_STEP_TASKS_PER_NODE=1,2", "SLURM_PROCID=0"} +
          (het + kStep)),
      ::testing::EndsWith("one drun starts all workers of a node; start one on each: " + line));
}

TEST(PlaceTest, AHeterogeneousJobThatCannotBeReadIsNoJobOfOneComponent) {
  const Environment het{"SLURM_JOB_ID=1", "SLURM_JOB_NUM_NODES=1", "SLURM_HET_SIZE=2",
                        "SLURM_JOB_NODELIST_HET_GROUP_0=big1",
                        "SLURM_JOB_NODELIST_HET_GROUP_1=small[1-2]"};
  const std::string refusal =
      "Slurm refuses: drun was started by no srun, in a heterogeneous job of Slurm whose nodes "
      "cannot be told: ";
  EXPECT_EQ(found(het - "SLURM_JOB_NODELIST_HET_GROUP_1"),
            refusal + "SLURM_JOB_NODELIST_HET_GROUP_1 (not set): expected a list of hosts");
  EXPECT_EQ(found(Environment{"SLURM_JOB_NODELIST_HET_GROUP_0=n[1-"} + het),
            refusal + "SLURM_JOB_NODELIST_HET_GROUP_0='n[1-': 'n[1-' lacks a ']'");
  for (const std::string size : {"two", "-1", "1001", "99999999999"})
    EXPECT_EQ(found(Environment{"SLURM_HET_SIZE=" + size} + het),
              refusal + "SLURM_HET_SIZE='" + size + "': expected a whole number up to 1000");
  for (const std::string size : {"0", "1", ""})
    EXPECT_EQ(found(Environment{"SLURM_HET_SIZE=" + size} + het), "Slurm: one node") << size;
  // A step is a job of its own, which may be what is wanted.
  EXPECT_EQ(found(kStep + Environment{"SLURM_HET_SIZE=2"}), kStepFound);
  // `srun -N1 drun : -N2 drun` at a prompt makes the job and its step, with all nodes.
  EXPECT_EQ(allocation_of(kStep + Environment{"SLURM_HET_SIZE=2"})->note, "");
  EXPECT_EQ(allocation_of(kStep +
                          Environment{"SLURM_HET_SIZE=2", "SLURM_JOB_NODELIST_HET_GROUP_1=n[1-2]"})
                ->note,
            "whether this step has all nodes of its heterogeneous job cannot be told: "
            "SLURM_JOB_NODELIST_HET_GROUP_0 (not set): expected a list of hosts");
}

TEST(PlaceTest, OneNodeOfSlurmIsOneNode) {
  const Environment one{"SLURM_STEP_NUM_NODES=1", "SLURM_STEP_NODELIST=n3",
                        "SLURM_STEP_NUM_TASKS=1", "SLURM_STEP_TASKS_PER_NODE=1", "SLURM_NODEID=0"};
  EXPECT_EQ(found(one + kStep), "Slurm: one node");
  EXPECT_EQ(found((one + kStep) - "SLURM_STEP_NODELIST"), "Slurm: one node");
  // The batch script of one node, and a shell of salloc.
  EXPECT_EQ(found({"SLURM_JOB_ID=1", "SLURM_JOB_NUM_NODES=1", "SLURM_NODEID=0", "SLURM_PROCID=0"}),
            "Slurm: one node");
  EXPECT_EQ(found({"SLURM_JOB_ID=1", "SLURM_NNODES=1"}), "Slurm: one node");
}

// sbatch and salloc, called in a step, leave its variables to what they start.
TEST(PlaceTest, VariablesOfAStepAroundTheJobAreNotItsOwn) {
  const auto under = [](const std::string& title, const Environment& environment) {
    return found(environment, {.files = {{"/proc/self/stat", "77 (drun (a) ) S 76 77 77"},
                                         {"/proc/76/cmdline", std::string("bash\0script\0", 12)},
                                         {"/proc/76/stat", "76 (bash) S 75 77 77"},
                                         {"/proc/75/cmdline", title},
                                         {"/proc/75/stat", "75 (x) S 1 77 77"},
                                         {"/proc/1/cmdline", "init"},
                                         {"/proc/1/stat", "1 (init) S 0 1 1"}}});
  };
  const std::string refused =
      "Slurm refuses: the job has 3 nodes (SLURM_JOB_NUM_NODES), and drun was started on one of "
      "them, by no srun; ";
  for (const char* title : {"slurmstepd: [4711.batch]", "slurmstepd: [4711.interactive]",
                            "slurmstepd: [4711.extern]", "slurmstepd: [4710.0]"})
    EXPECT_THAT(under(title, kStep), StartsWith(refused)) << title;
  for (const char* title : {"slurmstepd: [4711.0]", "slurmstepd: [4711.0", "slurmstepd: []",
                            "slurmstepd: [4711.0+1]", "slurmstepd: [a.batch]", "sshd: me", ""})
    EXPECT_EQ(under(title, kStep), kStepFound) << title;
  EXPECT_EQ(under("slurmstepd: [4711.0]", Environment{"SLURM_HET_SIZE="} + kStep), kStepFound);
}

// `srun -N2 --pty bash`, and drun in it.
TEST(PlaceTest, TheShellOfOneTaskIsNoPlaceForAll) {
  const auto note = [](const std::string& parent, const Environment& environment) {
    return allocation_of(environment, {.files = {{"/proc/self/stat", "77 (drun) S 76 77 77"},
                                                 {"/proc/76/cmdline", parent}}})
        ->note;
  };
  const Environment pty = kStep + Environment{"SLURM_PTY_PORT=39757"};
  for (const std::string& shell : {std::string("bash\0", 5), std::string("-bash\0", 6),
                                   std::string("/bin/zsh\0-i\0--norc\0", 19)})
    EXPECT_EQ(note(shell, pty),
              "this is the shell of one of the step's 2 tasks (SLURM_PTY_PORT), and drun waits for "
              "one that nobody starts in the others; type srun --overlap --nodes=2 --ntasks=2 drun "
              "..., or begin with salloc instead of srun --pty");
  // A script is run by all tasks; `srun --pty drun` is one.
  for (const std::string& parent :
       {std::string("bash\0job.sh\0", 12), std::string("sh\0-c\0drun x\0", 13),
        std::string("slurmstepd: [4711.0]\0", 21), std::string("python3\0", 8), std::string()})
    EXPECT_EQ(note(parent, pty), "") << parent;
  EXPECT_EQ(note(std::string("bash\0", 5), kStep), "");
  EXPECT_EQ(allocation_of(pty)->note, "");
}

TEST(PlaceTest, OutsideOfStepsSlurmRefuses) {
  const std::string refusal =
      "Slurm refuses: the job has 3 nodes (SLURM_JOB_NUM_NODES), and drun was started on one of "
      "them, by no srun; start it on each: srun --nodes=3 --ntasks=3 --ntasks-per-node=1";
  const Environment batch =
      kJob + Environment{"SLURM_NNODES=3",  "SLURM_NODEID=0", "SLURM_PROCID=0",
                         "SLURM_LOCALID=0", "SLURM_GTIDS=0",  "SLURMD_NODENAME=n1"};
  EXPECT_EQ(found(batch), refusal + " drun ...");
  const Environment asked = Environment{"SLURM_TASKS_PER_NODE=8(x3)", "SLURM_NTASKS=24"} + batch;
  EXPECT_EQ(found(asked), refusal + " --cpus-per-task=8 drun --nproc-per-node 8 ...");
  EXPECT_EQ(found(asked + Environment{"SLURM_CPUS_PER_TASK=4"}),
            refusal + " --cpus-per-task=32 drun --nproc-per-node 8 ...");
  EXPECT_EQ(
      found(Environment{"SLURM_TASKS_PER_NODE=2(x3)", "SLURM_NTASKS=6", "SLURM_NTASKS_PER_GPU=1"} +
            batch),
      "Slurm refuses: the job has 3 nodes (SLURM_JOB_NUM_NODES), and drun was started on one "
      "of them, by no srun; start it on each: env -u SLURM_NTASKS_PER_GPU srun --nodes=3 "
      "--ntasks=3 --ntasks-per-node=1 --cpus-per-task=2 drun --nproc-per-node 2 ...");
  // The step has all that the tasks have together.
  const std::string refused =
      "Slurm refuses: the job has 3 nodes (SLURM_JOB_NUM_NODES), and drun was started on one "
      "of them, by no srun; start it on each: ";
  const std::string each = "srun --nodes=3 --ntasks=3 --ntasks-per-node=1";
  const Environment two = Environment{"SLURM_TASKS_PER_NODE=2(x3)", "SLURM_NTASKS=6"} + batch;
  EXPECT_EQ(found(two + Environment{"SLURM_GPUS_PER_TASK=1", "SLURM_GPUS_ON_NODE=2"}),
            refused + "env -u SLURM_GPUS_PER_TASK " + each +
                " --cpus-per-task=2 --gpus-per-node=2 drun --nproc-per-node 2 ...");
  EXPECT_EQ(found(two + Environment{"SLURM_TRES_PER_TASK=cpu:1,gres/gpu:2", "SLURM_GPUS_ON_NODE=4",
                                    "SLURM_GPUS_PER_TASK=2"}),
            refused + "env -u SLURM_GPUS_PER_TASK -u SLURM_TRES_PER_TASK " + each +
                " --cpus-per-task=2 --gpus-per-node=4 drun --nproc-per-node 2 ...");
  EXPECT_EQ(found(two + Environment{"SLURM_TRES_PER_TASK=cpu:1", "SLURM_GPUS_ON_NODE=4"}),
            refused + each + " --cpus-per-task=2 drun --nproc-per-node 2 ...");
  EXPECT_EQ(found(batch + Environment{"SLURM_GPUS_PER_TASK=2", "SLURM_GPUS_ON_NODE=2"}),
            refused + "env -u SLURM_GPUS_PER_TASK " + each + " drun ...");
  EXPECT_EQ(found(two + Environment{"SLURM_CPUS_PER_GPU=2"}),
            refused + each + " --cpus-per-task=16 drun --nproc-per-node 2 ...");
  EXPECT_EQ(found(Environment{"SLURM_JOB_CPUS_PER_NODE=4(x2),8"} +
                  (two + Environment{"SLURM_CPUS_PER_GPU=2"})),
            refused + each + " drun --nproc-per-node 2 ...");
  EXPECT_EQ(found(two + Environment{"SLURM_CPUS_PER_GPU=2", "SLURM_CPUS_PER_TASK=3"}),
            refused + each + " --cpus-per-task=6 drun --nproc-per-node 2 ...");
  EXPECT_EQ(found(two + Environment{"SLURM_DISTRIBUTION=arbitrary", "SLURM_HOSTFILE=/tmp/h"}),
            refused + "env -u SLURM_DISTRIBUTION -u SLURM_HOSTFILE " + each +
                " --cpus-per-task=2 drun --nproc-per-node 2 ...");
  EXPECT_EQ(found(two + Environment{"SLURM_DISTRIBUTION=block"}),
            refused + each + " --cpus-per-task=2 drun --nproc-per-node 2 ...");
  // sbatch --nodes=3 --exclusive: what the nodes have, and nobody has asked for.
  EXPECT_EQ(found(asked - "SLURM_NTASKS"), refusal + " drun ...");
  EXPECT_EQ(found(batch + Environment{"SLURM_CPUS_PER_TASK=4"}),
            refusal + " --cpus-per-task=4 drun ...");
  // The steps of the batch script, of salloc's shell, of an ssh login, and one that waits.
  for (const char* step : {"4294967291", "4294967290", "4294967292", "4294967293"})
    EXPECT_EQ(found(Environment{std::string("SLURM_STEP_ID=") + step, "SLURM_STEP_NUM_NODES=1",
                                "SLURM_STEP_NODELIST=n1"} +
                    batch),
              refusal + " drun ...")
        << step;
}

// sbatch --nodes=3 --ntasks=4: no number of CPUs and none of workers is right for all nodes.
TEST(PlaceTest, UnevenTasksOfAJobAreNamedNodeByNode) {
  const auto uneven = [](const std::string& tasks, const std::string& list = "n[1-3]") {
    const auto allocation =
        allocation_of(Environment{"SLURM_TASKS_PER_NODE=" + tasks, "SLURM_JOB_NODELIST=" + list,
                                  "SLURM_NTASKS=9", "SLURM_CPUS_PER_TASK=4"} +
                      kJob);
    const auto end = allocation->start->uneven.find("drun --launcher");
    EXPECT_EQ(allocation->start->workers, 0);
    return end == std::string::npos ? allocation->start->uneven
                                    : allocation->start->uneven.substr(end);
  };
  EXPECT_THAT(found(Environment{"SLURM_TASKS_PER_NODE=2(x2),1", "SLURM_NTASKS=5"} + kJob),
              ::testing::EndsWith("start it on each: srun --nodes=3 --ntasks=3 "
                                  "--ntasks-per-node=1 drun --nproc-per-node N ..."));
  EXPECT_EQ(uneven("2(x2),1"), "drun --launcher srun -H n[1-2]:2,n3:1 ...");
  EXPECT_EQ(uneven("1,2(x2)"), "drun --launcher srun -H n1:1,n[2-3]:2 ...");
  EXPECT_EQ(uneven("2,1,2"), "drun --launcher srun -H n1:2,n2:1,n3:2 ...");
  EXPECT_EQ(uneven("4(x2),1", "a,b1,n[08]"), "drun --launcher srun -H a:4,b1:4,n08:1 ...");
  EXPECT_EQ(uneven("2(x2),1", "n[1-4]"), "drun --launcher srun -H NODE:TASKS,... ...");
  EXPECT_EQ(uneven("2(x2),1", "n[1-"), "drun --launcher srun -H NODE:TASKS,... ...");
  EXPECT_THAT(allocation_of(Environment{"SLURM_TASKS_PER_NODE=2(x2),1", "SLURM_NTASKS=5"} + kJob)
                  ->start->uneven,
              StartsWith("SLURM_TASKS_PER_NODE='2(x2),1': the nodes of the job have different "
                         "numbers of tasks; say how many workers each node gets, with "
                         "--nproc-per-node, or start as many as tasks: drun "));
  // What cannot be read says nothing.
  for (const char* tasks : {"2(x2)1", "2(x", "x", "2(x0),1", "0(x3)", "2(x999999999),1", "2(3)"})
    EXPECT_EQ(uneven(tasks), "") << tasks;
}

TEST(PlaceTest, SeveralTasksOnANodeAreRefused) {
  const Environment eight{"SLURM_STEP_NUM_TASKS=16", "SLURM_STEP_TASKS_PER_NODE=8(x2)",
                          "SLURM_PROCID=0"};
  EXPECT_EQ(found(eight + kStep - "SLURM_PROCID" + Environment{"SLURM_PROCID=1"}),
            "Slurm refuses: srun started several tasks on a node, and one drun starts all workers "
            "of a node: task 0 says what to type");
  const std::string command =
      "but one drun starts all workers of a node; start one on each: srun --nodes=2 --ntasks=2 "
      "--ntasks-per-node=1 ";
  EXPECT_EQ(found(eight + kStep),
            "Slurm refuses: srun started several tasks on a node (SLURM_STEP_NUM_TASKS='16' on 2 "
            "nodes), " +
                command + "--cpus-per-task=8 drun --nproc-per-node 8 ...");
  EXPECT_EQ(found(Environment{"SLURM_CPUS_PER_TASK=4"} + eight + kStep),
            "Slurm refuses: srun started several tasks on a node (SLURM_STEP_NUM_TASKS='16' on 2 "
            "nodes), " +
                command + "--cpus-per-task=32 drun --nproc-per-node 8 ...");
  EXPECT_EQ(
      found(Environment{"SLURM_STEP_TASKS_PER_NODE=2,1", "SLURM_PROCID=0"} +
            (kStep - "SLURM_STEP_NUM_TASKS")),
      "Slurm refuses: srun started several tasks on a node (SLURM_STEP_TASKS_PER_NODE='2,1' "
      "on 2 nodes), " +
          command +
          "drun --nproc-per-node N ..., or, in a job of sbatch or salloc, with as many workers as "
          "tasks and without srun: drun --launcher srun -H n2:2,n3:1 ...");
  EXPECT_THAT(found(Environment{"SLURM_LOCALID=3", "SLURM_PROCID=0"} +
                    ((kStep - "SLURM_STEP_NUM_TASKS") - "SLURM_STEP_TASKS_PER_NODE")),
              HasSubstr("several tasks on a node (SLURM_LOCALID='3' on 2 nodes)"));
  // On one node, too: each would be a job of its own.
  EXPECT_THAT(
      found(Environment{"SLURM_STEP_NUM_NODES=1", "SLURM_STEP_NODELIST=n3",
                        "SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_TASKS_PER_NODE=4", "SLURM_PROCID=0"} +
            kStep),
      AllOf(StartsWith("Slurm refuses: "), HasSubstr("='4' on 1 node)"),
            HasSubstr("srun --nodes=1 --ntasks=1 ")));
  // Also where the step does not say which node that is.
  EXPECT_THAT(found((Environment{"SLURM_STEP_NUM_NODES=1", "SLURM_STEP_NUM_TASKS=4",
                                 "SLURM_STEP_TASKS_PER_NODE=4", "SLURM_PROCID=0"} +
                     kStep) -
                    "SLURM_STEP_NODELIST"),
              HasSubstr("='4' on 1 node)"));
}

TEST(PlaceTest, WhatSlurmDoesNotSayIsNamed) {
  const auto nodes = [](const Environment& environment) {
    return allocation_of(environment)->nodes.problem;
  };
  EXPECT_EQ(nodes(kStep - "SLURM_STEP_NUM_NODES"), "SLURM_STEP_NUM_NODES is not set");
  EXPECT_EQ(nodes(Environment{"SLURM_STEP_NUM_NODES=two"} + kStep),
            "SLURM_STEP_NUM_NODES='two': expected a whole number from 1");
  EXPECT_EQ(nodes(Environment{"SLURM_STEP_NUM_NODES=0"} + kStep),
            "SLURM_STEP_NUM_NODES='0': expected a whole number from 1");
  EXPECT_EQ(nodes(Environment{"SLURM_STEP_NUM_NODES=-2"} + kStep),
            "SLURM_STEP_NUM_NODES='-2': expected a whole number from 1");
  EXPECT_EQ(nodes(Environment{"SLURM_STEP_NUM_NODES=99999999999"} + kStep),
            "SLURM_STEP_NUM_NODES='99999999999': expected a whole number from 1");
  EXPECT_EQ(nodes(kStep - "SLURM_STEP_NODELIST"),
            "SLURM_STEP_NODELIST (not set): expected a list of hosts");
  EXPECT_EQ(nodes(Environment{"SLURM_STEP_NODELIST="} + kStep),
            "SLURM_STEP_NODELIST='': expected a list of hosts");
  EXPECT_EQ(nodes(Environment{"SLURM_STEP_NODELIST=n[2-"} + kStep),
            "SLURM_STEP_NODELIST='n[2-': 'n[2-' lacks a ']'");
  EXPECT_EQ(nodes(Environment{"SLURM_STEP_NODELIST=n[2-4]"} + kStep),
            "SLURM_STEP_NODELIST='n[2-4]' names 3 nodes, and SLURM_STEP_NUM_NODES is 2");
  EXPECT_EQ(nodes(Environment{"SLURM_STEP_NODELIST=n[1-2]"} + kStep),
            "SLURM_STEP_NODELIST='n[1-2]' lacks this node, SLURMD_NODENAME='n3': these are the "
            "variables of another step");
  EXPECT_EQ(nodes(Environment{"SLURM_STEP_ID=batch"} + kStep),
            "SLURM_STEP_ID='batch': expected a whole number");
  EXPECT_EQ(nodes({"SLURM_JOB_ID=1"}),
            "a job of Slurm whose size cannot be told: neither SLURM_STEP_ID, of a step, nor "
            "SLURM_JOB_NUM_NODES, of a script, is set");
  EXPECT_EQ(allocation_of(kStep - "SLURM_NODEID")->rank.problem, "SLURM_NODEID is not set");
  EXPECT_EQ(allocation_of(Environment{"SLURM_NODEID=2"} + kStep)->rank.problem,
            "SLURM_NODEID='2': there are 2 nodes (SLURM_STEP_NUM_NODES)");
  EXPECT_EQ(allocation_of(Environment{"SLURM_JOB_ID=x"} + kStep)->endpoint.problem,
            "SLURM_JOB_ID='x': expected a whole number");
}

// Whichever variable is missing: the scheduler is there, and the one that is needed is named.
TEST(PlaceTest, NoVariableThatIsMissingMakesAJobOfOneNode) {
  const Files files{{"/nodes", "n1\nn2\n"}};
  const std::vector<Environment> all{
      {"SLURM_JOB_ID=4711", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_NODES=2",
       "SLURM_STEP_NODELIST=n[1-2]", "SLURM_NODEID=1"},
      {"KUBERNETES_SERVICE_HOST=h", "MASTER_ADDR=m", "MASTER_PORT=1", "WORLD_SIZE=2", "RANK=1"},
      {"LWS_LEADER_ADDRESS=l", "LWS_GROUP_SIZE=2", "LWS_WORKER_INDEX=1"},
      {"FLUX_JOB_ID=f", "FLUX_JOB_NNODES=2", "FLUX_TASK_RANK=1"},
      {"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1", "OMPI_MCA_orte_hnp_uri=1.0;tcp://h:1"},
      {"JSM_NAMESPACE_SIZE=2", "JSM_NAMESPACE_RANK=1", "LSB_JOBID=1", "LSB_MCPU_HOSTS=n1 1 n2 1"},
      {"LSB_JOBID=1", "LSB_MCPU_HOSTS=n1 1 n2 1"},
      {"PBS_ENVIRONMENT=PBS_BATCH", "PBS_JOBID=1", "PBS_NODEFILE=/nodes"},
      {"JOB_ID=1", "PE_HOSTFILE=/nodes"},
      {"SM_HOSTS=[\"a\",\"b\"]", "SM_CURRENT_HOST=b"},
      {"LEPTON_JOB_WORKER_PREFIX=j", "LEPTON_SUBDOMAIN=s", "LEPTON_JOB_TOTAL_WORKERS=2",
       "LEPTON_JOB_WORKER_INDEX=1"},
  };
  for (const Environment& whole : all) {
    for (const std::string& entry : whole) {
      const std::string name = entry.substr(0, entry.find('='));
      // Without these there is no such scheduler.
      if (name == "KUBERNETES_SERVICE_HOST" || name == "PE_HOSTFILE") continue;
      const Asked asked{.host = "n2", .files = files};
      for (const Environment& broken : {whole - name, Environment{name + "="} + whole}) {
        const std::string text = found(broken, asked);
        EXPECT_NE(text, "nothing") << name;
        EXPECT_THAT(text, Not(HasSubstr("one node"))) << name;
      }
    }
  }
  EXPECT_EQ(allocation_of(kStep - "SLURM_STEP_ID")->nodes.problem,
            "SLURM_STEP_ID (not set): expected a whole number");
  EXPECT_EQ(allocation_of((kStep - "SLURM_JOB_ID") - "SLURM_JOBID")->endpoint.problem,
            "SLURM_JOB_ID (not set): expected a whole number");
}

TEST(PlaceTest, WhatIsShownOfAVariableIsOneShortLine) {
  const std::string problem =
      allocation_of(Environment{"SLURM_STEP_NODELIST=\x1b[2J\n" + std::string(500, 'x')} + kStep)
          ->nodes.problem;
  EXPECT_THAT(problem, Not(HasSubstr("\x1b")));
  EXPECT_THAT(problem, Not(HasSubstr("\n")));
  EXPECT_LT(problem.size(), 400U);
}

// ---- MPI ----

const Environment kOpenMpi4{"OMPI_COMM_WORLD_SIZE=2",
                            "OMPI_COMM_WORLD_RANK=1",
                            "OMPI_COMM_WORLD_LOCAL_RANK=0",
                            "OMPI_COMM_WORLD_LOCAL_SIZE=1",
                            "OMPI_COMM_WORLD_NODE_RANK=0",
                            "OMPI_UNIVERSE_SIZE=2",
                            "OMPI_MCA_orte_hnp_uri=2189492224.0;tcp://10.0.0.1,192.168.1.1:39877",
                            "OMPI_MCA_orte_local_daemon_uri=2189492224.1;tcp://10.0.0.2:41233",
                            "PMIX_NAMESPACE=2189492225",
                            "PMIX_RANK=1"};
const Environment kOpenMpi5{"OMPI_COMM_WORLD_SIZE=2",
                            "OMPI_COMM_WORLD_RANK=1",
                            "OMPI_COMM_WORLD_LOCAL_RANK=0",
                            "OMPI_COMM_WORLD_LOCAL_SIZE=1",
                            "PRTE_LAUNCHED=1",
                            "PMIX_NAMESPACE=prterun-gpu-01-12345@1",
                            "PMIX_RANK=1"};
const Environment kHydra{"PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=1",
                         "PMI_HOSTNAME=n2"};

TEST(PlaceTest, OpenMpiMeetsAtMpirun) {
  EXPECT_EQ(found(kOpenMpi4),
            "Open MPI | 2 (OMPI_COMM_WORLD_SIZE) | 1 (OMPI_COMM_WORLD_RANK) | 10.0.0.1:22224 "
            "(OMPI_MCA_orte_hnp_uri) | 2189492224 (OMPI_MCA_orte_hnp_uri)");
  EXPECT_THAT(
      found(Environment{"OMPI_MCA_orte_hnp_uri=17.0;tcp6://[fe80::1,fe80::2]:39877"} + kOpenMpi4),
      HasSubstr("| [fe80::1]:20017 ("));
  EXPECT_THAT(found(Environment{"OMPI_MCA_orte_hnp_uri=17.0;tcp6://[fd00::1]:39877"} + kOpenMpi4),
              HasSubstr("| [fd00::1]:20017 ("));
  EXPECT_THAT(found(kOpenMpi5), HasSubstr("| 1 (OMPI_COMM_WORLD_RANK) | gpu-01:"));
  EXPECT_THAT(found(kOpenMpi5),
              HasSubstr("(PMIX_NAMESPACE) | prterun-gpu-01-12345@1 (PMIX_NAMESPACE)"));
}

TEST(PlaceTest, WhereMpirunIsElsewhereRankZeroSaysSo) {
  const std::string elsewhere = "mpirun runs on another host than rank 0 (";
  const Environment first{"OMPI_COMM_WORLD_RANK=0"};
  EXPECT_THAT(found(first + kOpenMpi4), HasSubstr("? " + elsewhere + "OMPI_MCA_orte_hnp_uri="));
  EXPECT_THAT(found(first +
                    Environment{"OMPI_MCA_orte_local_daemon_uri=2189492224.0;tcp://"
                                "10.0.0.1,192.168.1.1:39877"} +
                    kOpenMpi4),
              HasSubstr("| 10.0.0.1:22224 ("));
  EXPECT_THAT(found(first + kOpenMpi5, {.host = "gpu-02"}),
              HasSubstr("? " + elsewhere + "PMIX_NAMESPACE="));
  EXPECT_THAT(found(first + kOpenMpi5, {.host = "gpu-01.cluster"}), HasSubstr("| gpu-01:"));
}

// prterun sets no size.
TEST(PlaceTest, PrrteAloneIsNoJobOfOneNode) {
  const Environment prte{"PRTE_LAUNCHED=1", "PMIX_NAMESPACE=prterun-n1-17@1", "PMIX_RANK=1"};
  EXPECT_EQ(allocation_of(prte)->nodes.problem, "OMPI_COMM_WORLD_SIZE is not set");
  EXPECT_EQ(allocation_of(prte - "PRTE_LAUNCHED")->nodes.problem,
            "OMPI_COMM_WORLD_SIZE is not set");
  EXPECT_EQ(found({"PMIX_NAMESPACE=slurm.pmix.4711.0", "PMIX_RANK=1"}), "nothing");
}

TEST(PlaceTest, TheVariablesOfMpirunGoBeforeThoseOfTheStepOfItsDaemons) {
  EXPECT_EQ(found(Environment{"SLURM_JOB_NODELIST=n[1-2]", "SLURM_STEP_NUM_NODES=1",
                              "SLURM_STEP_NODELIST=n2", "SLURM_NODEID=0"} +
                  kOpenMpi4 + kStep),
            "Open MPI | 2 (OMPI_COMM_WORLD_SIZE) | 1 (OMPI_COMM_WORLD_RANK) | n1:24711 "
            "(SLURM_JOB_NODELIST) | 4711 (SLURM_JOB_ID)");
  // mpirun uses fewer nodes than the job has: the first may not be one of them.
  EXPECT_THAT(found(kOpenMpi4 + kStep), HasSubstr("| 10.0.0.1:22224 ("));
  EXPECT_THAT(found(kHydra + kStep),
              HasSubstr("? it does not say where the nodes are, and no batch system"));
  // srun's PMI is none of Hydra's.
  EXPECT_EQ(found(kStep + Environment{"PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=5"}), kStepFound);
}

TEST(PlaceTest, TheBatchSystemAroundMpiexecKnowsTheHosts) {
  const Environment pbs{"PBS_ENVIRONMENT=PBS_BATCH", "PBS_JOBID=17.server", "PBS_NODEFILE=/nodes"};
  EXPECT_EQ(
      found(kHydra + pbs, {.files = {{"/nodes", "n1\nn1\nn2\nn2\n"}}}),
      "Hydra | 2 (PMI_SIZE) | 1 (PMI_RANK) | n1:20017 (PBS_NODEFILE) | 17.server (PBS_JOBID)");
  EXPECT_THAT(found(kHydra + pbs),
              HasSubstr("and PBS_NODEFILE='/nodes': this file cannot be read: it is not there"));
  EXPECT_THAT(found(kHydra + pbs, {.files = {{"/nodes", "n1\nn2\nn3\n"}}}),
              HasSubstr("and PBS_NODEFILE has another number of hosts"));
  EXPECT_EQ(found(kHydra + Environment{"LSB_JOBID=9", "LSB_MCPU_HOSTS=a1 4 a2 4"}),
            "Hydra | 2 (PMI_SIZE) | 1 (PMI_RANK) | a1:20009 (LSB_MCPU_HOSTS) | 9 (LSB_JOBID)");
  EXPECT_EQ(found({"MV2_COMM_WORLD_SIZE=2", "MV2_COMM_WORLD_RANK=0", "LSB_JOBID=9",
                   "LSB_MCPU_HOSTS=a1 4 a2 4"}),
            "MVAPICH2 | 2 (MV2_COMM_WORLD_SIZE) | 0 (MV2_COMM_WORLD_RANK) | a1:20009 "
            "(LSB_MCPU_HOSTS) | 9 (LSB_JOBID)");
  EXPECT_EQ(
      found(Environment{"PALS_RANKID=1", "PALS_LOCAL_RANKID=0", "PMI_RANK=1", "PMI_SIZE=2"} + pbs,
            {.files = {{"/nodes", "x1\nx2\n"}}}),
      "PALS | 2 (PMI_SIZE) | 1 (PALS_RANKID) | x1:20017 (PBS_NODEFILE) | 17.server "
      "(PBS_JOBID)");
  // LSF's first host is where jsrun was started.
  EXPECT_EQ(found({"JSM_NAMESPACE_SIZE=2", "JSM_NAMESPACE_RANK=1", "JSM_NAMESPACE_LOCAL_RANK=0",
                   "LSB_JOBID=9", "LSB_MCPU_HOSTS=batch1 1 a1 42 a2 42"}),
            "jsrun | 2 (JSM_NAMESPACE_SIZE) | 1 (JSM_NAMESPACE_RANK) | a1:20009 (LSB_MCPU_HOSTS) "
            "| 9 (LSB_JOBID)");
  // Half of what it says is enough to know it by.
  EXPECT_EQ(found({"JSM_NAMESPACE_SIZE=2", "LSB_JOBID=9", "LSB_MCPU_HOSTS=batch1 1 a1 42 a2 42"}),
            "jsrun | 2 (JSM_NAMESPACE_SIZE) | ? JSM_NAMESPACE_RANK is not set | a1:20009 "
            "(LSB_MCPU_HOSTS) | 9 (LSB_JOBID)");
}

// Where the launcher passes on a word, that is sure: a list may be known to some tasks alone.
TEST(PlaceTest, TasksOfHydraAndFluxMayTellOneAnother) {
  const auto hydra =
      allocation_of(kHydra + Environment{"PMI_FD=6", "LSB_JOBID=9", "LSB_MCPU_HOSTS=a 1 b 1"});
  EXPECT_EQ(hydra->pmi_fd, 6);
  EXPECT_EQ(hydra->pmi_host, "n2");
  EXPECT_EQ(hydra->endpoint.problem, "PMI_FD did not tell it");
  EXPECT_EQ(
      allocation_of(kHydra + Environment{"PMI_FD=6", "MPIR_CVAR_CH3_INTERFACE_HOSTNAME=n2-ib"})
          ->pmi_host,
      "n2-ib");
  const auto flux =
      allocation_of({"FLUX_JOB_ID=f2Xyz", "FLUX_JOB_NNODES=2", "FLUX_TASK_RANK=1", "PMI_FD=8"});
  EXPECT_EQ(flux->pmi_fd, 8);
  EXPECT_EQ(flux->pmi_host, "n1");
  for (const char* none : {"PMI_FD=", "PMI_FD=x", "PMI_FD=2", "PMI_FD=-1"})
    EXPECT_FALSE(allocation_of(kHydra + Environment{none})->pmi_fd) << none;
  EXPECT_EQ(endpoint_of("n2", "kvs"), endpoint_of("n2", "kvs"));
  EXPECT_EQ(endpoint_of("fd00::1", "12_x"), "[fd00::1]:20012");
}

// All take the same one, which is no bridge's: those are the same on each host.
TEST(PlaceTest, MpirunsAddressIsOneOfItsHostAlone) {
  const auto met = [](const std::string& theirs, const std::string& own) {
    const auto allocation =
        allocation_of(Environment{"OMPI_MCA_orte_hnp_uri=1.0;tcp://" + theirs + ":39877",
                                  "OMPI_MCA_orte_local_daemon_uri=1.1;tcp://" + own + ":4"} +
                      kOpenMpi4);
    return allocation->endpoint.text;
  };
  EXPECT_EQ(met("172.17.0.1,10.0.0.1", "172.17.0.1,10.0.0.2"), "10.0.0.1:20001");
  EXPECT_EQ(met("192.168.122.1,169.254.3.4,10.0.0.1,10.1.0.1", "10.0.0.2"), "10.0.0.1:20001");
  EXPECT_EQ(met("172.17.0.1", "10.0.0.2"), "172.17.0.1:20001");
  EXPECT_EQ(met("192.168.5.1,10.0.0.1", "192.168.5.1,10.0.0.2"), "");
  EXPECT_EQ(
      allocation_of(Environment{"OMPI_MCA_orte_local_daemon_uri=1.1;tcp://10.0.0.1:4"} + kOpenMpi4)
          ->endpoint.problem,
      "OMPI_MCA_orte_hnp_uri='2189492224.0;tcp://10.0.0.1,192.168.1.1:39877': this host has "
      "the address 10.0.0.1 as well");
}

TEST(PlaceTest, SeveralTasksOfMpirunAreRefused) {
  EXPECT_EQ(found(Environment{"OMPI_COMM_WORLD_LOCAL_SIZE=4"} + kOpenMpi4),
            "Open MPI refuses: Open MPI started 4 tasks on this node (OMPI_COMM_WORLD_LOCAL_SIZE), "
            "but one drun starts all workers of a node; start one on each: mpirun --map-by "
            "ppr:1:node --bind-to none drun ...");
  EXPECT_THAT(found(Environment{"MPI_LOCALNRANKS=4"} + kHydra),
              AllOf(StartsWith("Hydra refuses: "), HasSubstr("mpiexec -ppn 1 -n NODES drun ...")));
  EXPECT_THAT(found({"PALS_RANKID=3", "PALS_LOCAL_RANKID=1", "PMI_SIZE=4"}),
              StartsWith("PALS refuses: "));
  EXPECT_EQ(
      found({"OMPI_COMM_WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_LOCAL_SIZE=1"}),
      "Open MPI: one node");
}

TEST(PlaceTest, WhatMpirunDoesNotSayIsNamed) {
  EXPECT_EQ(allocation_of({"OMPI_COMM_WORLD_SIZE=8"})->rank.problem,
            "OMPI_COMM_WORLD_RANK is not set");
  EXPECT_EQ(allocation_of({"OMPI_COMM_WORLD_RANK=8"})->nodes.problem,
            "OMPI_COMM_WORLD_SIZE is not set");
  EXPECT_EQ(allocation_of(Environment{"PMI_RANK=2"} + kHydra)->rank.problem,
            "PMI_RANK='2': the ranks are 0 to 1 (PMI_SIZE)");
  EXPECT_THAT(allocation_of(Environment{"OMPI_MCA_orte_hnp_uri=x"} + kOpenMpi4)->endpoint.problem,
              HasSubstr("OMPI_MCA_orte_hnp_uri='x': expected JOB.0;tcp://ADDRESS:PORT"));
  EXPECT_EQ(found({"PMI_RANK=0", "PMI_SIZE=2"}), "nothing");
}

// ---- Flux ----

TEST(PlaceTest, FluxNumbersTheNodes) {
  const Environment flux{"FLUX_JOB_ID=f2Xyz", "FLUX_JOB_NNODES=2",    "FLUX_JOB_SIZE=2",
                         "FLUX_TASK_RANK=1",  "FLUX_TASK_LOCAL_ID=0", "PMI_RANK=1",
                         "PMI_SIZE=2"};
  EXPECT_EQ(found(flux),
            "Flux | 2 (FLUX_JOB_NNODES) | 1 (FLUX_TASK_RANK) | ? no variable of Flux names the "
            "nodes of the job (FLUX_JOB_ID) | f2Xyz (FLUX_JOB_ID)");
  // Flux inside of a step of Slurm.
  EXPECT_THAT(found(flux + kStep), StartsWith("Flux | 2 "));
  EXPECT_THAT(found(Environment{"FLUX_JOB_SIZE=8"} + flux),
              AllOf(StartsWith("Flux refuses: "), HasSubstr("flux run -N 2 -n 2 ")));
  EXPECT_EQ(found(Environment{"FLUX_JOB_NNODES=1", "FLUX_JOB_SIZE=1"} + flux), "Flux: one node");
}

// flux alloc and flux batch.
TEST(PlaceTest, TheScriptOfAFluxInstanceIsOneNodeAndSaysSo) {
  const Environment script{"FLUX_URI=local:///run/flux/local", "FLUX_ENCLOSING_ID=f1"};
  EXPECT_EQ(found(script), "Flux: one node");
  EXPECT_THAT(
      allocation_of(script)->note,
      AllOf(HasSubstr("this node alone"), HasSubstr("(FLUX_URI)"), HasSubstr("flux run -N")));
  EXPECT_EQ(found(script, {.nodes_given = true}), "nothing");
  EXPECT_EQ(found(script + kStep), kStepFound);
}

// ---- Batch systems ----

TEST(PlaceTest, BatchSystemsListTheHosts) {
  const struct {
    Environment environment;
    Files files;
    const char* meant;
  } cases[] = {
      {{"LSB_JOBID=9", "LSB_MCPU_HOSTS=n1 16 n2 16"},
       {},
       "LSF | 2 (LSB_MCPU_HOSTS) | 1 (LSB_MCPU_HOSTS) | n1:20009 (LSB_MCPU_HOSTS) | 9 "
       "(LSB_JOBID)"},
      {{"LSB_JOBID=9", "LSB_DJOB_HOSTFILE=/hosts", "LSB_MCPU_HOSTS=n1 2 n2 1"},
       {{"/hosts", "n1\nn1\nn2\n"}},
       "LSF | 2 (LSB_DJOB_HOSTFILE) | 1 (LSB_DJOB_HOSTFILE) | n1:20009 (LSB_DJOB_HOSTFILE) | 9 "
       "(LSB_JOBID)"},
      {{"LSB_JOBID=9", "LSB_DJOB_HOSTFILE=/hosts", "LSB_MCPU_HOSTS=n1 2 n2 1"},
       {},
       "LSF | 2 (LSB_MCPU_HOSTS) | 1 (LSB_MCPU_HOSTS) | n1:20009 (LSB_MCPU_HOSTS) | 9 "
       "(LSB_JOBID)"},
      {{"PBS_ENVIRONMENT=PBS_BATCH", "PBS_JOBID=123.pbs", "PBS_NODEFILE=/nodes"},
       {{"/nodes", "n1.x\nn1.x\nn2.x\n"}},
       "PBS | 2 (PBS_NODEFILE) | 1 (PBS_NODEFILE) | n1.x:20123 (PBS_NODEFILE) | 123.pbs "
       "(PBS_JOBID)"},
      {{"JOB_ID=5", "PE_HOSTFILE=/pe", "SGE_ROOT=/opt/sge"},
       {{"/pe", "n1 8 all.q@n1 UNDEFINED\nn2 8 all.q@n2 UNDEFINED\n"}},
       "SGE | 2 (PE_HOSTFILE) | 1 (PE_HOSTFILE) | n1:20005 (PE_HOSTFILE) | 5 (JOB_ID)"},
      {{"COBALT_JOBID=6", "COBALT_NODEFILE=/c"},
       {{"/c", "n1\nn2\n"}},
       "Cobalt | 2 (COBALT_NODEFILE) | 1 (COBALT_NODEFILE) | n1:20006 (COBALT_NODEFILE) | 6 "
       "(COBALT_JOBID)"},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(found(each.environment, {.host = "n2", .files = each.files}), each.meant);
    // The script runs on the first host alone, unless somebody says otherwise.
    const std::string refused = found(each.environment, {.host = "n1", .files = each.files});
    EXPECT_THAT(refused, AllOf(HasSubstr(" refuses: "), HasSubstr("2 hosts"),
                               HasSubstr("start one drun on each: "), HasSubstr("--cluster ")));
    const bool in_file = std::string(each.meant).find("(LSB_MCPU_HOSTS)") == std::string::npos;
    EXPECT_EQ(refused.find("over ssh: drun --hostfile \"$") != std::string::npos, in_file);
    const std::string name = refused.substr(refused.find("--cluster ") + 10);
    const Asked told{.which = name.substr(0, name.find(' ')), .host = "n1", .files = each.files};
    EXPECT_THAT(found(each.environment, told), HasSubstr(" | 0 ("));
    EXPECT_THAT(found(each.environment, {.host = "n3", .files = each.files}),
                HasSubstr(" does not list this host, n3 |"));
  }
}

// All elements of an array have the number of the job, and may share a host.
TEST(PlaceTest, ElementsOfAnArrayAreJobsOfTheirOwn) {
  const auto job = [](const Environment& environment, const std::string& which) {
    const auto allocation =
        allocation_of(environment, {.which = which, .files = {{"/hosts", "n1 8 q U\nn2 8 q U\n"}}});
    return allocation->endpoint.text + " " + text_of(allocation->id);
  };
  const Environment lsf{"LSB_JOBID=77", "LSB_MCPU_HOSTS=n1 2 n2 2"};
  const Environment sge{"JOB_ID=55", "PE_HOSTFILE=/hosts"};
  const auto pbs = [](const std::string& id) {
    return Environment{"PBS_JOBID=" + id, "PBS_NODEFILE=/hosts"};
  };
  EXPECT_EQ(job(lsf, "lsf"), "n1:20077 77 (LSB_JOBID)");
  EXPECT_EQ(job(lsf + Environment{"LSB_JOBINDEX=0"}, "lsf"), "n1:20077 77 (LSB_JOBID)");
  EXPECT_EQ(job(sge + Environment{"SGE_TASK_ID=undefined"}, "sge"), "n1:20055 55 (JOB_ID)");
  EXPECT_THAT(job(lsf + Environment{"LSB_JOBINDEX=3"}, "lsf"),
              ::testing::EndsWith(" 77[3] (LSB_JOBID, LSB_JOBINDEX)"));
  EXPECT_THAT(job(sge + Environment{"SGE_TASK_ID=1"}, "sge"),
              ::testing::EndsWith(" 55[1] (JOB_ID, SGE_TASK_ID)"));
  const auto port = [](const std::string& text) { return text.substr(0, text.find(' ')); };
  for (const auto& [name, element] : {std::pair("lsf", lsf + Environment{"LSB_JOBINDEX="}),
                                      {"sge", sge + Environment{"SGE_TASK_ID="}}}) {
    std::set<std::string> ports{port(job(element, name))};
    for (int i = 1; i <= 20; ++i) {
      Environment each = element;
      each.back() += std::to_string(i);
      ports.insert(port(job(each, name)));
    }
    EXPECT_EQ(ports.size(), 21U) << name;
  }
  EXPECT_EQ(port(job(pbs("123.pbs"), "pbs")), "n1:20123");
  EXPECT_NE(port(job(pbs("123[1].pbs"), "pbs")), port(job(pbs("123[2].pbs"), "pbs")));
}

TEST(PlaceTest, AListThatCannotBeReadIsNoJobOfOneNode) {
  const Environment pbs{"PBS_ENVIRONMENT=PBS_BATCH", "PBS_JOBID=1", "PBS_NODEFILE=/nodes"};
  EXPECT_EQ(allocation_of(pbs)->nodes.problem,
            "PBS_NODEFILE='/nodes': this file cannot be read: it is not there");
  EXPECT_EQ(allocation_of(pbs, {.files = {{"/nodes", "\n"}}})->nodes.problem,
            "PBS_NODEFILE='/nodes': it names no host");
  EXPECT_EQ(allocation_of(pbs - "PBS_NODEFILE")->nodes.problem,
            "PBS_NODEFILE (not set): expected a file with the job's hosts");
  EXPECT_EQ(allocation_of({"LSB_JOBID=1"})->nodes.problem,
            "LSB_MCPU_HOSTS (not set): expected a list of hosts");
  EXPECT_EQ(allocation_of({"LSB_JOBID=1", "LSB_MCPU_HOSTS=n1 n2"})->nodes.problem,
            "LSB_MCPU_HOSTS='n1 n2': after 'n1' comes no number of slots");
  EXPECT_EQ(allocation_of({"JOB_ID=1", "PE_HOSTFILE=/pe"})->nodes.problem,
            "PE_HOSTFILE='/pe': this file cannot be read: it is not there");
  EXPECT_EQ(found(pbs, {.files = {{"/nodes", "n1\nn1\n"}}}), "PBS: one node");
  EXPECT_EQ(found({"LSB_JOBID=1", "LSB_MCPU_HOSTS=n1 16"}), "LSF: one node");
  EXPECT_EQ(found({"JOB_ID=1", "SGE_ROOT=/opt/sge"}), "nothing");
  EXPECT_EQ(found({"JOB_ID=1", "SGE_ROOT=/opt/sge", "NHOSTS=1"}), "nothing");
  EXPECT_EQ(allocation_of({"JOB_ID=1", "SGE_ROOT=/opt/sge", "NHOSTS=2"})->nodes.problem,
            "PE_HOSTFILE (not set): expected a file with the job's hosts");
  EXPECT_EQ(found({"PBS_JOBID=1"}), "nothing");
}

// ---- Kubernetes ----

TEST(PlaceTest, PodsAreNumberedByTheirOperators) {
  const Environment pod{"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443"};
  const Environment ranks{"MASTER_ADDR=train-master-0", "MASTER_PORT=23456", "WORLD_SIZE=3",
                          "RANK=2"};
  EXPECT_EQ(found(pod + ranks),
            "PyTorchJob | 3 (WORLD_SIZE) | 2 (RANK) | train-master-0:23456 (MASTER_ADDR) | -");
  EXPECT_EQ(found(ranks), "nothing");
  EXPECT_EQ(found(pod), "nothing");
  EXPECT_EQ(found(ranks, {.which = "operator"}),
            "the operator | 3 (WORLD_SIZE) | 2 (RANK) | train-master-0:23456 (MASTER_ADDR) | -");
  // Those of a process count processes.
  EXPECT_EQ(found(pod + ranks + Environment{"LOCAL_RANK=0"}), "nothing");
  EXPECT_EQ(found(Environment{"WORLD_SIZE=1", "RANK=0"} + pod + ranks), "PyTorchJob: one node");
  EXPECT_EQ(allocation_of(pod + (ranks - "MASTER_PORT"))->endpoint.problem,
            "MASTER_PORT (not set): expected a port");
  EXPECT_EQ(allocation_of(Environment{"RANK=3"} + pod + ranks)->rank.problem,
            "RANK='3': the pods are 0 to 2 (WORLD_SIZE)");

  EXPECT_EQ(
      found({"LWS_LEADER_ADDRESS=llm-0.llm.default", "LWS_GROUP_SIZE=4", "LWS_WORKER_INDEX=3"}),
      "LeaderWorkerSet | 4 (LWS_GROUP_SIZE) | 3 (LWS_WORKER_INDEX) | "
      "llm-0.llm.default:29400 (LWS_LEADER_ADDRESS) | llm-0.llm.default "
      "(LWS_LEADER_ADDRESS)");
  EXPECT_EQ(allocation_of({"LWS_LEADER_ADDRESS=a"})->nodes.problem, "LWS_GROUP_SIZE is not set");
  EXPECT_EQ(allocation_of({"LWS_GROUP_SIZE=2", "LWS_WORKER_INDEX=0"})->endpoint.problem,
            "LWS_LEADER_ADDRESS is not set");
}

// Kubeflow's Trainer: each pod is to be a process of JAX's, and has a drun.
TEST(PlaceTest, TheProcessesOfATrainJobForJaxAreNodes) {
  const Environment jax{"KUBERNETES_SERVICE_HOST=10.96.0.1",
                        "JAX_COORDINATOR_ADDRESS=t-node-0-0.t:6666", "JAX_NUM_PROCESSES=2",
                        "JAX_PROCESS_ID=1", "JOB_COMPLETION_INDEX=1"};
  const std::string meant =
      "the TrainJob | 2 (JAX_NUM_PROCESSES) | 1 (JAX_PROCESS_ID) | t-node-0-0.t:29400 "
      "(JAX_COORDINATOR_ADDRESS) | -";
  EXPECT_EQ(found(jax), meant);
  EXPECT_EQ(found(jax, {.nodes_given = true}), meant);
  EXPECT_EQ(found(Environment{"JAX_NUM_PROCESSES=1", "JAX_PROCESS_ID=0"} + jax),
            "the TrainJob: one node");
  EXPECT_EQ(found(jax - "KUBERNETES_SERVICE_HOST"), "nothing");
  EXPECT_EQ(allocation_of(jax - "JAX_NUM_PROCESSES")->nodes.problem,
            "JAX_NUM_PROCESSES is not set");
  EXPECT_EQ(allocation_of(jax - "JAX_PROCESS_ID")->rank.problem, "JAX_PROCESS_ID is not set");
  EXPECT_EQ(allocation_of(jax - "JAX_COORDINATOR_ADDRESS")->endpoint.problem,
            "JAX_COORDINATOR_ADDRESS is not set");
  EXPECT_EQ(allocation_of(Environment{"JAX_PROCESS_ID=2"} + jax)->rank.problem,
            "JAX_PROCESS_ID='2': the pods are 0 to 1 (JAX_NUM_PROCESSES)");
  EXPECT_THAT(found(Environment{"JAX_COORDINATOR_ADDRESS=[fd00::1]:6666"} + jax),
              HasSubstr("| [fd00::1]:29400 ("));
}

TEST(PlaceTest, VolcanoNumbersPodsInSeveralWays) {
  const Environment pytorch{"VC_TASK_INDEX=0",
                            "VK_TASK_INDEX=0",
                            "MASTER_ADDR=j-master-0.j",
                            "MASTER_PORT=23456",
                            "WORLD_SIZE=3",
                            "RANK=1",
                            "VC_MASTER_HOSTS=j-master-0.j",
                            "VC_WORKER_HOSTS=j-worker-0.j,j-worker-1.j",
                            "VC_WORKER_NUM=2"};
  EXPECT_EQ(found(pytorch),
            "Volcano | 3 (WORLD_SIZE) | 1 (RANK) | j-master-0.j:23456 (MASTER_ADDR) | -");
  const Environment both{"VC_MASTER_HOSTS=j-master-0.j",
                         "VC_WORKER_HOSTS=j-worker-0.j,j-worker-1.j", "VC_TASK_INDEX=1"};
  EXPECT_EQ(found(both, {.host = "j-worker-1"}),
            "Volcano | 3 (VC_MASTER_HOSTS) | 2 (VC_MASTER_HOSTS) | j-master-0.j:29400 "
            "(VC_MASTER_HOSTS) | -");
  EXPECT_THAT(found(both, {.host = "elsewhere"}), HasSubstr("do not list this host, elsewhere"));
  const Environment workers{"VC_NODE_HOSTS=j-node-0.j,j-node-1.j", "VC_NODE_NUM=2",
                            "VC_TASK_INDEX=1"};
  EXPECT_EQ(found(workers, {.host = "renamed"}),
            "Volcano | 2 (VC_NODE_HOSTS) | 1 (VC_TASK_INDEX) | j-node-0.j:29400 (VC_NODE_HOSTS) "
            "| -");
  EXPECT_EQ(found({"VC_NODE_HOSTS=j-node-0.j"}), "Volcano: one node");
  EXPECT_THAT(allocation_of({"VC_PS_HOSTS=a", "VC_WORKER_HOSTS=b"})->nodes.problem,
              HasSubstr("tasks of several kinds (VC_PS_HOSTS, VC_WORKER_HOSTS)"));
  EXPECT_THAT(allocation_of({"VC_TASK_INDEX=1", "VC_WORKER_NUM=2"})->nodes.problem,
              HasSubstr("VC_..._HOSTS is not set"));
  EXPECT_EQ(found({"VC_TASK_INDEX=0", "VC_WORKER_NUM=1"}), "nothing");
  // An index alone makes no job of several pods.
  EXPECT_EQ(found({"VC_TASK_INDEX=1"}), "nothing");
  EXPECT_THAT(allocation_of({"VC_TASK_INDEX=1"}, {.nodes_given = true})->endpoint.problem,
              HasSubstr("svc plugin"));
}

TEST(PlaceTest, TheIndexedJobNeedsTheNumberOfPods) {
  const Environment pod{"JOB_COMPLETION_INDEX=12", "KUBERNETES_SERVICE_HOST=10.96.0.1"};
  const Files hosts{{"/etc/hosts",
                     "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"
                     "10.1.2.3\ttrain-12.train.default.svc.cluster.local\ttrain-12\n"}};
  EXPECT_EQ(found(pod, {.host = "train-12", .files = hosts}), "nothing");
  const auto allocation =
      allocation_of(pod, {.host = "train-12", .files = hosts, .nodes_given = true});
  EXPECT_EQ(text_of(allocation->rank), "12 (JOB_COMPLETION_INDEX)");
  EXPECT_EQ(text_of(allocation->endpoint),
            "train-0.train.default.svc.cluster.local:29400 (JOB_COMPLETION_INDEX)");
  EXPECT_EQ(text_of(allocation->id), "train (JOB_COMPLETION_INDEX)");
  EXPECT_THAT(allocation->nodes.problem, HasSubstr("how many there are (JOB_COMPLETION_INDEX)"));
  // JobSet's pods: the set, the job, the job's number, the pod's.
  const auto of_set =
      allocation_of({"JOB_COMPLETION_INDEX=1"}, {.host = "set-workers-0-1",
                                                 .files = {{"/etc/hosts",
                                                            "10.1.2.3 set-workers-0-1.set.ns.svc "
                                                            "set-workers-0-1\n"}},
                                                 .nodes_given = true});
  EXPECT_EQ(of_set->endpoint.text, "set-workers-0-0.set.ns.svc:29400");
  EXPECT_EQ(of_set->note, "");
  // With replicas: 2 there is a pod 0 in each of the jobs.
  const auto note = [](const std::string& name) {
    const std::string host = name.substr(0, name.find('.'));
    return allocation_of({"JOB_COMPLETION_INDEX=0"},
                         {.host = host,
                          .files = {{"/etc/hosts", "10.1.2.3 " + name + " " + host + "\n"}},
                          .nodes_given = true})
        ->note;
  };
  EXPECT_THAT(
      note("js-w-1-0.js.ns.svc"),
      StartsWith("this is job 1 of its JobSet (js-w-1-0), and its nodes are that job's pods "
                 "alone; for one job of all, give "));
  for (const char* name : {"js-w-0-0.js.ns.svc", "train-0.train.ns.svc", "a-1-0.other.ns.svc",
                           "js-0.js", "js-1-0.js-1.ns"})
    EXPECT_EQ(note(name), "") << name;
  EXPECT_THAT(allocation_of(pod, {.host = "train-12", .nodes_given = true})->endpoint.problem,
              HasSubstr("no full name of this pod, train-12"));
  EXPECT_THAT(
      allocation_of(pod, {.host = "x", .files = hosts, .nodes_given = true})->endpoint.problem,
      HasSubstr("this pod's host name, x, does not end in it"));
}

// ---- Clouds ----

TEST(PlaceTest, SageMakerListsItsHosts) {
  const Environment job{"SM_HOSTS=[\"algo-1\",\"algo-2\"]", "SM_CURRENT_HOST=algo-2",
                        "TRAINING_JOB_NAME=pytorch-2026-11"};
  const std::string meant =
      "SageMaker | 2 (SM_HOSTS) | 1 (SM_CURRENT_HOST) | algo-1:29400 (SM_HOSTS) | "
      "pytorch-2026-11 (TRAINING_JOB_NAME)";
  EXPECT_EQ(found(job), meant);
  EXPECT_THAT(found({"TRAINING_JOB_NAME=j"},
                    {.files = {{"/opt/ml/input/config/resourceconfig.json",
                                R"({"current_host":"algo-1","hosts":["algo-1","algo-2"]})"}}}),
              AllOf(HasSubstr("| 0 ("), HasSubstr("| algo-1:29400 (")));
  EXPECT_EQ(found({"TRAINING_JOB_NAME=j"}), "nothing");
  EXPECT_EQ(found({"SM_HOSTS=[\"algo-1\"]", "SM_CURRENT_HOST=algo-1"}), "SageMaker: one node");
  for (const char* nonsense : {"algo-1,algo-2", "[]", "[1,2]", "{}", "[\"a\"", "null"})
    EXPECT_EQ(allocation_of({std::string("SM_HOSTS=") + nonsense, "SM_CURRENT_HOST=algo-1"})
                  ->nodes.problem,
              std::string("SM_HOSTS='") + nonsense + "': expected a JSON list of host names");
  EXPECT_EQ(allocation_of(Environment{"SM_CURRENT_HOST=algo-9"} + job)->rank.problem,
            "SM_CURRENT_HOST='algo-9' is not in SM_HOSTS");
  EXPECT_THAT(allocation_of({"SM_CURRENT_HOST=algo-1"})->nodes.problem,
              HasSubstr("SM_HOSTS is not set"));
}

TEST(PlaceTest, AzureHasMpirunOrNodeRanks) {
  EXPECT_EQ(
      found(Environment{"AZ_BATCH_MASTER_NODE=10.0.0.4:6000", "AZUREML_RUN_ID=17_run"} + kOpenMpi4),
      "Open MPI | 2 (OMPI_COMM_WORLD_SIZE) | 1 (OMPI_COMM_WORLD_RANK) | 10.0.0.4:20017 "
      "(AZ_BATCH_MASTER_NODE) | 17_run (AZUREML_RUN_ID)");
  const Environment torch{
      "AZUREML_RUN_ID=17_run", "AZUREML_NODE_COUNT=2", "NODE_RANK=1",     "WORLD_SIZE=2", "RANK=1",
      "LOCAL_RANK=0",          "MASTER_ADDR=10.0.0.4", "MASTER_PORT=6105"};
  EXPECT_EQ(found(torch),
            "Azure ML | 2 (AZUREML_NODE_COUNT) | 1 (NODE_RANK) | 10.0.0.4:20017 (MASTER_ADDR) | "
            "17_run (AZUREML_RUN_ID)");
  EXPECT_THAT(found(Environment{"WORLD_SIZE=16"} + torch),
              StartsWith("Azure ML refuses: Azure ML starts several processes on a node "
                         "(WORLD_SIZE='16' on AZUREML_NODE_COUNT='2'), but"));
  EXPECT_THAT(found(Environment{"WORLD_SIZE=16", "LOCAL_RANK=3"} + (torch - "AZUREML_NODE_COUNT")),
              StartsWith("Azure ML refuses: Azure ML starts several processes on a node "
                         "(LOCAL_RANK='3'), but"));
  for (const std::string address : {"fd00::4", "[fd00::4]:6105"})
    EXPECT_THAT(found(Environment{"MASTER_ADDR=" + address} + torch),
                HasSubstr("| [fd00::4]:20017 (MASTER_ADDR) |"));
  EXPECT_THAT(found(Environment{"AZ_BATCH_MASTER_NODE=[fd00::4]:6000", "AZUREML_RUN_ID=17_run"} +
                    kOpenMpi4),
              HasSubstr("| [fd00::4]:20017 (AZ_BATCH_MASTER_NODE) |"));
  EXPECT_EQ(found({"AZUREML_RUN_ID=1", "AZUREML_NODE_COUNT=1"}), "Azure ML: one node");
  EXPECT_EQ(found({"AZUREML_RUN_ID=1"}), "nothing");
  EXPECT_EQ(
      allocation_of({"AZUREML_RUN_ID=1", "AZUREML_NODE_COUNT=2", "NODE_RANK=0"})->endpoint.problem,
      "neither MASTER_ADDR nor AZ_BATCH_MASTER_NODE is set");
}

TEST(PlaceTest, VertexHasPools) {
  const std::string spec =
      R"({"cluster":{"workerpool0":["a-0:2222"],"workerpool1":["b-0:2222","b-1:2222"]},)"
      R"("environment":"cloud","task":{"type":"workerpool1","index":1}})";
  EXPECT_EQ(found({"CLUSTER_SPEC=" + spec, "CLOUD_ML_JOB_ID=77"}),
            "Vertex AI | 3 (CLUSTER_SPEC) | 2 (CLUSTER_SPEC) | a-0:2222 (CLUSTER_SPEC) | 77 "
            "(CLOUD_ML_JOB_ID)");
  EXPECT_EQ(found({"TF_CONFIG=" + std::string(R"({"cluster":{"worker":["w:1"],"chief":["c:1"]},)"
                                              R"("task":{"type":"worker","index":0}})"),
                   "CLOUD_ML_JOB_ID=77"}),
            "Vertex AI | 2 (TF_CONFIG) | 1 (TF_CONFIG) | c:1 (TF_CONFIG) | 77 (CLOUD_ML_JOB_ID)");
  EXPECT_EQ(found({R"(TF_CONFIG={"cluster":{"worker":["a:1","b:1"]}})"}), "nothing");
  EXPECT_EQ(found({"CLUSTER_SPEC=mine"}), "nothing");
  EXPECT_THAT(allocation_of({"CLUSTER_SPEC={workerpool0"})->nodes.problem,
              HasSubstr("CLUSTER_SPEC='{workerpool0': expected JSON"));
  EXPECT_THAT(allocation_of({R"(CLUSTER_SPEC={"cluster":{"workerpool0":["a:1","b:1"]},"task":{}})"})
                  ->rank.problem,
              HasSubstr("its task is none of its cluster"));
}

TEST(PlaceTest, LeptonNamesItsWorkers) {
  EXPECT_EQ(found({"LEPTON_JOB_WORKER_PREFIX=job-worker", "LEPTON_SUBDOMAIN=job-svc",
                   "LEPTON_JOB_TOTAL_WORKERS=4", "LEPTON_JOB_WORKER_INDEX=2"}),
            "Lepton | 4 (LEPTON_JOB_TOTAL_WORKERS) | 2 (LEPTON_JOB_WORKER_INDEX) | "
            "job-worker-0.job-svc:29400 (LEPTON_JOB_WORKER_PREFIX) | job-worker "
            "(LEPTON_JOB_WORKER_PREFIX)");
  EXPECT_EQ(allocation_of({"LEPTON_JOB_WORKER_INDEX=2"})->nodes.problem,
            "LEPTON_JOB_TOTAL_WORKERS is not set");
}

// A rank that no number holds has a name, as any that is too large.
TEST(PlaceTest, ANumberThatIsTooLongIsNone) {
  const Environment flux{"FLUX_JOB_ID=f", "FLUX_JOB_NNODES=2"};
  const Environment volcano{"VC_NODE_HOSTS=j-node-0.j,j-node-1.j"};
  const Environment pods{"LWS_GROUP_SIZE=2", "LWS_LEADER_ADDRESS=a"};
  const struct {
    Environment environment;
    std::string rank;
  } kCases[] = {{kStep - "SLURM_NODEID", "SLURM_NODEID"},
                {flux, "FLUX_TASK_RANK"},
                {volcano, "VC_TASK_INDEX"},
                {pods, "LWS_WORKER_INDEX"}};
  for (const auto& [environment, rank] : kCases) {
    for (const std::string number : {"99999999999", "99999999999999999999999999"})
      EXPECT_EQ(allocation_of(environment + Environment{rank + "=" + number})->rank.problem,
                rank + "='" + number + "': expected a whole number from 0");
    EXPECT_THAT(allocation_of(environment + Environment{rank + "=2147483647"})->rank.problem,
                StartsWith(rank + "='2147483647': the"))
        << rank;
    EXPECT_EQ(allocation_of(environment + Environment{rank + "=1"})->rank.text, "1");
  }
}

// Values of all kinds in all variables: what is read is whole, or it has a problem or none.
TEST(PlaceTest, NonsenseIsNoAnswer) {
  const std::vector<std::string> names{"SLURM_JOB_ID",
                                       "SLURM_STEP_ID",
                                       "SLURM_STEP_NUM_NODES",
                                       "SLURM_STEP_NODELIST",
                                       "SLURM_NODEID",
                                       "SLURM_STEP_TASKS_PER_NODE",
                                       "SLURM_TASKS_PER_NODE",
                                       "SLURM_JOB_NUM_NODES",
                                       "SLURM_HET_SIZE",
                                       "SLURM_JOB_NODELIST_HET_GROUP_0",
                                       "OMPI_COMM_WORLD_SIZE",
                                       "OMPI_COMM_WORLD_RANK",
                                       "OMPI_MCA_orte_hnp_uri",
                                       "OMPI_MCA_orte_local_daemon_uri",
                                       "PMIX_NAMESPACE",
                                       "MPI_LOCALNRANKS",
                                       "PMI_SIZE",
                                       "PMI_RANK",
                                       "FLUX_JOB_NNODES",
                                       "FLUX_TASK_RANK",
                                       "LWS_GROUP_SIZE",
                                       "LWS_WORKER_INDEX",
                                       "LWS_LEADER_ADDRESS",
                                       "VC_A_HOSTS",
                                       "VC_TASK_INDEX",
                                       "SM_HOSTS",
                                       "SM_CURRENT_HOST",
                                       "CLUSTER_SPEC",
                                       "CLOUD_ML_JOB_ID",
                                       "LEPTON_JOB_WORKER_INDEX",
                                       "LSB_MCPU_HOSTS",
                                       "PBS_NODEFILE",
                                       "JOB_COMPLETION_INDEX",
                                       "AZUREML_RUN_ID",
                                       "AZUREML_NODE_COUNT",
                                       "NODE_RANK",
                                       "JSM_NAMESPACE_SIZE",
                                       "JSM_NAMESPACE_RANK",
                                       "PALS_RANKID",
                                       "AZ_BATCH_MASTER_NODE"};
  const std::vector<std::string> values{
      "",
      "0",
      "1",
      "2",
      "-1",
      "2147483647",
      "2147483648",
      "18446744073709551616",
      "x",
      "[",
      "]",
      "n[1-2]",
      "n1,n2",
      "n1 1",
      "1(x2)",
      "(",
      "2(",
      "{}",
      "[]",
      "[\"a\"]",
      "null",
      ":",
      "://",
      "1.0;tcp://",
      "1.0;tcp://a:1",
      "1.0;tcp://[",
      "prterun-",
      "prterun-a-1@1",
      "@",
      "prte--",
      R"({"cluster":{"workerpool0":["a:1"]},"task":{"type":"workerpool0","index":-1}})",
      R"({"cluster":{"workerpool0":[1]}})",
      R"({"cluster":1,"task":2})",
      "workerpool",
      "/nodes"};
  std::uint64_t seed = 17;
  const auto next = [&](std::size_t below) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>((seed >> 33U) % below);
  };
  const Asked asked{.host = "n1", .files = {{"/nodes", "n1\nn2\n"}}};
  for (int round = 0; round < 20'000; ++round) {
    Environment environment;
    for (std::size_t number = 1 + next(8); number > 0; --number)
      environment.push_back(names[next(names.size())] + "=" + values[next(values.size())]);
    const auto allocation = allocation_of(environment, asked);
    if (!allocation) continue;
    ASSERT_FALSE(allocation->scheduler.empty());
    for (const Value* value :
         {&allocation->nodes, &allocation->rank, &allocation->endpoint, &allocation->id}) {
      ASSERT_TRUE(value->text.empty() || value->problem.empty());
      ASSERT_EQ(value->text.empty(), value->from.empty()) << value->from;
    }
  }
}

TEST(PlaceTest, NoSchedulerIsNone) {
  EXPECT_EQ(found({}), "nothing");
  EXPECT_EQ(found({"PATH=/bin", "RANK=0", "WORLD_SIZE=2", "SLURM_CONF=/etc/slurm.conf"}),
            "nothing");
  // Every name is known.
  for (std::string_view rest = kSchedulerChoices; !rest.empty();) {
    const auto end = std::min(rest.find(' '), rest.size());
    EXPECT_EQ(found({}, {.which = std::string(rest.substr(0, end))}), "nothing");
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  EXPECT_EQ(found(kStep, {.which = "pbs"}), "nothing");
}

}  // namespace
}  // namespace drun::launcher::cluster
