#include "base/close_descriptors.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace drun {
namespace {

bool close_range(int first, unsigned last) {
  const auto from = static_cast<unsigned>(first);
  return from > last || ::syscall(SYS_close_range, from, last, 0U) == 0;
}

}  // namespace

void close_descriptors(int first, std::span<const int> kept) {
  bool done = true;
  int next = first;
  for (const int fd : kept) {
    if (fd > next) done = done && close_range(next, static_cast<unsigned>(fd) - 1);
    next = fd + 1;
  }
  if (done && close_range(next, ~0U)) return;
  // Kernels before 5.9.
  const long limit = ::sysconf(_SC_OPEN_MAX);
  for (int fd = first; fd < limit; ++fd)
    if (!std::binary_search(kept.begin(), kept.end(), fd)) ::close(fd);
}

}  // namespace drun
