#include "store/snapshot_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "drun/base/file_descriptor.hpp"

namespace drun::store {
namespace {

Status write_all(int fd, const std::string& path, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (written < 0) {
      if (errno == EINTR) continue;
      return Error::from_errno(errno, "write " + path);
    }
    done += static_cast<std::size_t>(written);
  }
  if (::fsync(fd) != 0) return Error::from_errno(errno, "write " + path);
  return Done{};
}

// So that the new name survives a power failure, where the file system can promise that.
void sync_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const FileDescriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) ::fsync(fd.get());
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  // Without waiting for the writer of a FIFO, which is refused below.
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return Error::from_errno(errno, "open " + path);
  std::string bytes;
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return Error::from_errno(errno, "stat " + path);
  if (S_ISDIR(status.st_mode)) return Error::from_errno(EISDIR, "read " + path);
  if (!S_ISREG(status.st_mode))
    return Error::from_errno(EINVAL, "read " + path + ", no regular file");
  bytes.reserve(static_cast<std::size_t>(status.st_size));
  char chunk[64 * 1024];
  for (;;) {
    const ssize_t got = ::read(fd.get(), chunk, sizeof chunk);
    if (got == 0) return bytes;
    if (got > 0)
      bytes.append(chunk, static_cast<std::size_t>(got));
    else if (errno != EINTR)
      return Error::from_errno(errno, "read " + path);
  }
}

Status check_replaceable(const std::string& path) {
  const std::string temporary = path + ".tmp";
  const FileDescriptor fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!fd) return Error::from_errno(errno, "create " + temporary);
  ::unlink(temporary.c_str());
  return Done{};
}

Status replace_file(const std::string& path, const std::string& bytes) {
  const std::string temporary = path + ".tmp";
  {
    const FileDescriptor fd(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!fd) return Error::from_errno(errno, "create " + temporary);
    const Status written = write_all(fd.get(), temporary, bytes);
    if (!written) {
      ::unlink(temporary.c_str());
      return written;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return Error::from_errno(error, "rename " + temporary + " to " + path);
  }
  sync_directory_of(path);
  return Done{};
}

bool SnapshotWriter::is_busy() const {
  return running_.valid() &&
         running_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void SnapshotWriter::start(std::string bytes) {
  running_ = std::async(std::launch::async, [path = path_, bytes = std::move(bytes)] {
    return replace_file(path, bytes);
  });
}

std::optional<Status> SnapshotWriter::take_result() {
  return is_busy() ? std::nullopt : finish();
}

std::optional<Status> SnapshotWriter::finish() {
  if (!running_.valid()) return std::nullopt;
  return running_.get();
}

}  // namespace drun::store
