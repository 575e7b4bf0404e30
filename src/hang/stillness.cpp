#include "hang/stillness.hpp"

#include <cstdint>

namespace drun::hang {
namespace {

using std::chrono::milliseconds;

// Of a CPU, by all threads of a process. Those that only look whether there is something to do
// (gloo's loop does a hundred times a second, NCCL's watchdog ten times) use less.
constexpr std::uint64_t kBusyPercent = 5;
// The kernel counts the CPU time of processes in steps of so much.
constexpr std::uint64_t kTickMs = 10;
// A thread that wakes, looks and sleeps again: so long at most each time, and so much in all.
constexpr std::uint64_t kGlanceNs = 500'000;
constexpr std::uint64_t kGlancesPercent = 2;
// The kernel makes memory of idle processes fault, to find out on which node it is used.
constexpr std::uint64_t kIdleFaults = 8;

Finding makes_progress(std::string why) {
  return {Activity::MakesProgress, std::move(why)};
}

Finding nobody_knows(std::string why) {
  return {Activity::NobodyKnows, std::move(why)};
}

std::string name_of(pid_t pid) {
  return "process " + std::to_string(pid);
}

bool only_glanced(const ThreadLook& before, const ThreadLook& now, milliseconds elapsed) {
  const std::uint64_t used = now.run_ns - before.run_ns;
  if (used == 0) return true;
  const std::uint64_t times = now.switches - before.switches;
  const auto elapsed_ns = static_cast<std::uint64_t>(elapsed.count()) * 1'000'000;
  return used <= (times + 1) * kGlanceNs && used * 100 <= elapsed_ns * kGlancesPercent;
}

// Nullopt: all have slept. A main thread that has ended (Z) is as good as one that sleeps: the
// others go on.
std::optional<Finding> compare_threads(const ProcessLook& before, const ProcessLook& now,
                                       milliseconds elapsed) {
  for (const auto& [tid, thread] : *now.threads) {
    const auto known = before.threads->find(tid);
    if (known == before.threads->end())
      return makes_progress("thread " + std::to_string(tid) + " has begun");
    // One that looks often is found at it now and then; one that has not had the CPU waits for it.
    if (thread.state == 'R' && thread.run_ns == known->second.run_ns)
      return nobody_knows("thread " + std::to_string(tid) + " could run");
    if (thread.awaits_file)
      return nobody_knows("thread " + std::to_string(tid) +
                          " waits for data on their way to or from a file");
    if (thread.state == 't')
      return nobody_knows("thread " + std::to_string(tid) + " is held by a debugger");
    if (!only_glanced(known->second, thread, elapsed))
      return nobody_knows("thread " + std::to_string(tid) + " used the CPU");
  }
  return std::nullopt;
}

std::optional<Finding> compare(pid_t pid, const ProcessLook& before, const ProcessLook& now,
                               milliseconds elapsed) {
  if (now.started != before.started) return makes_progress(name_of(pid) + " has begun");
  if (!now.bytes || !before.bytes) return nobody_knows("what " + name_of(pid) + " does is secret");
  if (*now.bytes != *before.bytes) return makes_progress(name_of(pid) + " has read or written");
  if (now.child_faults != before.child_faults)
    return makes_progress("a child of " + name_of(pid) + " has ended");
  if (now.thread_count != before.thread_count ||
      (now.ended_threads && before.ended_threads &&
       now.ended_threads->least_ns > before.ended_threads->most_ns))
    return makes_progress("threads of " + name_of(pid) + " have begun or ended");
  if (is_busy(now.cpu_ms - before.cpu_ms, elapsed)) return nobody_knows(name_of(pid) + " is busy");
  if (now.major_faults != before.major_faults ||
      now.minor_faults - before.minor_faults > kIdleFaults)
    return nobody_knows(name_of(pid) + " uses more memory");
  if (!now.threads || !before.threads)
    return nobody_knows("the threads of " + name_of(pid) + " are not known");
  return compare_threads(before, now, elapsed);
}

// Nullopt: all of its processes have slept.
std::optional<Finding> compare_processes(const RankLook& before, const RankLook& now,
                                         milliseconds elapsed) {
  std::optional<Finding> doubt;
  for (const auto& [pid, process] : now.processes) {
    const auto known = before.processes.find(pid);
    if (known == before.processes.end()) return makes_progress(name_of(pid) + " has begun");
    auto finding = compare(pid, known->second, process, elapsed);
    if (!finding) continue;
    if (finding->activity == Activity::MakesProgress) return *finding;
    if (!doubt) doubt = std::move(finding);
  }
  for (const auto& [pid, process] : before.processes)
    if (!now.processes.contains(pid)) return makes_progress(name_of(pid) + " has ended");
  if (now.processes.empty()) return nobody_knows("it has no process");
  return doubt;
}

}  // namespace

bool is_busy(std::uint64_t used_ms, milliseconds elapsed) {
  return used_ms > kTickMs &&
         (used_ms - kTickMs) * 100 > static_cast<std::uint64_t>(elapsed.count()) * kBusyPercent;
}

bool seems_still(const RankLook& before, const RankLook& now, milliseconds elapsed) {
  return !compare_processes(before, now, elapsed);
}

Finding compare(const RankLook& before, const RankLook& now, milliseconds elapsed) {
  if (auto finding = compare_processes(before, now, elapsed)) return *finding;
  if (!now.opaque.empty()) return nobody_knows(now.opaque);
  if (!now.network_bytes) return nobody_knows("its connections are not known");
  // They are read only where all else is still.
  if (!before.network_bytes) return nobody_knows("it was busy, or used more memory, before");
  if (*now.network_bytes != *before.network_bytes)
    return makes_progress("something came or went by a connection");
  return {Activity::Waits, "all of its threads sleep"};
}

}  // namespace drun::hang
