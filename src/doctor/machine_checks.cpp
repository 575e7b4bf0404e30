#include "doctor/machine_checks.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/addresses.hpp"
#include "base/file_descriptor.hpp"
#include "base/printable.hpp"
#include "base/size_text.hpp"
#include "base/small_file.hpp"
#include "base/tcp_calls.hpp"
#include "base/trimmed.hpp"
#include "facts/gather.hpp"

namespace drun::doctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMiB = 1'048'576;
constexpr std::uint64_t kGiB = 1'024 * kMiB;
constexpr std::uint64_t kLeastShm = kGiB;
constexpr std::uint64_t kLeastFiles = 8'192;
constexpr std::uint64_t kLeastProcesses = 4'096;
constexpr std::uint64_t kLeastFree = kGiB;
constexpr std::size_t kTried = 16 * kMiB;
constexpr std::uint64_t kSlowDisk = 20;  // megabytes in a second

Check judge_name(const MachineState& state) {
  const std::string name = printable(state.host);
  const auto& addresses = state.host_addresses;
  if (addresses.empty())
    return warned("host name", "the own name has no address here",
                  "name nodes by address, or put the name into DNS or /etc/hosts");
  if (std::all_of(addresses.begin(), addresses.end(), is_loopback_address))
    return warned("host name", "the own name is " + addresses.front() + " here",
                  "as --rdzv-endpoint of several machines give an address that the others reach, "
                  "or mend /etc/hosts");
  return passed("host name", name + " is " + addresses.front());
}

Check judge_shm(const MachineState& state) {
  const std::string size = size_text(state.shm_bytes);
  const std::string left = size_text(state.shm_free) + " of " + size + " are free";
  if (state.shm_bytes < kLeastShm)
    return warned("/dev/shm", size + " are few for NCCL and data loaders",
                  "give the container more: --shm-size, --ipc host, or an emptyDir of memory");
  if (state.shm_free < kLeastShm / 2)
    return warned("/dev/shm", left, "remove what earlier jobs have left there");
  return passed("/dev/shm", left);
}

Check judge_locked_memory(const MachineState& state) {
  const std::string limit = size_text(state.locked_memory);
  if (state.has_rdma && state.locked_memory != RLIM_INFINITY)
    return warned("locked memory", "RDMA may lock " + limit + " only",
                  "ulimit -l unlimited where drun is started; in a container --ulimit memlock=-1");
  return passed("locked memory", limit);
}

Check judge_clock(const facts::Sheet& sheet) {
  const auto clock = sheet.find("clock");
  if (clock == sheet.end()) return passed("clock", "the kernel does not tell");
  if (clock->second == "synchronised") return passed("clock", clock->second);
  return warned("clock", clock->second, "start chrony or another NTP client");
}

Check judge_number(const char* name, std::uint64_t limit, std::uint64_t least, const char* mend) {
  const std::string text =
      limit == RLIM_INFINITY ? "unlimited" : "at most " + std::to_string(limit);
  return limit < least ? warned(name, text, mend) : passed(name, text);
}

Error system_error(const std::string& what) {
  const int error = errno;
  return {std::error_code(error, std::generic_category()), what};
}

// How long it took to write `kTried` bytes and to read them again; they were the same.
Result<std::pair<Clock::duration, bool>> try_file(const std::string& folder) {
  std::string name = folder + "/drun-doctor-XXXXXX";
  const FileDescriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file) return system_error("make a file");
  (void)::unlink(name.c_str());
  const std::string block(kMiB, '\xa5');
  const auto start = Clock::now();
  for (std::size_t at = 0; at < kTried; at += block.size())
    if (::pwrite(file.get(), block.data(), block.size(), static_cast<off_t>(at)) !=
        static_cast<ssize_t>(block.size()))
      return system_error("write");
  if (::fsync(file.get()) != 0) return system_error("sync");
  const auto took = Clock::now() - start;
  std::string back(kMiB, '\0');
  bool same = true;
  for (std::size_t at = 0; at < kTried; at += block.size()) {
    if (::pread(file.get(), back.data(), back.size(), static_cast<off_t>(at)) !=
        static_cast<ssize_t>(back.size()))
      return system_error("read");
    same = same && back == block;
  }
  return std::pair{took, same};
}

}  // namespace

MachineState look_at_machine(const std::string& root) {
  MachineState state;
  struct statvfs shm {};
  if (::statvfs((root + "/dev/shm").c_str(), &shm) == 0) {
    state.shm_bytes = std::uint64_t{shm.f_blocks} * shm.f_frsize;
    state.shm_free = std::uint64_t{shm.f_bavail} * shm.f_frsize;
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) state.open_files = limit.rlim_max;
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) state.locked_memory = limit.rlim_cur;
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0) state.processes = limit.rlim_cur;
  std::error_code error;
  state.has_rdma = std::filesystem::directory_iterator(root + "/sys/class/infiniband", error) !=
                       std::filesystem::directory_iterator() &&
                   !error;
  state.host = own_host_name();
  state.host_addresses = look_up(state.host);
  state.lustre =
      trimmed(read_small_file(root + "/sys/fs/lustre/health_check").value_or(std::string()));
  return state;
}

std::vector<Check> judge_machine(const MachineState& state, const facts::Sheet& sheet) {
  std::vector<Check> checks{judge_name(state), judge_clock(sheet), judge_shm(state),
                            judge_locked_memory(state)};
  checks.push_back(judge_number("open files", state.open_files, kLeastFiles,
                                "raise the hard limit: ulimit -Hn, LimitNOFILE=, nofile"));
  checks.push_back(judge_number("processes", state.processes, kLeastProcesses,
                                "raise the limit: ulimit -u, nproc"));
  if (!state.lustre.empty())
    checks.push_back(state.lustre == "healthy"
                         ? passed("lustre", state.lustre)
                         : failed("lustre", printable(state.lustre), "tell your administrator"));
  return checks;
}

Check check_disk(const std::string& folder) {
  const std::string place = as_name(folder);
  struct statvfs room {};
  if (::statvfs(folder.c_str(), &room) != 0)
    return failed("disk", place + ": " + std::generic_category().message(errno),
                  "TMPDIR names another folder");
  if (room.f_files > 0 && room.f_favail == 0)
    return failed("disk", place + " has no room for another file", "remove some");
  const std::uint64_t left = std::uint64_t{room.f_bavail} * room.f_frsize;
  const auto tried = try_file(folder);
  if (!tried)
    return failed("disk",
                  "cannot " + std::string(tried.error().what()) + " in " + place + ": " +
                      tried.error().code().message(),
                  "TMPDIR names another folder");
  const auto& [took, same] = *tried;
  if (!same)
    return failed("disk", place + " gives back other bytes than it got", "do not use this disk");
  const auto microseconds = std::max<std::int64_t>(
      1, std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  const std::uint64_t speed = kTried / static_cast<std::uint64_t>(microseconds);
  const std::string text =
      place + ": " + std::to_string(speed) + " MB/s, " + size_text(left) + " are free";
  if (left < kLeastFree) return warned("disk", text, "make room");
  if (speed < kSlowDisk) return warned("disk", text, "TMPDIR names another folder");
  return passed("disk", text);
}

Check check_memory() {
  constexpr std::size_t kWords = kTried / sizeof(std::uint64_t);
  std::vector<std::uint64_t> words(kWords);
  for (const std::uint64_t pattern : {0xaaaaaaaaaaaaaaaaU, 0x5555555555555555U}) {
    for (std::size_t i = 0; i < kWords; ++i)
      words[i] = pattern ^ i;
    for (std::size_t i = 0; i < kWords; ++i)
      if (words[i] != (pattern ^ i))
        return failed("memory", "a word came back changed", "do not use this machine");
  }
  return passed("memory", size_text(kTried) + " came back as they were");
}

}  // namespace drun::doctor
