// The real machine behind parse_options: the only part of it that does not come in as an argument.
#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "base/addresses.hpp"
#include "base/environment_variable.hpp"
#include "base/given_file.hpp"
#include "base/hex.hpp"
#include "base/random_bytes.hpp"
#include "launcher/command_line/parse.hpp"

namespace drun::launcher {
namespace {

// A version 4 UUID, as torchrun names standalone jobs.
std::string random_uuid() {
  std::array<std::byte, 16> bytes{};
  fill_with_random_bytes(bytes);
  bytes[6] = (bytes[6] & std::byte{0x0f}) | std::byte{0x40};
  bytes[8] = (bytes[8] & std::byte{0x3f}) | std::byte{0x80};
  std::string result;
  append_hex(result, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (const std::size_t dash : {20U, 16U, 12U, 8U})
    result.insert(dash, 1, '-');
  return result;
}

// As the shell calls it, if that is true: what its links lead to may be called otherwise elsewhere.
std::string working_directory() {
  std::error_code removed;
  std::error_code ignored;
  const std::filesystem::path here = std::filesystem::current_path(removed);
  const std::string shells = environment_variable(own_environment(), "PWD").value_or("");
  const bool is_path = shells.starts_with('/');
  if (is_path && (removed || std::filesystem::equivalent(shells, here, ignored))) return shells;
  return removed ? "/" : here;
}

}  // namespace

Host this_host() {
  Host result;
  result.fresh_id = random_uuid;
  result.host_name = own_host_name;
  result.place_workers = plan_placement;
  result.interface_address = [](const std::string& name) -> std::optional<std::string> {
    if (!numeric_addresses(name).empty()) return std::nullopt;
    return interface_address(name, own_interfaces());
  };
  result.read_file = [](const std::string& path) { return read_given_file(path); };
  result.working_directory = working_directory;
  result.program_file = [] { return std::filesystem::read_symlink("/proc/self/exe").string(); };
  result.by_pmi = [](int fd, bool first, const std::string& text) {
    constexpr std::chrono::minutes kLongest{10};  // c10d's join timeout
    return cluster::exchange_by_pmi(fd, first, text, std::chrono::steady_clock::now() + kLongest);
  };
  return result;
}

}  // namespace drun::launcher
