// Stands in for libnvidia-ml.so.1: FAKE_NVML_GPUS GPUs, or a driver that does not answer.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

unsigned gpus() {
  const char* count = std::getenv("FAKE_NVML_GPUS");
  return count == nullptr ? 0 : static_cast<unsigned>(std::atoi(count));
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int nvmlInit_v2() {
  if (std::getenv("FAKE_NVML_CRASHES") != nullptr) std::abort();
  return std::getenv("FAKE_NVML_FAILS") != nullptr ? 9 : 0;
}

__attribute__((visibility("default"))) int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpus();
  return 0;
}

__attribute__((visibility("default"))) int nvmlDeviceGetHandleByIndex_v2(unsigned index,
                                                                         void** device) {
  static char handles[64];
  *device = &handles[index];
  return index == 3 ? 15 : 0;  // one GPU is lost
}

__attribute__((visibility("default"))) int nvmlDeviceGetUUID(void*, char* uuid, unsigned length) {
  static unsigned asked = 0;
  std::snprintf(uuid, length, "GPU-%04x", asked++);
  return 0;
}
}
