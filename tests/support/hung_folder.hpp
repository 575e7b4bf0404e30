// A folder on a file system that hangs, as a network file system does whose server is gone: what
// looks into it sleeps in the kernel and leaves only by a signal that kills, or when the
// folder is gone.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "base/file_descriptor.hpp"

namespace drun::test {

// For this process and those that it starts. One thread, unless it may mount without a namespace of
// its own.
class HungFolder {
 public:
  // `path` is there, and empty.
  explicit HungFolder(std::string path) : path_(std::move(path)) {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return;
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    // Nobody answers what the kernel asks here.
    server_.reset(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
    const std::string options = "fd=" + std::to_string(server_.get()) +
                                ",rootmode=40000,user_id=" + std::to_string(::getuid()) +
                                ",group_id=" + std::to_string(::getgid());
    hangs_ = server_.valid() && ::mount("hung", path_.c_str(), "fuse", 0, options.c_str()) == 0;
  }
  HungFolder(const HungFolder&) = delete;
  HungFolder& operator=(const HungFolder&) = delete;
  ~HungFolder() {
    if (!covered_.empty()) ::umount2(covered_.c_str(), MNT_DETACH);
    if (hangs_) ::umount2(path_.c_str(), MNT_DETACH);
  }

  // False where no file system may be mounted.
  [[nodiscard]] bool hangs() const { return hangs_; }
  // From now on `folder` hangs, too, for whoever opens something in it.
  [[nodiscard]] bool cover(std::string folder) {
    if (::mount(path_.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) != 0) return false;
    covered_ = std::move(folder);
    return true;
  }
  // Whoever waits goes on, with an error.
  void end() { server_.reset(); }

 private:
  std::string path_;
  std::string covered_;
  FileDescriptor server_;
  bool hangs_ = false;
};

}  // namespace drun::test
