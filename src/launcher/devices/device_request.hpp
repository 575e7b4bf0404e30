// What the user asks for: how many workers, and which devices they see. And the flag that an error
// is about, if something is wrong with it.
#pragma once

#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <variant>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::launcher {

inline constexpr int kMostWorkers = 10'000;  // of one node; times the nodes it stays an int

// --nproc-per-node: so many, or one for each of what this machine has.
enum class CountedBy { Auto, Cpu, Gpu, Xpu };
using WorkerCount = std::variant<int, CountedBy>;

struct DeviceRequest {
  std::optional<WorkerCount> workers;  // nullopt: one for each device that is asked for, or one
  // The rest as the user wrote it; an empty text means that the flag was not given.
  // --gpu-ids: "1,3,5", "0-3", UUIDs. Numbers count the visible devices, as CUDA itself does.
  std::string gpus;
  std::string include;  // DeepSpeed's "localhost:1,3@other:0"
  std::string exclude;
  bool virtual_local_rank = false;
  // What --include and --exclude may call this machine, besides localhost and loopback addresses.
  std::vector<std::string> host_names;

  [[nodiscard]] bool selects() const {
    return !gpus.empty() || !include.empty() || !exclude.empty();
  }
  // If nothing is to be counted.
  [[nodiscard]] int known_workers() const {
    const auto* number = workers ? std::get_if<int>(&*workers) : nullptr;
    return number == nullptr ? 1 : *number;
  }
  // What is to be counted; nullopt: nothing, the number is known.
  [[nodiscard]] std::optional<CountedBy> counted_by() const {
    const auto* what = workers ? std::get_if<CountedBy>(&*workers) : nullptr;
    return what == nullptr ? std::nullopt : std::optional(*what);
  }
};

// The flag that an error is about. If a variable set it, the user is shown the variable's name. So
// what() of such an error is only what follows the name: " '1,3': there is no GPU 3".
enum class DeviceFlag { Workers = 1, Gpus, Include, Exclude, VirtualLocalRank, NumaBinding };
[[nodiscard]] std::error_code make_error_code(DeviceFlag flag);

[[nodiscard]] Error refused(DeviceFlag flag, std::string rest);
// About several flags: the whole sentence.
[[nodiscard]] Error refused(std::string sentence);
// "nproc-per-node"; nullptr: the error is about several flags, or none.
[[nodiscard]] const char* flag_of(const Error& error);

}  // namespace drun::launcher

template <>
struct std::is_error_code_enum<drun::launcher::DeviceFlag> : std::true_type {};
