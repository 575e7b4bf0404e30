// Holds processes of a test until the test lets them go.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file_descriptor.hpp"

namespace drun::test {

// A shell waits for it with `read line <PATH`. Each open() lets one go.
class Gate {
 public:
  // Makes the fifo. Opened for reading too, so that neither side ever waits for the other to come.
  explicit Gate(const std::filesystem::path& path) {
    if (::mkfifo(path.c_str(), 0600) == 0) fifo_.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  }
  // False: there is no fifo.
  [[nodiscard]] bool open() const { return ::write(fifo_.get(), "\n", 1) == 1; }

 private:
  FileDescriptor fifo_;
};

}  // namespace drun::test
