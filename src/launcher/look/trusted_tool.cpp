#include "launcher/look/trusted_tool.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "base/split.hpp"

namespace drun::launcher {
namespace {

bool is_ours(const struct stat& file) {
  return file.st_uid == 0 || file.st_uid == ::geteuid();
}

// A folder with the sticky bit lets nobody replace what belongs to others.
bool is_safe_folder(const std::string& path) {
  struct stat folder {};
  return ::stat(path.c_str(), &folder) == 0 && is_ours(folder) &&
         ((folder.st_mode & S_IWOTH) == 0 || (folder.st_mode & S_ISVTX) != 0);
}

bool is_trusted(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode) || !is_ours(file) ||
      (file.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return false;
  for (std::size_t end = path.rfind('/'); end != std::string::npos && end > 0;
       end = path.rfind('/', end - 1))
    if (!is_safe_folder(path.substr(0, end))) return false;
  return is_safe_folder("/");
}

}  // namespace

std::string find_trusted_tool(std::string_view name, std::string_view path) {
  while (!path.empty()) {
    const std::string folder(take_until(path, ':'));
    if (!folder.starts_with('/')) continue;
    const std::unique_ptr<char, void (*)(void*)> real(
        ::realpath((folder + "/" + std::string(name)).c_str(), nullptr), std::free);
    if (real && ::access(real.get(), X_OK) == 0 && is_trusted(real.get())) return real.get();
  }
  return {};
}

}  // namespace drun::launcher
