// The rule by which a hang is told from work. The cases are what real programs looked like between
// two looks, ten seconds apart.
#include "hang/stillness.hpp"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace drun::hang {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMs = 1'000'000;  // in nanoseconds
constexpr seconds kBetween{10};

// One process with a main thread, a thread of gloo's loop and one that NCCL's watchdog has: all
// sleep.
RankLook asleep() {
  ProcessLook process;
  process.started = 100;
  process.cpu_ms = 5'000;
  process.minor_faults = 20'000;
  process.major_faults = 12;
  process.thread_count = 3;
  process.bytes = ByteCounts{1'000, 2'000, 4'096, 8'192};
  process.threads.emplace();
  for (const pid_t tid : {10, 11, 12})
    process.threads->emplace(tid, ThreadLook{'S', 1'000 * kMs, 5'000});
  RankLook rank;
  rank.processes.emplace(10, process);
  rank.network_bytes = 70'000;
  return rank;
}

ThreadLook& thread(RankLook& rank, pid_t tid) {
  return rank.processes.at(10).threads->at(tid);
}

struct Case {
  std::string name;
  Activity expected;
  std::function<void(RankLook& before, RankLook& now)> change;
};

ProcessLook& process(RankLook& rank) {
  return rank.processes.at(10);
}

// A thread wakes so often, uses so much time in all.
void run(RankLook& now, pid_t tid, std::uint64_t times, std::uint64_t us) {
  thread(now, tid).switches += times;
  thread(now, tid).run_ns += us * 1'000;
  process(now).cpu_ms += us / 1'000;
}

std::vector<Case> cases() {
  using enum Activity;
  const auto nothing = [](RankLook&, RankLook&) {};
  return {
      // ---- these hang ----
      {"a lock, a futex, a recv, a barrier", Waits, nothing},
      {"a read of a file system that gives no answer", Waits,
       [](auto&, auto& now) { thread(now, 10).state = 'D'; }},
      {"stopped by SIGSTOP", Waits,
       [](auto&, auto& now) {
         for (const pid_t tid : {10, 11, 12})
           thread(now, tid).state = 'T';
       }},
      {"gloo: its loop wakes a hundred times a second", Waits,
       [](auto&, auto& now) { run(now, 11, 1'000, 12'000); }},
      {"NCCL's watchdog wakes ten times a second", Waits,
       [](auto&, auto& now) { run(now, 12, 100, 6'000); }},
      {"a loop of sleep(1) that waits for a file", Waits,
       [](auto&, auto& now) { run(now, 12, 10, 700); }},
      {"Python's queue.get with a timeout, five times a second", Waits,
       [](auto&, auto& now) { run(now, 12, 50, 4'000); }},
      {"a watchdog that is found awake", Waits,
       [](auto&, auto& now) {
         run(now, 11, 1'000, 12'000);
         thread(now, 11).state = 'R';
       }},
      {"pages that the kernel moves between memory nodes", Waits,
       [](auto&, auto& now) { process(now).minor_faults += 3; }},
      {"a thread runs while they are counted, so that perhaps another has ended", Waits,
       [](auto& before, auto& now) {
         process(before).ended_threads = {7'000 * kMs, 7'000 * kMs + 60'000};
         process(now).ended_threads = {7'000 * kMs + 50'000, 7'000 * kMs + 70'000};
       }},
      {"threads in an idle state of the kernel", Waits,
       [](auto&, auto& now) { thread(now, 12).state = 'I'; }},

      // ---- something comes of these ----
      {"it wrote a byte", MakesProgress, [](auto&, auto& now) { ++process(now).bytes->written; }},
      {"it read a byte", MakesProgress, [](auto&, auto& now) { ++process(now).bytes->read; }},
      {"a page came from a disk", MakesProgress,
       [](auto&, auto& now) { process(now).bytes->storage_read += 4'096; }},
      {"a page went to a disk", MakesProgress,
       [](auto&, auto& now) { process(now).bytes->storage_written += 4'096; }},
      {"it compiles: its child only reads files", MakesProgress,
       [](auto& before, auto& now) {
         before.processes.emplace(20, process(before));
         now.processes.emplace(20, process(now));
         now.processes.at(20).bytes->read += 30'000'000;
       }},
      {"it writes a checkpoint, and sleeps for the disk in between", MakesProgress,
       [](auto&, auto& now) {
         thread(now, 10).state = 'D';
         process(now).bytes->written += 500'000'000;
         process(now).bytes->storage_written += 400'000'000;
       }},
      {"a byte came by a connection", MakesProgress,
       [](auto&, auto& now) { ++*now.network_bytes; }},
      {"a connection was closed", MakesProgress,
       [](auto&, auto& now) { *now.network_bytes -= 40'000; }},
      {"a thread began", MakesProgress,
       [](auto&, auto& now) {
         process(now).threads->emplace(13, ThreadLook{'S', 0, 1});
         process(now).thread_count = 4;
       }},
      {"a thread ended and another began", MakesProgress,
       [](auto&, auto& now) {
         process(now).threads->erase(12);
         process(now).threads->emplace(13, ThreadLook{'S', 0, 1});
       }},
      {"a thread ended", MakesProgress,
       [](auto&, auto& now) {
         process(now).threads->erase(12);
         process(now).thread_count = 2;
       }},
      {"a child began", MakesProgress,
       [](auto&, auto& now) { now.processes.emplace(20, process(now)); }},
      {"a child ended", MakesProgress,
       [](auto& before, auto&) { before.processes.emplace(20, process(before)); }},
      {"a child began and ended", MakesProgress,
       [](auto&, auto& now) { process(now).child_faults += 40; }},
      {"a thread began and ended", MakesProgress,
       [](auto& before, auto& now) {
         process(before).ended_threads = {7'000 * kMs, 7'000 * kMs + 20'000};
         process(now).ended_threads = {7'000 * kMs + 50'000, 7'000 * kMs + 60'000};
       }},
      {"another process has got its number", MakesProgress,
       [](auto&, auto& now) { process(now).started = 200; }},
      {"it writes and computes", MakesProgress,
       [](auto&, auto& now) {
         run(now, 10, 20, 9'000'000);
         process(now).threads.reset();
         ++process(now).bytes->written;
       }},
      {"it computes, and its child writes", MakesProgress,
       [](auto& before, auto& now) {
         before.processes.emplace(20, process(before));
         now.processes.emplace(20, process(now));
         run(now, 10, 20, 9'000'000);
         ++now.processes.at(20).bytes->written;
       }},

      // ---- of these nobody knows ----
      {"it computes", NobodyKnows,
       [](auto&, auto& now) {
         run(now, 10, 20, 9'900'000);
         process(now).threads.reset();  // not worth a look
       }},
      {"NCCL spins", NobodyKnows,
       [](auto&, auto& now) {
         run(now, 12, 3, 9'900'000);
         thread(now, 12).state = 'R';
       }},
      {"it waits until its checkpoint is on a disk", NobodyKnows,
       [](auto&, auto& now) {
         thread(now, 10).state = 'D';
         thread(now, 10).awaits_file = true;
       }},
      {"its main thread has ended, and the others wait", Waits,
       [](auto&, auto& now) { thread(now, 10).state = 'Z'; }},
      {"its main thread has ended, and another computes", NobodyKnows,
       [](auto&, auto& now) {
         thread(now, 10).state = 'Z';
         run(now, 12, 3, 9'900'000);
       }},
      {"it could run, but has got no CPU", NobodyKnows,
       [](auto&, auto& now) { thread(now, 10).state = 'R'; }},
      {"it computes for 50 ms, once", NobodyKnows,
       [](auto&, auto& now) { run(now, 10, 2, 50'000); }},
      {"it computes for 2 ms every second", NobodyKnows,
       [](auto&, auto& now) { run(now, 10, 10, 20'000); }},
      {"it looks a thousand times a second", NobodyKnows,
       [](auto&, auto& now) { run(now, 10, 10'000, 300'000); }},
      {"its child computes", NobodyKnows,
       [](auto& before, auto& now) {
         before.processes.emplace(20, process(before));
         now.processes.emplace(20, process(now));
         now.processes.at(20).cpu_ms += 9'900;
       }},
      {"it fills memory", NobodyKnows, [](auto&, auto& now) { process(now).minor_faults += 500; }},
      {"it reads memory that was swapped out", NobodyKnows,
       [](auto&, auto& now) { ++process(now).major_faults; }},
      {"a debugger holds it", NobodyKnows, [](auto&, auto& now) { thread(now, 10).state = 't'; }},
      {"it uses a GPU", NobodyKnows, [](auto&, auto& now) { now.opaque = "it uses a GPU"; }},
      {"what it reads may not be known", NobodyKnows,
       [](auto&, auto& now) { process(now).bytes.reset(); }},
      {"what it read before was not known", NobodyKnows,
       [](auto& before, auto&) { process(before).bytes.reset(); }},
      {"its threads may not be known", NobodyKnows,
       [](auto&, auto& now) { process(now).threads.reset(); }},
      {"it was busy until now", NobodyKnows,
       [](auto& before, auto&) { process(before).threads.reset(); }},
      {"its connections may not be known", NobodyKnows,
       [](auto&, auto& now) { now.network_bytes.reset(); }},
      {"its connections were not known", NobodyKnows,
       [](auto& before, auto&) { before.network_bytes.reset(); }},
      {"it has no process that may be seen", NobodyKnows,
       [](auto& before, auto& now) {
         before.processes.clear();
         now.processes.clear();
       }},
  };
}

TEST(StillnessTest, RecordedCases) {
  for (const Case& each : cases()) {
    RankLook before = asleep();
    RankLook now = asleep();
    each.change(before, now);
    const Finding finding = compare(before, now, kBetween);
    EXPECT_EQ(static_cast<int>(finding.activity), static_cast<int>(each.expected))
        << each.name << ": " << finding.why;
    EXPECT_FALSE(finding.why.empty()) << each.name;
  }
}

// Of two changes at once the one that speaks for life counts.
TEST(StillnessTest, NothingMakesAHangOfWhatIsNone) {
  const auto all = cases();
  for (const Case& alive : all) {
    if (alive.expected == Activity::Waits) continue;
    for (const Case& other : all) {
      if (other.expected != Activity::Waits) continue;
      RankLook before = asleep();
      RankLook now = asleep();
      other.change(before, now);
      alive.change(before, now);
      EXPECT_NE(static_cast<int>(compare(before, now, kBetween).activity),
                static_cast<int>(Activity::Waits))
          << alive.name << " and " << other.name;
    }
  }
}

TEST(StillnessTest, TheFilesOfARankAreWorthALookOnlyIfItSeemsToWait) {
  const RankLook before = asleep();
  RankLook now = asleep();
  now.network_bytes.reset();
  EXPECT_TRUE(seems_still(before, now, kBetween));
  ++process(now).bytes->written;
  EXPECT_FALSE(seems_still(before, now, kBetween));
}

TEST(StillnessTest, ABusyProcessIsKnownByItsShareOfTheTime) {
  EXPECT_FALSE(is_busy(0, kBetween));
  EXPECT_FALSE(is_busy(10, milliseconds(100)));  // one step of the kernel's clock
  EXPECT_FALSE(is_busy(500, kBetween));
  EXPECT_TRUE(is_busy(520, kBetween));
  EXPECT_TRUE(is_busy(20, milliseconds(100)));
}

}  // namespace
}  // namespace drun::hang
