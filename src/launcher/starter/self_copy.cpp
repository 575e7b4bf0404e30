#include "launcher/starter/self_copy.hpp"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "base/fnv1a.hpp"
#include "base/hex.hpp"
#include "drun/version.hpp"

namespace drun::launcher {
namespace {

std::string content_of(const FileDescriptor& file) {
  std::string bytes(static_cast<std::size_t>(::lseek(file.get(), 0, SEEK_END)), '\0');
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t size =
        ::pread(file.get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (size <= 0) throw std::system_error(errno, std::generic_category(), "read drun's own file");
    at += static_cast<std::size_t>(size);
  }
  return bytes;
}

}  // namespace

FileDescriptor open_self() {
  FileDescriptor file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (!file) throw std::system_error(errno, std::generic_category(), "open drun's own file");
  return file;
}

hosts::SelfOffer self_offer() {
  const std::string bytes = content_of(open_self());
  std::uint64_t hash = fnv1a(bytes);
  std::string digits;
  for (int i = 0; i < 8; ++i, hash <<= 8U)
    append_hex(digits, std::string(1, static_cast<char>(hash >> 56U)));
  return {"drun-" DRUN_VERSION_STRING "-" + digits, bytes.size()};
}

std::string own_machine() {
  utsname names{};
  ::uname(&names);
  return std::string(names.sysname) + " " + names.machine;
}

}  // namespace drun::launcher
