#include "launcher/open_files.hpp"

#include <stdexcept>
#include <string>
#include <system_error>

namespace drun::launcher {
namespace {

std::optional<rlimit> raise() {
  rlimit before{};
  if (::getrlimit(RLIMIT_NOFILE, &before) != 0) return std::nullopt;
  const rlimit raised{before.rlim_max, before.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &raised) != 0) return std::nullopt;
  return before;
}

}  // namespace

int with_raised_open_files(const std::function<int(const std::optional<rlimit>& before)>& run) {
  static const auto before = raise();
  try {
    return run(before);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::too_many_files_open) throw;
    throw std::runtime_error(std::string(error.what()) + "; raise its hard limit (ulimit -n)");
  }
}

}  // namespace drun::launcher
