// Stands in for NVIDIA's libnvidia-ml.so.1: the devices that FAKE_NVML names, as
// "UUID@DOMAIN:BUS:DEVICE" with blanks between; FAKE_NVML_MIG maps slices, "MIG-x=INDEX". Without
// FAKE_NVML there is no driver; with FAKE_NVML_CRASHES the library ends its process. FAKE_NVML_ECC:
// how many uncorrected errors each device has; FAKE_NVML_PENDING: rows wait to be remapped.
// FAKE_NVML_PROCESSES: a file with a line "INDEX PID [KIB [PERCENT]]" for each process that a
// device has, "-" for a number that the driver does not know; who asks makes a file of that name
// with
// ".asked" behind. With "dies" in it the library ends its process, with "hangs" it never answers.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Fake {
  std::string uuid;
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  int mig_parent = -1;
};
struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

constexpr int kSuccess = 0;
constexpr int kFailure = 6;  // NVML_ERROR_NOT_FOUND
std::vector<Fake>* devices = nullptr;
std::vector<Fake>* slices = nullptr;

void read_devices(const char* text) {
  devices = new std::vector<Fake>;
  slices = new std::vector<Fake>;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    Fake fake;
    const auto at = word.find('@');
    fake.uuid = word.substr(0, at);
    if (std::sscanf(word.c_str() + at, "@%x:%x:%x", &fake.domain, &fake.bus, &fake.device) != 3) {
      std::abort();
    }
    devices->push_back(fake);
  }
  const char* mig = std::getenv("FAKE_NVML_MIG");
  std::istringstream pairs(mig == nullptr ? "" : mig);
  for (std::string word; pairs >> word;) {
    Fake fake;
    const auto equals = word.find('=');
    fake.uuid = word.substr(0, equals);
    fake.mig_parent = std::stoi(word.substr(equals + 1));
    slices->push_back(fake);
  }
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int nvmlInit_v2() {
  if (std::getenv("FAKE_NVML_CRASHES") != nullptr) std::abort();
  const char* text = std::getenv("FAKE_NVML");
  if (text == nullptr) return kFailure;
  read_devices(text);
  return kSuccess;
}
EXPORT int nvmlShutdown() {
  delete devices;
  delete slices;
  devices = slices = nullptr;
  return kSuccess;
}
EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(devices->size());
  return kSuccess;
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index >= devices->size() || (*devices)[index].uuid == "lost") return kFailure;
  *handle = &(*devices)[index];
  return kSuccess;
}
EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  for (auto& slice : *slices) {
    if (slice.uuid != uuid) continue;
    *handle = &slice;
    return kSuccess;
  }
  return kFailure;
}
EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void* slice, void** handle) {
  *handle = &(*devices)[static_cast<std::size_t>(static_cast<Fake*>(slice)->mig_parent)];
  return kSuccess;
}
struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
struct Listed {
  unsigned pid = 0;
  std::string kib;
  std::string percent;
};
// Of a device.
std::vector<Listed> listed(void* handle, const char* file) {
  const auto own = static_cast<unsigned>(static_cast<Fake*>(handle) - devices->data());
  std::vector<Listed> result;
  std::ifstream lines(file);
  if (lines.peek() == 'd') std::_Exit(1);
  while (lines.peek() == 'h')
    ::pause();
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    unsigned index = 0;
    Listed process;
    if (!(words >> index >> process.pid) || index != own) continue;
    words >> process.kib >> process.percent;
    result.push_back(process);
  }
  return result;
}
struct UtilizationSample {
  unsigned pid;
  unsigned long long time_us;
  unsigned sm, memory, encoder, decoder;
};
EXPORT int nvmlDeviceGetProcessUtilization(void* handle, UtilizationSample* list, unsigned* count,
                                           unsigned long long since) {
  constexpr int kNotSupported = 3;
  const char* file = std::getenv("FAKE_NVML_PROCESSES");
  if (file == nullptr) return kFailure;
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const auto time = static_cast<unsigned long long>(now.count());
  unsigned found = 0;
  for (const Listed& process : listed(handle, file)) {
    if (process.percent == "-") return kNotSupported;
    if (process.percent.empty() || found + 3 > *count) continue;
    const auto percent = static_cast<unsigned>(std::stoul(process.percent));
    list[found++] = {process.pid, since, 99, 0, 0, 0};  // as drivers do: an old one, an absurd one
    list[found++] = {process.pid, time, 4'000'000'000, 0, 0, 0};
    list[found++] = {process.pid, time, percent, 0, 0, 0};
  }
  *count = found;
  return found == 0 ? kFailure : kSuccess;
}
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count,
                                                   ProcessInfo* list) {
  const char* file = std::getenv("FAKE_NVML_PROCESSES");
  if (file == nullptr) return kFailure;
  std::ofstream(std::string(file) + ".asked") << "";
  unsigned found = 0;
  for (const Listed& process : listed(handle, file)) {
    if (found == *count) break;
    auto memory = 1ULL << 20;
    if (process.kib == "-")
      memory = ~0ULL;
    else if (!process.kib.empty())
      memory = std::stoull(process.kib) * 1'024;
    list[found++] = {process.pid, memory, 0, 0};
  }
  *count = found;
  return kSuccess;
}
EXPORT int nvmlDeviceGetUUID(void* handle, char* text, unsigned length) {
  std::snprintf(text, length, "%s", static_cast<Fake*>(handle)->uuid.c_str());
  return kSuccess;
}
EXPORT int nvmlDeviceGetPciInfo_v3(void* handle, PciInfo* info) {
  const auto* fake = static_cast<Fake*>(handle);
  std::memset(info, 0, sizeof *info);
  info->domain = fake->domain;
  info->bus = fake->bus;
  info->device = fake->device;
  return kSuccess;
}
EXPORT int nvmlDeviceGetTotalEccErrors(void* /*handle*/, int type, int counter,
                                       unsigned long long* count) {
  constexpr int kUncorrected = 1;
  constexpr int kVolatile = 0;
  if (type != kUncorrected || counter != kVolatile) return kFailure;
  const char* text = std::getenv("FAKE_NVML_ECC");
  *count = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  return kSuccess;
}
EXPORT int nvmlDeviceGetRemappedRows(void* /*handle*/, unsigned* corrected, unsigned* uncorrected,
                                     unsigned* pending, unsigned* failed) {
  *corrected = *uncorrected = *failed = 0;
  *pending = std::getenv("FAKE_NVML_PENDING") == nullptr ? 0 : 1;
  return kSuccess;
}
