#include "hang/process_reader.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <ctime>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/file_worker.hpp"
#include "base/folder_names.hpp"
#include "base/process_files.hpp"
#include "base/small_file.hpp"
#include "base/split.hpp"
#include "base/system_call.hpp"
#include "base/whole_number.hpp"
#include "hang/connections.hpp"
#include "hang/stillness.hpp"
#include "hang/waiting_processes.hpp"

namespace drun::hang {
namespace {

std::string proc(pid_t pid) {
  return "/proc/" + std::to_string(pid);
}

struct Stat {
  char state = '?';
  pid_t parent = 0;
  pid_t group = 0;
  ProcessLook look;
};

std::optional<Stat> parse_stat(std::string_view text) {
  text = stat_from_state(text);
  if (text.empty()) return std::nullopt;
  static const std::uint64_t kMsPerTick =
      1'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  Stat stat;
  std::uint64_t ticks = 0;
  for (int field = 3; field <= 22; ++field) {
    const std::string_view word = take_until(text, ' ');
    const auto number = whole_number<std::int64_t>(word);
    const auto value = static_cast<std::uint64_t>(number.value_or(0));
    switch (field) {
      case 3:
        stat.state = word.empty() ? '?' : word.front();
        break;
      case 4:
        stat.parent = static_cast<pid_t>(value);
        break;
      case 5:
        stat.group = static_cast<pid_t>(value);
        break;
      case 10:
        stat.look.minor_faults = value;
        break;
      case 11:
      case 13:
        stat.look.child_faults += value;
        break;
      case 12:
        stat.look.major_faults = value;
        break;
      case 14:
      case 15:
        ticks += value;
        break;
      case 20:
        stat.look.thread_count = static_cast<int>(value);
        break;
      case 22:
        stat.look.started = value;
        break;
      default:
        break;
    }
  }
  stat.look.cpu_ms = ticks * kMsPerTick;
  return stat;
}

std::optional<ByteCounts> bytes_of(pid_t pid) {
  const auto text = read_small_file(proc(pid) + "/io");
  if (!text) return std::nullopt;
  ByteCounts counts;
  std::string_view rest = *text;
  while (!rest.empty()) {
    std::string_view value = take_until(rest, '\n');
    const std::string_view name = take_until(value, ':');
    if (!value.empty()) value.remove_prefix(1);
    const auto number = whole_number<std::uint64_t>(value).value_or(0);
    if (name == "rchar") counts.read = number;
    if (name == "wchar") counts.written = number;
    if (name == "read_bytes") counts.storage_read = number;
    if (name == "write_bytes") counts.storage_written = number;
  }
  return counts;
}

// "run_ns wait_ns times"
std::optional<ThreadLook> thread_of(const std::string& task) {
  const auto schedule = read_small_file(task + "/schedstat");
  const auto stat = read_small_file(task + "/stat");
  const auto parsed = stat ? parse_stat(*stat) : std::nullopt;
  if (!schedule || !parsed) return std::nullopt;
  std::string_view rest = *schedule;
  ThreadLook look;
  look.state = parsed->state;
  look.run_ns = whole_number<std::uint64_t>(take_until(rest, ' ')).value_or(0);
  take_until(rest, ' ');
  look.switches = whole_number<std::uint64_t>(take_until(rest, '\n')).value_or(0);
  return look;
}

std::optional<std::map<pid_t, ThreadLook>> threads_of(pid_t pid) {
  std::map<pid_t, ThreadLook> threads;
  const std::string tasks = proc(pid) + "/task";
  const bool listed = for_each_name(tasks, [&](std::string_view name) {
    const auto tid = whole_number<pid_t>(name);
    if (!tid) return;
    if (const auto look = thread_of(tasks + "/" + std::string(name))) threads.emplace(*tid, *look);
  });
  if (!listed || threads.empty()) return std::nullopt;
  return threads;
}

// Of all threads, those that have ended too.
std::optional<std::uint64_t> cpu_ns_of(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// All processes of this machine that may be seen, and which rank each belongs to.
class Processes {
 public:
  explicit Processes(const std::vector<WatchedRank>& ranks) {
    for (const WatchedRank& rank : ranks)
      owners_.emplace(rank.pid, rank.worker);
    roots_ = owners_;
    for_each_name("/proc", [this](std::string_view name) {
      const auto pid = whole_number<pid_t>(name);
      if (!pid) return;
      const auto text = read_small_file(proc(*pid) + "/stat");
      auto stat = text ? parse_stat(*text) : std::nullopt;
      // One whose main thread alone has ended lives on.
      if (stat && (stat->state != 'Z' || stat->look.thread_count > 1))
        stats_.emplace(*pid, std::move(*stat));
    });
  }

  template <typename Visit>
  void for_each(Visit visit) {
    for (auto& [pid, stat] : stats_)
      if (const auto owner = owner_of(pid)) visit(*owner, pid, stat);
  }

 private:
  // The worker above it; of an orphan, the one whose process group it has.
  std::optional<std::uint32_t> owner_of(pid_t pid) {
    if (const auto known = owners_.find(pid); known != owners_.end()) return known->second;
    const auto stat = stats_.find(pid);
    if (stat == stats_.end() || pid <= 1) return std::nullopt;
    owners_.emplace(pid, std::nullopt);  // ends a circle, which a change meanwhile may make
    auto owner = owner_of(stat->second.parent);
    if (!owner) {
      const auto group = roots_.find(stat->second.group);
      if (group != roots_.end()) owner = group->second;
    }
    owners_[pid] = owner;
    return owner;
  }

  std::unordered_map<pid_t, Stat> stats_;
  std::unordered_map<pid_t, std::optional<std::uint32_t>> owners_;
  std::unordered_map<pid_t, std::optional<std::uint32_t>> roots_;
};

// Adds what the threads do, unless the process is busy anyway.
void add_threads(pid_t pid, ProcessLook& look, const RankLook* before,
                 std::chrono::milliseconds elapsed) {
  if (before == nullptr) return;
  const auto known = before->processes.find(pid);
  if (known == before->processes.end() || known->second.started != look.started) return;
  if (is_busy(look.cpu_ms - known->second.cpu_ms, elapsed)) return;
  const std::optional<std::uint64_t> least = cpu_ns_of(pid);
  look.threads = threads_of(pid);
  const std::optional<std::uint64_t> most = cpu_ns_of(pid);
  if (!look.threads || !least || !most) return;
  std::uint64_t living = 0;
  for (const auto& [tid, thread] : *look.threads) {
    if (thread.state == 'R') return;  // the kernel has not counted its last moments yet
    living += thread.run_ns;
  }
  look.ended_threads = {*least - std::min(living, *least), *most - std::min(living, *most)};
}

// The names of the files that this process itself has open.
std::set<std::string> own_files() {
  std::set<std::string> names;
  const std::string folder = "/proc/self/fd";
  for_each_name(folder, [&](std::string_view name) {
    names.insert(link_target(folder + "/" + std::string(name)));
  });
  return names;
}

// Whether the thread waits for a file, perhaps far away, that is at work: until what was written is
// on its disk, or in one long read or write, whose bytes the kernel counts at its end. Also if it
// writes to one of `own`: that is what this process passes on, as soon as somebody takes it, who
// may be a person with a pager.
bool awaits_file(pid_t pid, pid_t tid, char state, bool woke, const std::set<std::string>& own) {
  constexpr std::array<long, 8> kUntilWritten{SYS_fsync,  SYS_fdatasync, SYS_sync,
                                              SYS_syncfs, SYS_msync,     SYS_sync_file_range,
                                              SYS_close,  SYS_exit_group};
  const std::string task = proc(pid) + "/task/" + std::to_string(tid);
  const auto text = read_small_file(task + "/syscall");
  if (!text) return state == 'D';  // perhaps
  const auto call = system_call_in(*text);
  if (!call) return false;
  if (std::find(kUntilWritten.begin(), kUntilWritten.end(), call->number) != kUntilWritten.end())
    return true;
  if (!call->file) return false;
  const std::string file = link_target(task + "/fd/" + std::to_string(*call->file));
  if ((call->number == SYS_write || call->number == SYS_writev) && own.contains(file)) return true;
  return woke &&
         (file.starts_with("pipe:[") || (file.starts_with('/') && !file.starts_with("/dev/")));
}

// Adds which threads do so, of a rank all of whose threads slept.
void add_file_waits(RankLook& rank, const RankLook& before, const std::set<std::string>& own,
                    bool disturbed) {
  for (auto& [pid, process] : rank.processes) {
    about_to("look at the threads of process " + std::to_string(pid));
    for (auto& [tid, thread] : *process.threads) {
      if (thread.state != 'S' && thread.state != 'D') continue;
      const ThreadLook& known = before.processes.at(pid).threads->at(tid);
      const bool woke = !disturbed && thread.switches != known.switches;
      thread.awaits_file = awaits_file(pid, tid, thread.state, woke, own);
    }
  }
}

// Why nobody can know what this process waits for, by a file that it has open.
std::string opaque_by(std::string_view file) {
  for (const std::string_view device :
       {"/dev/nvidia", "/dev/dxg", "/dev/nvgpu", "/dev/nvhost", "/dev/kfd", "/dev/dri/",
        "/dev/accel", "/dev/hl", "/dev/neuron", "/dev/davinci", "/dev/vfio/"})
    if (file.starts_with(device)) return "it uses a GPU or the like";
  for (const std::string_view device : {"/dev/infiniband/", "/dev/cxi", "/dev/hfi1"})
    if (file.starts_with(device)) return "it uses InfiniBand or the like";
  // The kernel counts no bytes of what is read and written so.
  if (file == "anon_inode:[io_uring]") return "it uses io_uring";
  return {};
}

// Adds what its connections have moved, or why that says nothing.
void add_files(RankLook& rank, Connections& connections, const std::string& own_network) {
  std::uint64_t bytes = 0;
  for (const auto& [pid, process] : rank.processes) {
    about_to("look at the files of process " + std::to_string(pid));
    // Of a main thread that has ended the kernel shows no files; all threads have the same.
    const std::string task = proc(pid) + "/task/" + std::to_string(first_thread(pid));
    if (link_target(task + "/ns/net") != own_network) rank.opaque = "it has a network of its own";
    const std::string folder = task + "/fd";
    const bool listed = for_each_name(folder, [&](std::string_view name) {
      const std::string file = link_target(folder + "/" + std::string(name));
      if (auto reason = opaque_by(file); !reason.empty()) rank.opaque = std::move(reason);
      bytes += connections.bytes_of(file);
    });
    if (!listed) rank.opaque = "its files are secret";
    if (!rank.opaque.empty()) return;
  }
  if (connections.known()) rank.network_bytes = bytes;
}

}  // namespace

NodeLook look_at(const std::vector<WatchedRank>& ranks, const NodeLook& before,
                 std::uint16_t store_port, bool disturbed) {
  NodeLook now;
  now.at = std::chrono::steady_clock::now();
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(now.at - before.at);
  const auto earlier = [&](std::uint32_t worker) -> const RankLook* {
    const auto known = before.ranks.find(worker);
    return known == before.ranks.end() ? nullptr : &known->second;
  };
  // Of one that may not be seen nobody knows.
  for (const WatchedRank& rank : ranks)
    now.ranks[rank.worker];
  about_to("look at the processes in /proc");
  Processes processes(ranks);
  processes.for_each([&](std::uint32_t worker, pid_t pid, Stat& stat) {
    about_to("look at process " + std::to_string(pid));
    stat.look.bytes = bytes_of(pid);
    add_threads(pid, stat.look, earlier(worker), elapsed);
    now.ranks[worker].processes.emplace(pid, std::move(stat.look));
  });
  Connections connections(store_port);
  const std::string own_network = link_target("/proc/self/ns/net");
  std::set<std::string> own;
  for (auto& [worker, rank] : now.ranks) {
    const RankLook* const known = earlier(worker);
    if (known == nullptr || !seems_still(*known, rank, elapsed)) continue;
    if (own.empty()) own = own_files();
    add_file_waits(rank, *known, own, disturbed);
    add_files(rank, connections, own_network);
  }
  return now;
}

}  // namespace drun::hang
