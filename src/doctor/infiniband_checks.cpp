#include "doctor/infiniband_checks.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/printable.hpp"
#include "base/small_file.hpp"
#include "base/trimmed.hpp"
#include "base/whole_number.hpp"

namespace drun::doctor {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> result;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    result.push_back(at->path());
  std::sort(result.begin(), result.end());
  return result;
}

std::string text_in(const fs::path& file) {
  return std::string(trimmed(read_small_file(file.string()).value_or(std::string())));
}

// "4: ACTIVE"
std::string_view behind_colon(std::string_view text) {
  const auto colon = text.find(": ");
  return colon == text.npos ? text : text.substr(colon + 2);
}

Check check_port(const fs::path& port) {
  const std::string name = "RDMA " +
                           printable(port.parent_path().parent_path().filename().string()) +
                           " port " + printable(port.filename().string());
  const std::string state = printable(behind_colon(text_in(port / "state")));
  const std::string rate = printable(text_in(port / "rate"));
  // A port without a cable is no fault of a job that does not use it.
  if (state != "ACTIVE")
    return warned(name, "its state is " + (state.empty() ? "not known" : state),
                  "look at the cable and the switch, or keep NCCL off it: NCCL_IB_HCA=^" +
                      printable(port.parent_path().parent_path().filename().string()));
  std::string errors;
  for (const char* counter :
       {"link_downed", "link_error_recovery", "symbol_error", "local_link_integrity_errors"}) {
    const auto count = whole_number<std::uint64_t>(text_in(port / "counters" / counter));
    if (count && *count > 0)
      errors += std::string(errors.empty() ? "" : ", ") + counter + " " + std::to_string(*count);
  }
  if (!errors.empty())
    return warned(name, errors + " since its counters were cleared",
                  "look at the cable, or clear them (perfquery -R) and look again after a job");
  return passed(name, rate.empty() ? state : state + ", " + rate);
}

}  // namespace

std::vector<Check> check_infiniband(const std::string& root) {
  std::vector<Check> checks;
  for (const fs::path& device : entries_of(root + "/sys/class/infiniband"))
    for (const fs::path& port : entries_of(device / "ports"))
      checks.push_back(check_port(port));
  return checks;
}

}  // namespace drun::doctor
