#include "launcher/process/usage.hpp"

namespace drun::process {

Usage from_rusage(const rusage& usage) {
  Usage result;
  result.cpu_ms = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000 +
                  (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1'000;
  result.peak_kib = usage.ru_maxrss;
  result.read_kib = usage.ru_inblock / 2;  // blocks of 512 bytes
  result.written_kib = usage.ru_oublock / 2;
  result.switches = usage.ru_nvcsw + usage.ru_nivcsw;
  return result;
}

}  // namespace drun::process
