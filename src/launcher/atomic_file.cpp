#include "launcher/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>

#include "drun/base/file_descriptor.hpp"

namespace drun::launcher {
namespace {

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

Status write_whole_file(const std::string& path, std::string_view content) {
  const auto fail = [&](int error) { return Error::from_errno(error, "write " + path); };
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (!file || !write_all(file.get(), content)) return fail(errno);
    return Done{};
  }
  const std::string temporary = path + "." + random_name(8);
  FileDescriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file) return fail(errno);
  if (!write_all(file.get(), content) || ::close(file.release()) != 0 ||
      ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    return fail(error);
  }
  return Done{};
}

std::string random_name(std::size_t count) {
  static constexpr std::string_view kCharacters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device device;
  std::uniform_int_distribution<std::size_t> pick(0, kCharacters.size() - 1);
  std::string name;
  while (name.size() < count)
    name += kCharacters[pick(device)];
  return name;
}

}  // namespace drun::launcher
