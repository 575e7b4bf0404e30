#include "launcher/look/looker.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/small_file.hpp"
#include "base/whole_number.hpp"
#include "hang/waiting_processes.hpp"
#include "launcher/look/native_stacks.hpp"
#include "launcher/look/python_memory.hpp"
#include "launcher/look/thread_facts.hpp"
#include "launcher/process/descendants.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostProcesses = 64;
constexpr std::size_t kMostThreads = 400;  // of a process
// A thread of a busy machine may need so long to stop.
constexpr std::chrono::seconds kStopLimit{1};

constexpr int kMostShells = 16;  // one in another

// So long the first thread was on a CPU, in whole seconds: what is less tells nothing.
std::uint64_t run_seconds(pid_t pid) {
  const auto text = read_small_file("/proc/" + std::to_string(pid) + "/schedstat");
  if (!text) return 0;
  return whole_number<std::uint64_t>(std::string_view(*text).substr(0, text->find(' ')))
             .value_or(0) /
         1'000'000'000;
}

// The one for which a shell waits: of several, as in `train | tee log`, the one that has done the
// most, else the first. One that has forked itself is no shell, and its children do its work
// together. 0: none.
pid_t awaited_by(const ThreadFacts& shell, const std::vector<pid_t>& children) {
  if (children.size() == 1) return children.front();
  pid_t most = 0;
  for (const pid_t child : children) {
    if (facts_of(child, child).name == shell.name) return 0;
    if (most == 0 || run_seconds(child) > run_seconds(most)) most = child;
  }
  return most;
}

// The process that a rank is about. Who starts a program by a shell script has the shell for a
// worker, which only waits for the program: all ranks would look the same.
pid_t program_of(pid_t worker) {
  pid_t program = worker;
  for (int i = 0; i < kMostShells; ++i) {
    const auto children = process::children_of(program);
    if (children.empty() || threads_of(program).size() != 1) break;
    const ThreadFacts facts = facts_of(program, program);
    if (facts.call != "wait4" && facts.call != "waitid" && facts.wait != "do_wait") break;
    const pid_t awaited = awaited_by(facts, children);
    if (awaited == 0) break;
    program = awaited;
  }
  return program;
}

// A process with the facts of its threads.
struct Seen {
  int number = 0;
  pid_t pid = 0;
  bool own = false;
  std::vector<pid_t> threads;
  std::size_t all_threads = 0;
  std::vector<stacks::Sample> samples;  // as `threads`
};

// What /proc says of a thread.
stacks::Sample sample_of(const LookRequest::Worker& worker, pid_t pid, pid_t thread,
                         stacks::Kind kind) {
  ThreadFacts facts = facts_of(pid, thread);
  stacks::Sample sample;
  sample.rank = worker.rank;
  sample.kind = kind;
  if (kind != stacks::Kind::Worker) sample.name = std::move(facts.name);
  if (kind == stacks::Kind::Worker) {
    sample.silence = worker.silence;
    sample.never_printed = worker.never_printed;
  }
  sample.state = facts.state;
  sample.wait = std::move(facts.wait);
  sample.call = std::move(facts.call);
  return sample;
}

// The process among `pids` for which the worker waits, if that waits for nobody else; else 0.
pid_t awaited_child(pid_t worker, const std::vector<pid_t>& pids) {
  hang::RankLook rank;
  for (const pid_t pid : pids)
    rank.processes[pid];
  hang::Connections connections(0);
  return hang::whom_it_awaits(worker, hang::waiting_processes(worker, rank, connections)).child;
}

// `program`: see program_of(). `awaited`: see awaited_child().
Seen see(const LookRequest::Worker& worker, pid_t program, pid_t awaited, pid_t pid, int number) {
  Seen seen;
  seen.number = number;
  seen.pid = pid;
  seen.own = is_own_process(pid);
  seen.threads = threads_of(pid);
  seen.all_threads = seen.threads.size();
  if (seen.threads.size() > kMostThreads) seen.threads.resize(kMostThreads);
  const pid_t first = first_living(pid, seen.threads);
  for (const pid_t thread : seen.threads) {
    seen.samples.push_back(sample_of(worker, pid, thread,
                                     pid != program    ? stacks::Kind::Child
                                     : thread == first ? stacks::Kind::Worker
                                                       : stacks::Kind::Thread));
    seen.samples.back().awaited = pid == awaited && thread == first && pid != program;
  }
  return seen;
}

// If a tool hangs, there is time left for the native stacks.
Clock::time_point half_way(Clock::time_point deadline) {
  const auto now = Clock::now();
  return now + (deadline - now) / 2;
}

// What the kernel shows of a thread that has no stack of its own now.
void take_kernel_stack(stacks::Sample& sample, pid_t pid, pid_t thread) {
  if (sample.state == 'Z') {
    sample.problem = pid == thread && threads_of(pid).size() > 1
                         ? "it has ended, and other threads go on"
                         : "it has ended, and nobody has waited for it";
    return;
  }
  sample.frames = kernel_frames(pid, thread);
}

// Since the process has last written to a file that is its standard output or error: what goes
// there does not come by drun. The file system may give no answer.
void add_silence_of_files(stacks::Sample& sample, pid_t pid) {
  std::optional<std::chrono::nanoseconds> last;
  bool any = false;
  for (const char* const fd : {"1", "2"}) {
    struct stat file {};
    const std::string link = "/proc/" + std::to_string(pid) + "/fd/" + fd;
    if (::stat(link.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) continue;
    any = true;
    if (file.st_size == 0) continue;  // it was made, which is no output
    const auto written =
        std::chrono::seconds(file.st_mtim.tv_sec) + std::chrono::nanoseconds(file.st_mtim.tv_nsec);
    last = std::max(last.value_or(written), written);
  }
  if (any) sample.never_printed = !last;
  if (!last) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  sample.silence = std::max(std::chrono::duration_cast<std::chrono::milliseconds>(now - *last),
                            std::chrono::milliseconds(0));
}

// By drun itself, if it knows this version of Python; else by a tool.
Result<PythonStacks> stacks_of_python(const PythonTool& tool, pid_t pid,
                                      Clock::time_point deadline) {
  auto own = read_python_stacks(pid);
  if (own && !own->empty()) return own;
  const std::string why = own ? "it is at its start or its end" : own.error().what();
  const auto io_error = std::make_error_code(std::errc::io_error);
  if (tool.kind == PythonTool::Kind::None)
    return Error(io_error, "stacks of Python need 3.13 or later (" + why +
                               "), or py-spy or pystack in drun's PATH, not writable by others");
  auto found = python_stacks(tool, pid, deadline);
  if (found) return found;
  return Error(io_error, "no stacks of Python: " + found.error().what());
}

void look_closer(Seen& seen, const LookTools& tools, Clock::time_point deadline,
                 const LookCalls& calls) {
  if (!seen.own) {
    for (stacks::Sample& sample : seen.samples)
      sample.problem = "another user's process";
    return;
  }
  // Of a thread that has ended the kernel shows neither files nor memory.
  const pid_t alive = first_living(seen.pid, seen.threads);
  for (stacks::Sample& sample : seen.samples)
    if (sample.kind == stacks::Kind::Worker && !sample.silence) add_silence_of_files(sample, alive);
  PythonStacks python;
  if (tools.unwind && is_python(alive)) {
    const auto found = stacks_of_python(tools.python, alive, half_way(deadline));
    if (found)
      python = *found;
    else
      calls.note(found.error().what());
  }
  std::map<pid_t, NativeStack> native;
  if (tools.native)
    native = native_stacks(*tools.native, seen.pid, seen.threads,
                           std::min(deadline, Clock::now() + kStopLimit));
  for (std::size_t i = 0; i < seen.threads.size(); ++i) {
    const pid_t thread = seen.threads[i];
    stacks::Sample& sample = seen.samples[i];
    NativeStack& stack = native[thread];
    sample.frames = mixed(stack.frames, python[thread]);
    sample.problem = std::move(stack.problem);
    if (sample.frames.empty()) take_kernel_stack(sample, seen.pid, thread);
  }
}

}  // namespace

void look_at_state(const LookRequest::Worker& worker, const LookCalls& calls) {
  const pid_t program = program_of(worker.pid);
  const auto threads = threads_of(program);
  if (threads.empty()) return;
  const pid_t first = first_living(program, threads);
  calls.without_stack(0, sample_of(worker, program, first, stacks::Kind::Worker));
}

void look_at(const LookRequest::Worker& worker, const LookTools& tools, Clock::time_point deadline,
             const LookCalls& calls) {
  const pid_t program = program_of(worker.pid);
  if (program != worker.pid)
    calls.note("shown is '" + facts_of(program, program).name + "', for which '" +
               facts_of(worker.pid, worker.pid).name + "' waits");
  std::vector<pid_t> pids{worker.pid};
  const auto below = process::descendants_of(worker.pid);
  pids.insert(pids.end(), below.begin(), below.end());
  if (pids.size() > kMostProcesses) {
    calls.note("of " + std::to_string(pids.size()) + " processes the first " +
               std::to_string(kMostProcesses) + " were looked at");
    pids.resize(kMostProcesses);
  }
  // A worker with many processes: the one that it is about is among those that are looked at.
  if (std::find(pids.begin(), pids.end(), program) == pids.end()) pids.back() = program;
  const pid_t awaited = awaited_child(worker.pid, pids);
  std::vector<Seen> all;
  for (const pid_t pid : pids) {
    all.push_back(see(worker, program, awaited, pid, static_cast<int>(all.size())));
    for (const stacks::Sample& sample : all.back().samples)
      calls.without_stack(all.back().number, sample);
    if (all.back().all_threads > kMostThreads)
      calls.note("of " + std::to_string(all.back().all_threads) +
                 " threads of a process the first " + std::to_string(kMostThreads) +
                 " were looked at");
  }
  for (Seen& seen : all) {
    look_closer(seen, tools, deadline, calls);
    for (const stacks::Sample& sample : seen.samples)
      calls.with_stack(seen.number, sample);
    calls.done(seen.number);
  }
}

}  // namespace drun::launcher
