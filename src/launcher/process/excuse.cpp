#include "launcher/process/excuse.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <new>
#include <system_error>

namespace drun::process {

Excuse::Excuse() {
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_SHARED, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  shared_ = new (memory) Shared(kForEver.count());
}

Excuse::~Excuse() {
  ::munmap(shared_, sizeof(Shared));
}

}  // namespace drun::process
