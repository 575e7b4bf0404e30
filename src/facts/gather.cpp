#include "facts/gather.hpp"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

#include <gnu/libc-version.h>

#include "base/addresses.hpp"
#include "base/cgroup_mounts.hpp"
#include "base/file_descriptor.hpp"
#include "base/file_worker.hpp"
#include "base/fnv1a.hpp"
#include "base/hex.hpp"
#include "base/size_text.hpp"
#include "base/small_file.hpp"
#include "base/split.hpp"
#include "base/trimmed.hpp"
#include "base/usable_cpus.hpp"
#include "base/whole_number.hpp"
#include "drun/version.hpp"
#include "facts/fact_table.hpp"

namespace drun::facts {
namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& path) {
  const auto text = read_small_file(path);
  if (!text) return "";
  std::string_view rest = *text;
  return std::string(trimmed(take_until(rest, '\n')));
}

void put(Sheet& sheet, std::string_view key, std::string value) {
  if (!value.empty()) sheet.emplace(key, std::move(value));
}

std::string digest(const FactsQuery& question, std::string_view name, std::string_view value) {
  std::string text = question.salt;
  text += '\0';
  text += name;
  text += '\0';
  text += value;
  const std::uint64_t hash = fnv1a(text);
  std::string result;
  for (unsigned shift = 64; shift > 0; shift -= 8) {
    const char byte = static_cast<char>(hash >> (shift - 8));
    append_hex(result, std::string_view(&byte, 1));
  }
  return result;
}

void gather_system(const FactsQuery& question, Sheet& sheet) {
  utsname system{};
  if (::uname(&system) == 0) put(sheet, "kernel", system.release);
  put(sheet, "glibc", ::gnu_get_libc_version());
  put(sheet, "drun", DRUN_VERSION_STRING);
  put(sheet, "boot", first_line(question.root + "/proc/sys/kernel/random/boot_id"));
  // Only looks: no mode is set.
  timex clock{};
  if (const int state = ::adjtimex(&clock); state >= 0)
    put(sheet, "clock",
        state != TIME_ERROR && (clock.status & STA_UNSYNC) == 0 ? "synchronised"
                                                                : "not synchronised");
}

// The lowest limit of this process's cgroup and those above it.
std::optional<std::uint64_t> memory_limit(const std::string& root) {
  const auto groups = read_small_file(root + "/proc/self/cgroup");
  const auto mounts = read_small_file(root + "/proc/self/mountinfo");
  if (!groups || !mounts) return std::nullopt;
  std::optional<std::uint64_t> lowest;
  for (const CgroupLine& line : parse_cgroup_lines(*groups)) {
    const std::string_view controller = line.unified ? "" : "memory";
    if (!line.unified && !has_element(line.controllers, "memory")) continue;
    const auto mount = find_cgroup_mount(*mounts, controller);
    if (!mount) continue;
    const std::string file = line.unified ? "/memory.max" : "/memory.limit_in_bytes";
    std::string below = below_mount(*mount, line.path).value_or("");
    while (true) {
      const auto limit =
          whole_number<std::uint64_t>(first_line(root + mount->point + below + file));
      if (limit) lowest = std::min(lowest.value_or(*limit), *limit);
      if (below.empty()) break;
      below.resize(below.rfind('/'));
    }
  }
  return lowest;
}

void gather_room(const FactsQuery& question, Sheet& sheet) {
  const std::string& root = question.root;
  about_to("look at /dev/shm");
  struct statvfs shm {};
  if (::statvfs((root + "/dev/shm").c_str(), &shm) == 0)
    put(sheet, "shm", size_text(std::uint64_t{shm.f_blocks} * shm.f_frsize));
  std::optional<std::uint64_t> memory = memory_limit(root);
  // "MemTotal:  65792 kB"; nodes of one kind differ by a few pages.
  std::string_view total;
  const auto meminfo = read_small_file(root + "/proc/meminfo");
  std::string_view rest = meminfo ? std::string_view(*meminfo) : std::string_view();
  while (!rest.empty() && total.empty())
    if (std::string_view line = take_until(rest, '\n'); take_until(line, ':') == "MemTotal")
      total = trimmed(line.substr(0, line.rfind(' ')));
  if (const auto kib = whole_number<std::uint64_t>(total))
    memory = std::min(memory.value_or(*kib * 1024), *kib * 1024);
  if (memory) put(sheet, "memory", size_text(*memory));
  try {
    const UsableCpus cpus{own_affinity(), read_cpu_quota(root)};
    put(sheet, "cpus", std::to_string(cpus.count()));
  } catch (const std::system_error&) {
    // A kernel that does not tell: nothing to compare.
  }
}

void gather_limits(const FactsQuery& question, Sheet& sheet) {
  const auto limit = [](__rlimit_resource_t resource) {
    rlimit result{};
    return ::getrlimit(resource, &result) == 0 ? result.rlim_cur : RLIM_INFINITY;
  };
  const rlim_t files = question.open_files ? question.open_files->rlim_cur : limit(RLIMIT_NOFILE);
  put(sheet, "nofile", files == RLIM_INFINITY ? "unlimited" : std::to_string(files));
  put(sheet, "memlock", size_text(limit(RLIMIT_MEMLOCK)));
  put(sheet, "stack", size_text(limit(RLIMIT_STACK)));
  put(sheet, "core", size_text(limit(RLIMIT_CORE)));
}

// "8 x NVIDIA H100 80GB HBM3", of several models "4 x A, 4 x B".
std::string nvidia_gpus(const std::string& root) {
  std::map<std::string, int> models;
  std::error_code error;
  for (fs::directory_iterator at(root + "/proc/driver/nvidia/gpus", error), end;
       !error && at != end; at.increment(error)) {
    std::string model = "unknown";
    const auto text = read_small_file(at->path().string() + "/information");
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    while (!rest.empty())
      if (std::string_view line = take_until(rest, '\n'); take_until(line, ':') == "Model")
        model = trimmed(line);
    ++models[model];
  }
  std::string result;
  for (const auto& [model, count] : models)
    result += (result.empty() ? "" : ", ") + std::to_string(count) + " x " + model;
  return result;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue ...": the first word that is a
// number with points.
std::string nvidia_driver(const std::string& root) {
  const std::string line = first_line(root + "/proc/driver/nvidia/version");
  std::string_view rest = line;
  while (!rest.empty()) {
    const std::string_view word = take_until(rest, ' ');
    if (!word.empty() && word.find('.') != word.npos &&
        word.find_first_not_of("0123456789.") == word.npos)
      return std::string(word);
  }
  return "";
}

void gather_devices(const FactsQuery& question, Sheet& sheet) {
  about_to("look at the GPUs");
  put(sheet, "gpus", nvidia_gpus(question.root));
  std::string driver = nvidia_driver(question.root);
  if (driver.empty()) driver = first_line(question.root + "/sys/module/amdgpu/version");
  put(sheet, "driver", std::move(driver));
}

std::string interface_with(const std::string& address) {
  for (const Interface& interface : own_interfaces())
    if (std::find(interface.addresses.begin(), interface.addresses.end(), address) !=
        interface.addresses.end())
      return interface.name;
  return "";
}

// The node that others meet at is known by the name that they meet at.
std::string own_address(const FactsQuery& question) {
  const bool is_name = numeric_addresses(question.address).empty();
  for (const std::string& address :
       is_name ? question.look_up(question.address) : std::vector{question.address})
    if (is_own_address(address) && !is_loopback_address(address)) return address;
  return "";
}

void gather_network(const FactsQuery& question, Sheet& sheet) {
  if (question.address.empty()) return;
  const std::string address = own_address(question);
  if (const int mtu = mtu_at(address); mtu > 0) put(sheet, "mtu", std::to_string(mtu));
  const std::string name = interface_with(address);
  if (name.empty()) return;
  const auto speed =
      whole_number<int>(first_line(question.root + "/sys/class/net/" + name + "/speed"));
  if (speed && *speed > 0) put(sheet, "speed", std::to_string(*speed) + " Mbit/s");
}

void gather_variables(const FactsQuery& question, Sheet& sheet) {
  for (const std::string& entry : question.environment) {
    std::string_view value = entry;
    const std::string_view name = take_until(value, '=');
    if (is_compared_variable(name))
      put(sheet, std::string(kVariablePrefix) + std::string(name), digest(question, name, value));
  }
}

// The size, the beginning and the end: whole checkpoints are not read.
std::string contents(const std::string& path) {
  constexpr std::size_t kPart = 262'144;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::size_t>(std::max<std::streamoff>(0, file.tellg()));
  std::string text(std::min(size, 2 * kPart), '\0');
  const std::size_t head = std::min(size, kPart);
  file.seekg(0);
  file.read(text.data(), static_cast<std::streamsize>(head));
  file.seekg(static_cast<std::streamoff>(size - (text.size() - head)));
  file.read(text.data() + head, static_cast<std::streamsize>(text.size() - head));
  return file ? std::to_string(size) + " " + text : "";
}

void gather_program(const FactsQuery& question, Sheet& sheet) {
  std::string all;
  for (const std::string& path : question.files) {
    about_to("read " + path);
    std::error_code error;
    if (!fs::is_regular_file(path, error)) continue;
    all += contents(path);
    all += '\0';
  }
  if (!all.empty()) put(sheet, "program", digest(question, "program", all));
}

}  // namespace

int mtu_at(const std::string& address) {
  const std::string name = interface_with(address);
  ifreq request{};
  if (name.empty() || name.size() >= sizeof request.ifr_name) return 0;
  name.copy(request.ifr_name, name.size());
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::ioctl(socket.get(), SIOCGIFMTU, &request) != 0) return 0;
  return request.ifr_mtu;
}

Sheet gather(const FactsQuery& question) {
  Sheet sheet;
  gather_system(question, sheet);
  gather_room(question, sheet);
  gather_limits(question, sheet);
  gather_devices(question, sheet);
  gather_network(question, sheet);
  gather_variables(question, sheet);
  gather_program(question, sheet);
  gather_python(question, sheet);
  return sheet;
}

}  // namespace drun::facts
