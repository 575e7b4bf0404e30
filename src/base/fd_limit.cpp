#include "base/fd_limit.hpp"

#include <cerrno>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace drun {
namespace {

bool too_many_open(const std::error_code& code) {
  // Asio has a category of its own for the system's errors, which does not say what they are.
  const bool asio = std::string_view(code.category().name()) == "asio.system";
  return code == std::errc::too_many_files_open || (asio && code.value() == EMFILE);
}

}  // namespace

std::optional<rlimit> raise_fd_limit() {
  rlimit before{};
  if (::getrlimit(RLIMIT_NOFILE, &before) != 0) return std::nullopt;
  const rlimit raised{before.rlim_max, before.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &raised) != 0) return std::nullopt;
  return before;
}

std::string fd_limit_advice(const std::error_code& code) {
  return too_many_open(code) ? "; raise its hard limit (ulimit -n)" : "";
}

int with_raised_fd_limit(const std::function<int(const std::optional<rlimit>& before)>& run) {
  static const auto kBefore = raise_fd_limit();
  try {
    return run(kBefore);
  } catch (const std::system_error& error) {
    const std::string advice = fd_limit_advice(error.code());
    if (advice.empty()) throw;
    throw std::runtime_error(error.what() + advice);
  }
}

}  // namespace drun
