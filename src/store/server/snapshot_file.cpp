#include "store/server/snapshot_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "base/write_all.hpp"

namespace drun::store {
namespace {

// Others may replace a file between opening and locking it, but not again and again.
constexpr int kAttempts = 100;

// False: somebody else has it. A file system without locks has none to respect.
bool try_lock(int fd) {
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

// For writing if that is allowed: NFS does not lock a file that is open for reading only.
FileDescriptor open_to_lock(const std::string& path) {
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK;
  FileDescriptor fd(::open(path.c_str(), O_RDWR | kFlags));
  if (!fd && (errno == EACCES || errno == EPERM || errno == EROFS || errno == EISDIR))
    fd.reset(::open(path.c_str(), O_RDONLY | kFlags));
  return fd;
}

// A file that was there already may be what a store has left behind that was killed. One that
// others have made, or can reach by another name, must not get the sessions' secrets.
int whats_wrong_with(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return errno;
  const bool own = S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && status.st_nlink <= 1;
  if (!own) return EEXIST;
  return ::fchmod(fd, S_IRUSR | S_IWUSR) == 0 ? 0 : errno;
}

Error in_use(const std::string& path) {
  return Error(std::make_error_code(std::errc::device_or_resource_busy),
               "another store uses the snapshot " + path);
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

SnapshotFile::SnapshotFile(const std::string& path) : path_(path), temporary_(path + ".tmp") {
  const std::size_t slash = path.rfind('/');
  directory_ = slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

SnapshotFile::Identity SnapshotFile::identity_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? Identity{status.st_dev, status.st_ino} : Identity{};
}

bool SnapshotFile::is_at(int fd, const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 &&
         identity_of(fd) == Identity{status.st_dev, status.st_ino};
}

void SnapshotFile::hold(FileDescriptor fd) {
  identity_ = identity_of(fd.get());
  lock_ = std::move(fd);
}

Result<SnapshotFile> SnapshotFile::open(const std::string& path, std::string_view content) {
  SnapshotFile file(path);
  for (int i = 0; i < kAttempts; ++i) {
    FileDescriptor fd = open_to_lock(path);
    if (fd) {
      if (!try_lock(fd.get())) return in_use(path);
      if (!is_at(fd.get(), path)) continue;
      file.hold(std::move(fd));
      return file;
    }
    if (errno != ENOENT) return Error::from_errno(errno, "open " + path);
    Result<Replacement> first = file.begin();
    if (!first) return first.error();
    // Whoever else creates it had to have that lock.
    if (::access(path.c_str(), F_OK) == 0) {
      file.abandon(*first);
      continue;
    }
    Status written = file.write(*first, content);
    const Status created = file.finish(std::move(*first), std::move(written));
    if (!created) return created.error();
    return file;
  }
  return in_use(path);
}

Result<SnapshotFile::Replacement> SnapshotFile::begin() const {
  for (int i = 0; i < kAttempts; ++i) {
    constexpr int kFlags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    // One that is made here is this process's own, whatever owner a network file system shows.
    Replacement fd(::open(temporary_.c_str(), kFlags | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR));
    const bool was_there = !fd && errno == EEXIST;
    if (was_there) fd.reset(::open(temporary_.c_str(), kFlags));
    if (!fd && was_there && errno == ENOENT) continue;
    if (!fd) return Error::from_errno(errno, "create " + temporary_);
    if (const int error = was_there ? whats_wrong_with(fd.get()) : 0; error != 0)
      return Error::from_errno(error, "create " + temporary_ + ", which somebody else has made");
    if (!try_lock(fd.get())) return in_use(path_);
    if (is_at(fd.get(), temporary_)) return fd;
  }
  return in_use(path_);
}

void SnapshotFile::abandon(const Replacement& replacement) const {
  if (is_at(replacement.get(), temporary_)) ::unlink(temporary_.c_str());
}

// The file was removed or exchanged by hand, and a second store has begun to use the new one.
bool SnapshotFile::is_taken() const {
  const FileDescriptor fd = open_to_lock(path_);
  return fd && identity_of(fd.get()) != identity_ && !try_lock(fd.get());
}

Status SnapshotFile::write(const Replacement& replacement, std::string_view content) const {
  const int fd = replacement.get();
  const auto failed = [&](const std::string& what) {
    const int error = errno;
    abandon(replacement);
    return Error::from_errno(error, what);
  };
  if (::ftruncate(fd, 0) != 0 || !write_all(fd, content) || ::fsync(fd) != 0)
    return failed("write " + temporary_);
  if (is_taken()) {
    abandon(replacement);
    return in_use(path_);
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    return failed("rename " + temporary_ + " to " + path_);
  // So that the new name survives a power failure, if the file system can promise that.
  const FileDescriptor directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) ::fsync(directory.get());
  return Done{};
}

Status SnapshotFile::finish(Replacement replacement, Status written) {
  if (written) hold(std::move(replacement));
  return written;
}

}  // namespace drun::store
