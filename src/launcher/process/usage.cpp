#include "launcher/process/usage.hpp"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/folder_names.hpp"
#include "base/process_files.hpp"
#include "base/small_file.hpp"
#include "base/split.hpp"
#include "base/whole_number.hpp"
#include "launcher/process/descendants.hpp"

namespace drun::process {
namespace {

// Of a line "name:\t  123 kB"; 0: there is none.
std::int64_t number_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    line.remove_prefix(std::min(line.find_first_of("0123456789"), line.size()));
    return whole_number<std::int64_t>(take_until(line, ' ')).value_or(0);
  }
  return 0;
}

// Four counts of a "stat", which stand together, in ticks: in user and kernel mode, its own and of
// those that it has waited for.
std::int64_t cpu_ms(std::string_view stat) {
  constexpr int kFirst = 11;  // behind the state
  std::string_view rest = stat_from_state(stat);
  for (int i = 0; i < kFirst; ++i)
    (void)take_until(rest, ' ');
  std::int64_t ticks = 0;
  for (int i = 0; i < 4; ++i)
    ticks += whole_number<std::int64_t>(take_until(rest, ' ')).value_or(0);
  return ticks * 1'000 / ::sysconf(_SC_CLK_TCK);
}

std::int64_t switches(const std::string& tasks) {
  std::int64_t sum = 0;
  for_each_name(tasks, [&](std::string_view name) {
    if (name.starts_with('.')) return;
    const auto status = read_small_file(tasks + "/" + std::string(name) + "/status");
    if (status)
      sum += number_of(*status, "voluntary_ctxt_switches:") +
             number_of(*status, "nonvoluntary_ctxt_switches:");
  });
  return sum;
}

}  // namespace

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

std::optional<Usage> usage_so_far(const std::string& folder) {
  constexpr std::int64_t kKib = 1'024;
  const auto stat = read_small_file(folder + "/stat");
  const auto status = read_small_file(folder + "/status");
  const auto io = read_small_file(folder + "/io");
  if (!stat || !status || !io) return std::nullopt;
  Usage usage;
  usage.cpu_ms = cpu_ms(*stat);
  usage.peak_kib = number_of(*status, "VmHWM:");
  usage.read_kib = number_of(*io, "read_bytes:") / kKib;
  usage.written_kib = number_of(*io, "write_bytes:") / kKib;
  usage.switches = switches(folder + "/task");
  return usage;
}

std::optional<Usage> usage_with_descendants(pid_t pid) {
  const auto of = [](pid_t each) { return usage_so_far("/proc/" + std::to_string(each)); };
  auto sum = of(pid);
  if (!sum) return std::nullopt;
  for (const pid_t below : descendants_of(pid)) {
    const auto used = of(below);
    if (!used) continue;
    sum->cpu_ms += used->cpu_ms;
    sum->peak_kib = std::max(sum->peak_kib, used->peak_kib);
    sum->read_kib += used->read_kib;
    sum->written_kib += used->written_kib;
    sum->switches += used->switches;
  }
  return sum;
}

}  // namespace drun::process
