// The real machine's devices.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "drun/base/file_descriptor.hpp"
#include "launcher/devices.hpp"
#include "launcher/options_values.hpp"

namespace drun::launcher {
namespace {

constexpr std::chrono::seconds kNvmlLimit{30};  // the driver may have to wake the GPUs first

int affinity_count() {
  // The kernel wants room for all the CPUs that it was built for.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(static_cast<std::size_t>(cpus)), [](cpu_set_t* each) { CPU_FREE(each); });
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    if (set == nullptr) break;
    if (::sched_getaffinity(0, size, set.get()) == 0) {
      return std::max(1, CPU_COUNT_S(size, set.get()));
    }
    if (errno != EINVAL) break;
  }
  return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return std::nullopt;
  return text.str();
}

std::vector<std::string> list_directory(const std::string& directory) {
  std::vector<std::string> result;
  const std::unique_ptr<DIR, int (*)(DIR*)> handle(::opendir(directory.c_str()), ::closedir);
  if (handle == nullptr) return result;
  while (const dirent* entry = ::readdir(handle.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") result.emplace_back(name);
  }
  std::sort(result.begin(), result.end());
  return result;
}

// ---- NVML: declared here, because its header is not needed to use it ----

using NvmlDevice = void*;
constexpr int kNvmlSuccess = 0;

template <typename Function>
bool load(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

// One line per GPU with its UUID; nullopt: no library, or the driver is not there.
std::optional<std::string> ask_nvml() {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, NvmlDevice*) = nullptr;
  int (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  if (!load(library, "nvmlInit_v2", init) || !load(library, "nvmlDeviceGetCount_v2", count) ||
      !load(library, "nvmlDeviceGetHandleByIndex_v2", handle) ||
      !load(library, "nvmlDeviceGetUUID", uuid)) {
    return std::nullopt;
  }
  unsigned gpus = 0;
  if (init() != kNvmlSuccess || count(&gpus) != kNvmlSuccess) return std::nullopt;
  std::string result;
  for (unsigned i = 0; i < gpus; ++i) {
    NvmlDevice device = nullptr;
    std::array<char, 96> text{};
    if (handle(i, &device) == kNvmlSuccess) {
      (void)uuid(device, text.data(), static_cast<unsigned>(text.size() - 1));
    }
    result += std::string(text.data()) + "\n";
  }
  return result;
}

// What the kernel module says, where a container has no NVML.
std::optional<std::string> ask_proc() {
  const std::string directory = "/proc/driver/nvidia/gpus";
  std::string result;
  for (const std::string& gpu : list_directory(directory)) {
    const auto path = std::filesystem::path(directory) / gpu / "information";
    const std::string text = read_file(path.string()).value_or("");
    const auto at = text.find("GPU-");
    const auto end = text.find_first_of(" \t\n", at);
    result += (at == std::string::npos ? "" : text.substr(at, end - at)) + "\n";
  }
  if (result.empty()) return std::nullopt;
  return result;
}

// All that arrives until the other end closes or the time is over.
std::string read_all(int fd, std::chrono::steady_clock::time_point deadline) {
  std::string result;
  std::array<char, 4096> buffer{};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd ready{fd, POLLIN, 0};
    const int polled = ::poll(&ready, 1, std::max(0, static_cast<int>(left.count())));
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) return "";
    const auto got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return result;
    result.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

// NVML runs in a child: it leaves threads and descriptors behind, and drun forks later.
std::optional<NvidiaGpus> nvidia_gpus() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return std::nullopt;
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto text = ask_nvml();
    if (!text) text = ask_proc();
    const std::string answer = text ? "+\n" + *text : "-\n";
    std::size_t written = 0;
    while (written < answer.size()) {
      const auto n = ::write(writer.get(), answer.data() + written, answer.size() - written);
      if (n < 0 && errno != EINTR) break;
      if (n > 0) written += static_cast<std::size_t>(n);
    }
    ::_exit(0);
  }
  writer.reset();
  const std::string answer = read_all(reader.get(), std::chrono::steady_clock::now() + kNvmlLimit);
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!answer.starts_with("+\n")) return std::nullopt;
  NvidiaGpus result;
  result.uuids = split(std::string_view(answer).substr(2), '\n');
  result.uuids.pop_back();  // after the last line's end
  return result;
}

}  // namespace

Machine this_machines_devices() {
  Machine machine;
  machine.affinity = affinity_count();
  machine.files = {read_file, list_directory};
  machine.nvidia = nvidia_gpus;
  return machine;
}

}  // namespace drun::launcher
