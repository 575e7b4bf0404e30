#include "hang/flight_recorder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>

#include "base/environment_variable.hpp"
#include "base/file_descriptor.hpp"
#include "base/number_ranges.hpp"
#include "base/printable.hpp"

namespace drun::hang {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{50};
constexpr std::size_t kMostNamed = 4;

// Only a pipe that somebody reads: a file of that name is not written to.
bool ask(const std::string& pipe) {
  const FileDescriptor opened(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (!opened || ::fstat(opened.get(), &status) != 0 || !S_ISFIFO(status.st_mode)) return false;
  return ::write(opened.get(), "1", 1) == 1;
}

struct State {
  std::int64_t changed_ns = -1;  // -1: there is no file
  std::int64_t size = 0;
  bool operator==(const State&) const = default;
};

State state_of(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return {};
  return {status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec, status.st_size};
}

struct AwaitedDump {
  std::string file;
  State before;
  State last;
  bool written = false;
};

// It has changed since it was asked for, and no more since the last look.
void look_at(AwaitedDump& dump) {
  const State now = state_of(dump.file);
  dump.written = now != dump.before && now == dump.last && now.size > 0;
  dump.last = now;
}

}  // namespace

std::optional<FlightRecorder> flight_recorder_of(const std::vector<std::string>& environment) {
  auto pipe = environment_variable(environment, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
  if (!pipe || pipe->empty()) return std::nullopt;
  FlightRecorder recorder{std::move(*pipe), {}};
  for (const char* name : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"})
    if (recorder.dump.empty()) recorder.dump = environment_variable(environment, name).value_or("");
  return recorder;
}

Dumps ask_for_dumps(const FlightRecorder& recorder, const std::vector<int>& ranks,
                    std::chrono::milliseconds limit) {
  Dumps dumps;
  std::vector<AwaitedDump> awaited;
  for (const int rank : ranks) {
    AwaitedDump dump{recorder.dump + std::to_string(rank), {}, {}};
    dump.before = dump.last = state_of(dump.file);
    if (!ask(recorder.pipe + std::to_string(rank) + ".pipe")) continue;
    dumps.asked.push_back(rank);
    if (!recorder.dump.empty()) awaited.push_back(std::move(dump));
  }
  const auto all_written = [&] {
    return std::all_of(awaited.begin(), awaited.end(),
                       [](const AwaitedDump& dump) { return dump.written; });
  };
  for (const auto end = Clock::now() + limit; !all_written() && Clock::now() < end;) {
    std::this_thread::sleep_for(kLook);
    for (AwaitedDump& dump : awaited)
      if (!dump.written) look_at(dump);
  }
  for (AwaitedDump& dump : awaited)
    if (dump.written) dumps.files.push_back(std::move(dump.file));
  return dumps;
}

std::string dumps_text(const Dumps& dumps) {
  if (dumps.asked.empty()) return {};
  if (dumps.files.empty())
    return "the flight recorder of " + ranks_text(dumps.asked) + " was asked for a dump";
  std::string text = "the flight recorder has written ";
  const std::size_t named = std::min(dumps.files.size(), kMostNamed);
  for (std::size_t i = 0; i < named; ++i) {
    const bool is_last = i + 1 == dumps.files.size();
    text += (i == 0 ? "" : is_last ? " and " : ", ") + as_name(dumps.files[i]);
  }
  if (dumps.files.size() > named)
    text += " and " + std::to_string(dumps.files.size() - named) + " more";
  return text;
}

}  // namespace drun::hang
