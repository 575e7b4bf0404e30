#include "base/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>

#include "base/file_descriptor.hpp"
#include "base/file_worker.hpp"
#include "base/poll_until.hpp"
#include "base/random_bytes.hpp"
#include "base/write_all.hpp"

namespace drun {
namespace {

// The reader of a pipe may have stalled.
constexpr std::chrono::seconds kReaderLimit{5};

// Waits for a while because writing would block; ETIMEDOUT if that was not enough.
bool await_reader(int fd) {
  if (await_ready(fd, POLLOUT, std::chrono::steady_clock::now() + kReaderLimit)) return true;
  errno = ETIMEDOUT;
  return false;
}

bool write_patiently(int fd, std::string_view content) {
  while (!write_all(fd, content))
    if (errno != EAGAIN || !await_reader(fd)) return false;
  return true;
}

// 0: there is nothing, or it cannot be told.
mode_t type_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & S_IFMT : 0;
}

// A name of what is open already ("/dev/stderr", "/dev/fd/3"), whatever that is.
bool names_descriptor(std::string_view path) {
  if (path.starts_with("/dev/")) return !path.starts_with("/dev/shm/");
  return path.starts_with("/proc/");
}

}  // namespace

bool is_written_in_place(const std::string& path) {
  const mode_t type = type_of(path);
  return type != 0 && (type != S_IFREG || names_descriptor(path));
}

Status write_whole_file(const std::string& path, std::string_view content) {
  const std::string attempt = "write " + path;
  const auto fail = [&](int error) { return Error::from_errno(error, attempt); };
  about_to(attempt);
  if (is_written_in_place(path)) {
    // A named pipe without a reader is an error, and nothing to wait for.
    const FileDescriptor file(
        ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    const int error = file ? 0 : errno;
    if (error == ENXIO && type_of(path) == S_IFIFO)
      return Error(std::make_error_code(std::errc::no_such_device_or_address),
                   attempt + ": nobody reads this pipe");
    if (error != 0) return fail(error);
    if (!write_patiently(file.get(), content)) return fail(errno);
    return Done{};
  }
  const std::string temporary = path + "." + random_name(8);
  FileDescriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file) return fail(errno);
  about_to(attempt);
  if (!write_patiently(file.get(), content) || ::close(file.release()) != 0 ||
      ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return fail(error);
  }
  return Done{};
}

}  // namespace drun
