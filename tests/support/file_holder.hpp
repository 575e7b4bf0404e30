// Processes that have a file open or mapped.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace drun::test {

enum class Has { Open, OpenToRead, Mapped };

// A process that has a file, as a worker does; the file stays when it ends.
class Holder {
 public:
  Holder(const std::string& path, Has has) {
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    pid_ = ::fork();
    if (pid_ == 0) {
      const int fd = ::open(path.c_str(), has == Has::OpenToRead ? O_RDONLY : O_RDWR);
      bool good = fd >= 0;
      if (has == Has::Mapped) {
        good =
            good && ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
        ::close(fd);
      }
      const char answer = good ? 'y' : 'n';
      if (::write(ready[1], &answer, 1) != 1) ::_exit(1);
      for (;;)
        ::pause();
    }
    ::close(ready[1]);
    char answer = 'n';
    const bool told = ::read(ready[0], &answer, 1) == 1;
    ::close(ready[0]);
    if (!told || answer != 'y') throw std::runtime_error("the holder has no file " + path);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() { end(); }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

}  // namespace drun::test
