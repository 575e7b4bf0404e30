// A pipe: what is written to one end is read from the other.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file_descriptor.hpp"

namespace drun::test {

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
  FileDescriptor read;
  FileDescriptor write;
};

}  // namespace drun::test
