#include "base/file_descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace drun {

FileDescriptor duplicate(int fd, const char* what) {
  FileDescriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!copy) throw std::system_error(errno, std::generic_category(), what);
  return copy;
}

}  // namespace drun
